"""The style agent: finds what is wrong in grammar, spelling and tone; its issues become a change map (R1.61)."""

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
from daiku.team.drafting.answer_form import AnswerForm
from daiku.team.drafting.part_request import part_request
from daiku.team.part import Part, Stage
from daiku.team.rules.drafting.headings import headings, lines_of
from daiku.team.rules.drafting.moves import document_of
from daiku.texts.text import text

Why: TypeAlias = Literal["no_place", "not_there", "several_places", "overlap", "outside", "nothing_changes"]


def patch_from_issues(text: str, issues: Iterable[Issue]) -> IssuePatch:
    """Build the patch of the issues whose place is certain, the first of overlapping ones; list the others."""
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
    """Return the change that fixes `issue`, or why there is none."""
    quote, replacement = _line_ends(text, issue.quote), _line_ends(text, issue.replacement)
    place = _by_offsets(text, issue, quote)
    if isinstance(place, str) and quote:
        place = _by_quote(text, quote)
    if isinstance(place, str):
        return place
    start, end = place
    if text[start:end] == replacement:
        return "nothing_changes"
    return trim_change(start, text[start:end], replacement)


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
    """Return `part` with the line ends of `text`: a model writes plain ones."""
    return part.replace("\n", "\r\n") if "\r\n" in text and "\r" not in part else part


def patch_of_style(text: str, form: DocumentFormat, issues: Sequence[Issue]) -> IssuePatch:
    """Build the patch of `issues`; those in headings, code, front matter, or marks of secrets are not placed."""
    closed = [(line.start, line.end) for line in lines_of(text, form) if line.closed]
    closed += [(heading.start, heading.end) for heading in headings(text, form)]
    kept: list[Issue] = []
    unplaced: list[Unplaced] = []
    for issue in issues:
        alone = patch_from_issues(text, (issue,))
        if any(_inside(change, closed) for change in alone.change_map) or moves_marks(
            text, MARK, alone.change_map
        ):
            unplaced.append(Unplaced(issue=issue, why="protected"))
        else:
            kept.append(issue)
    patch = patch_from_issues(text, kept)
    return patch.model_copy(update={"unplaced": (*unplaced, *patch.unplaced)})


def _inside(change: Change, closed: Sequence[tuple[int, int]]) -> bool:
    """Return True if a change touches a closed stretch; an insertion before or behind it does not."""
    if change.start == change.end:
        return any(start < change.start < end for start, end in closed)
    return any(change.start < end and start < change.end for start, end in closed)


MOST_ISSUES = 60


class IssueForm(Frozen):
    """One thing to be put right."""

    quote: str = Field(
        min_length=1, description="the words as they stand in the text, so many that they stand there once"
    )
    replacement: str = Field(description="the words in their place; empty: they go")
    reason: str = Field(default="", description="in a few words")


class IssuesForm(Frozen):
    """What is wrong in a text."""

    issues: tuple[IssueForm, ...] = Field(
        default=(), max_length=MOST_ISSUES, description="none where nothing is wrong"
    )


ISSUES = AnswerForm(
    IssuesForm,
    "report/issues",
    "End your work with what is wrong in the text.",
    lambda form: text("document.issues", count=len(form.issues)),
)


def style_request(brief: Brief) -> str:
    """The request to the style agent."""
    return part_request("team/style_request", brief)


def style_made(state: State) -> PatchMade | Unreadable:
    """The patch that puts right every issue whose place is certain."""
    document, form = document_of(state), ISSUES.given(state)
    if document is None or form is None:
        return ISSUES.missing
    issues = tuple(Issue(quote=i.quote, replacement=i.replacement, reason=i.reason) for i in form.issues)
    patch = patch_of_style(document.text, document.form, issues)
    return PatchMade(patch=patch.plain(), unplaced=patch.unplaced)


STYLE = Agent(
    "style",
    Prompt("team/style"),
    part=Part(
        label=Label("Style", "文体担当"),
        description="finds what is wrong in grammar, spelling and tone",
        delegate=False,
        repeats=True,
        role=ISSUES.role,
        stage=Stage(style_made, style_request),
    ),
)
