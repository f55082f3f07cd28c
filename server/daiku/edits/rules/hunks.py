"""Application of hunks to a text: all are located in the old text, in file order, or none is applied."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.edits.rules.elisions import resolve_elisions
from daiku.edits.rules.matching.hunk import (
    Hunk,
    Replacement,
    build_replacement,
    find_line_end,
    join_lines,
    splice_all,
)
from daiku.edits.rules.matching.indents import get_indent
from daiku.edits.rules.matching.locate import LocatedHunk, locate, locate_insertion
from daiku.edits.rules.matching.refusal import Refusal, get_line_number, refuse_ambiguous


def apply_hunks(text: str, hunks: Sequence[Hunk], *, path: str = "", insisted: bool = False) -> str | Refusal:
    """Return `text` with every hunk applied, or a Refusal. All are located in the old text.

    For `path` and `insisted` see `elisions.fill_text`.
    """
    changing: list[Hunk] = []
    for number, hunk in enumerate(hunks, 1):
        parts = resolve_elisions(text, hunk, path=path, insisted=insisted)
        if isinstance(parts, Refusal):
            return _name_hunk(parts, number, hunks)
        changing += (part for part in parts if part.changes or len(parts) > 1)
    options: list[tuple[Replacement, ...]] = []
    located: list[list[LocatedHunk]] = []
    for number, hunk in enumerate(changing, 1):
        matches = locate(text, hunk) if hunk.old() else []
        if isinstance(matches, Refusal):
            return _name_hunk(matches, number, changing)
        located.append(matches)
    shifts = [_compute_shift(text, matches) for matches in located]
    for index, (hunk, matches) in enumerate(zip(changing, located, strict=True)):
        places = _list_places(text, hunk, matches, _compute_expected_line(hunk, shifts, index))
        if isinstance(places, Refusal):
            return _name_hunk(places, index + 1, changing)
        options.append(places)
    chosen: list[Replacement] = []
    for index, place in enumerate(_choose_in_order(options)):
        if place is None:
            return _name_hunk(refuse_ambiguous(text, [p.start for p in options[index]]), index + 1, changing)
        depth = changing[index].gap
        if depth is not None and chosen and not _is_gap(text, chosen[-1].end, place.start, depth):
            return _name_hunk(Refusal("Its lines do not follow on those above them."), index + 1, changing)
        chosen.append(place)
    return splice_all(text, chosen)


def _is_gap(text: str, start: int, end: int, depth: int) -> bool:
    """Return True if the lines from `start` to `end` fit an elision that is indented by `depth`."""
    lines = [line for line in text[start:end].split("\n") if line.strip()]
    return start <= end and all(len(get_indent(line)) >= depth for line in lines)


def _name_hunk(refusal: Refusal, number: int, hunks: Sequence[Hunk]) -> Refusal:
    return refusal if len(hunks) == 1 else refusal.within(f"Hunk {number} of {len(hunks)}")


def _compute_shift(text: str, matches: Sequence[LocatedHunk]) -> int | None:
    """Return how many lines below its stated number a hunk matches; None if the match is not unique."""
    if len(matches) != 1 or matches[0].hunk.line is None:
        return None
    return get_line_number(text, matches[0].span.start) - matches[0].hunk.line


def _compute_expected_line(hunk: Hunk, shifts: Sequence[int | None], index: int) -> int | None:
    """Return the hunk's line, shifted like the hunks around it; None if these disagree."""
    if hunk.line is None:
        return None
    above = next((shift for shift in reversed(shifts[:index]) if shift is not None), None)
    below = next((shift for shift in shifts[index + 1 :] if shift is not None), None)
    if above == below:
        return hunk.line + (above or 0)
    one_sided = above is None or below is None
    return hunk.line if one_sided and 0 in (above, below) else None


def _list_places(
    text: str, hunk: Hunk, matches: list[LocatedHunk], line: int | None
) -> tuple[Replacement, ...] | Refusal:
    """Return the possible replacements for the hunk, in file order."""
    if not hunk.old():
        place = _place_insertion(text, hunk)
        return place if isinstance(place, Refusal) else (place,)
    if len(matches) > 1 and line is not None and not hunk.anchors:
        blank = not any(line_text.strip() for line_text in hunk.old_text())
        at_line = [one for one in matches if get_line_number(text, one.span.start) == line]
        matches = at_line if at_line or blank else matches
    places: list[Replacement] = []
    for one in matches:
        place = build_replacement(text, one.hunk, one.span)
        if isinstance(place, Refusal):
            return place
        places.append(place)
    return tuple(places)


def _choose_in_order(options: Sequence[Sequence[Replacement]]) -> list[Replacement | None]:
    """Return one place per hunk: the only one, or the only one in file order; None if ambiguous."""
    earliest: list[Replacement | None] = []
    end = 0
    for places in options:
        first = next((place for place in places if place.start >= end), None)
        end = first.end if first else end
        earliest.append(first)
    latest: list[Replacement | None] = []
    for places in reversed(options):
        start = next((place.start for place in reversed(latest) if place), None)
        last = next((place for place in reversed(places) if start is None or place.end <= start), None)
        latest.append(last)
    return [
        places[0] if len(places) == 1 else early if early is late else None
        for places, early, late in zip(options, earliest, reversed(latest), strict=True)
    ]


def _place_insertion(text: str, hunk: Hunk) -> Replacement | Refusal:
    """Return the replacement for a hunk of added lines only: after its anchor, or at the end."""
    at = locate_insertion(text, hunk)
    if isinstance(at, Refusal):
        return at
    eol = find_line_end(text, at)
    lines = [(line.text.removesuffix("\r") if eol == "\r\n" else line.text, eol) for line in hunk.lines]
    new = join_lines(text, at, lines, hunk.final_newline)
    if at and at == len(text) and not text.endswith("\n"):
        new = eol + new
    return Replacement(at, at, new)
