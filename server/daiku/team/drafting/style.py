"""The style agent: finds mistakes in grammar, spelling, and tone; its issues become a change map (R1.61)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

from pydantic import Field

from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.work.documents import DocumentFormat, PatchMade
from daiku.domain.work.handovers import Brief
from daiku.domain.work.patches import Change, Issue, IssuePatch, Unplaced
from daiku.edits.rules.changes.changemap import moves_marks, overlap, patch_from, trim_change
from daiku.edits.rules.matching.refusal import Refusal
from daiku.guard.rules.redact import MARK
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.drafting.part_request import AnswerForm, build_part_request
from daiku.team.part import Part, Stage
from daiku.team.rules.drafting.headings import find_headings, split_document_lines
from daiku.team.rules.drafting.moves import find_document
from daiku.texts.text import text

PlacementProblem: TypeAlias = Literal[
    "no_place", "not_there", "several_places", "overlap", "outside", "nothing_changes"
]


def build_issues_patch(text: str, issues: Iterable[Issue]) -> IssuePatch:
    """Build the patch of the issues with a certain place, the first of overlapping ones; list the others."""
    changes: list[Change] = []
    unplaced: list[Unplaced] = []
    for issue in issues:
        change = _place_issue(text, issue)
        if isinstance(change, Change) and any(overlap(change, other) for other in changes):
            change = "overlap"
        if isinstance(change, Change):
            changes.append(change)
        else:
            unplaced.append(Unplaced(issue=issue, why=change))
    patch = patch_from(text, changes)
    assert not isinstance(patch, Refusal), "changes that do not overlap are a change map"
    return IssuePatch(new_text=patch.new_text, change_map=patch.change_map, unplaced=tuple(unplaced))


def _place_issue(text: str, issue: Issue) -> Change | PlacementProblem:
    """Return the change that fixes `issue`, or why there is none."""
    quote, replacement = _match_line_ends(text, issue.quote), _match_line_ends(text, issue.replacement)
    place = _find_by_offsets(text, issue, quote)
    if isinstance(place, str) and quote:
        place = _find_by_quote(text, quote)
    if isinstance(place, str):
        return place
    start, end = place
    if text[start:end] == replacement:
        return "nothing_changes"
    return trim_change(start, text[start:end], replacement)


def _find_by_offsets(text: str, issue: Issue, quote: str) -> tuple[int, int] | PlacementProblem:
    if issue.start is None:
        return "no_place"
    end = issue.start + len(quote) if issue.end is None else issue.end
    if not 0 <= issue.start <= end <= len(text):
        return "outside"
    return (issue.start, end) if not quote or text[issue.start : end] == quote else "not_there"


def _find_by_quote(text: str, quote: str) -> tuple[int, int] | PlacementProblem:
    index = text.find(quote)
    if index < 0:
        return "not_there"
    return "several_places" if text.find(quote, index + 1) >= 0 else (index, index + len(quote))


def _match_line_ends(text: str, part: str) -> str:
    """Return `part` with the line endings of `text`: models write plain ones."""
    return part.replace("\n", "\r\n") if "\r\n" in text and "\r" not in part else part


def build_style_patch(text: str, form: DocumentFormat, issues: Sequence[Issue]) -> IssuePatch:
    """Build the patch of `issues`; those in headings, code, front matter, or secret marks are not placed."""
    protected = [(line.start, line.end) for line in split_document_lines(text, form) if line.closed]
    protected += [(heading.start, heading.end) for heading in find_headings(text, form)]
    placeable: list[Issue] = []
    unplaced: list[Unplaced] = []
    for issue in issues:
        single = build_issues_patch(text, (issue,))
        if any(_is_inside(change, protected) for change in single.change_map) or moves_marks(
            text, MARK, single.change_map
        ):
            unplaced.append(Unplaced(issue=issue, why="protected"))
        else:
            placeable.append(issue)
    patch = build_issues_patch(text, placeable)
    return patch.model_copy(update={"unplaced": (*unplaced, *patch.unplaced)})


def _is_inside(change: Change, protected: Sequence[tuple[int, int]]) -> bool:
    """Return True if a change touches a protected range; an insertion right before or after it does not."""
    if change.start == change.end:
        return any(start < change.start < end for start, end in protected)
    return any(change.start < end and start < change.end for start, end in protected)


MOST_ISSUES = 60


class IssueForm(Frozen):
    """Schema of one issue to fix."""

    quote: str = Field(
        min_length=1, description="the words as they stand in the text, so many that they stand there once"
    )
    replacement: str = Field(description="the words in their place; empty: they go")
    reason: str = Field(default="", description="in a few words")


class IssuesForm(Frozen):
    """Schema of the issues in a text."""

    issues: tuple[IssueForm, ...] = Field(
        default=(), max_length=MOST_ISSUES, description="none where nothing is wrong"
    )


ISSUES = AnswerForm(
    IssuesForm,
    "report/issues",
    "End your work with what is wrong in the text.",
    lambda form: text("document.issues", count=len(form.issues)),
)


def build_style_request(brief: Brief) -> str:
    """Build the style agent's request."""
    return build_part_request("agents/style_request", brief)


def build_handover(state: State) -> PatchMade | Unreadable:
    """Return the patch that fixes every issue whose place is certain."""
    document, form = find_document(state), ISSUES.find_answer(state)
    if document is None or form is None:
        return ISSUES.missing
    issues = tuple(Issue(quote=i.quote, replacement=i.replacement, reason=i.reason) for i in form.issues)
    patch = build_style_patch(document.text, document.form, issues)
    return PatchMade(patch=patch.plain(), unplaced=patch.unplaced)


STYLE = Agent(
    "style",
    Prompt("agents/style"),
    part=Part(
        label=Label("Style editor", "文体担当"),
        description="finds what is wrong in grammar, spelling and tone",
        delegate=False,
        repeats=True,
        role=ISSUES.role,
        stage=Stage(build_handover, build_style_request),
    ),
)
