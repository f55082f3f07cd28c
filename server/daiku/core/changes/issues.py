"""Issues that were found in a text, made into a change map; what cannot be placed is reported (R1.61)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from daiku.core.changes.changemap import overlap, patch_from, trimmed
from daiku.core.matching.refusal import Refusal
from daiku.domain.work.patches import Change, Issue, IssuePatch, Unplaced

Why: TypeAlias = Literal["no_place", "not_there", "several_places", "overlap", "outside", "nothing_changes"]


def patch_from_issues(text: str, issues: Iterable[Issue]) -> IssuePatch:
    """The patch of `text` that puts right every issue whose place is certain. The others are in `unplaced`, with
    why: nothing is guessed. Of two that overlap the first is taken."""
    placed: list[Change] = []
    unplaced: list[Unplaced] = []
    for issue in issues:
        found = _placed(text, issue)
        if isinstance(found, Change) and any(overlap(found, other) for other in placed):
            found = "overlap"
        if isinstance(found, Change):
            placed.append(found)
        else:
            unplaced.append(Unplaced(issue=issue, why=found))
    patch = patch_from(text, placed)
    assert not isinstance(patch, Refusal), "changes that do not overlap are a change map"
    return IssuePatch(new_text=patch.new_text, change_map=patch.change_map, unplaced=tuple(unplaced))


def _placed(text: str, issue: Issue) -> Change | Why:
    """The change that puts `issue` right, or why there is none."""
    quote, replacement = _line_ends(text, issue.quote), _line_ends(text, issue.replacement)
    place = _by_offsets(text, issue, quote)
    if isinstance(place, str) and quote:
        place = _by_quote(text, quote)
    if isinstance(place, str):
        return place
    start, end = place
    if text[start:end] == replacement:
        return "nothing_changes"
    return trimmed(start, text[start:end], replacement)


def _by_offsets(text: str, issue: Issue, quote: str) -> tuple[int, int] | Why:
    if issue.start is None:
        return "no_place"
    end = issue.start + len(quote) if issue.end is None else issue.end
    if not 0 <= issue.start <= end <= len(text):
        return "outside"
    return (issue.start, end) if not quote or text[issue.start : end] == quote else "not_there"


def _by_quote(text: str, quote: str) -> tuple[int, int] | Why:
    at = text.find(quote)
    if at < 0:
        return "not_there"
    return "several_places" if text.find(quote, at + 1) >= 0 else (at, at + len(quote))


def _line_ends(text: str, part: str) -> str:
    """`part` with the line ends of `text`: a model writes plain ones."""
    return part.replace("\n", "\r\n") if "\r\n" in text and "\r" not in part else part
