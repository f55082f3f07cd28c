"""The style agent: finds what is wrong in grammar, spelling and tone; its issues become a change map (R1.61)."""

from __future__ import annotations

from pydantic import Field

from daiku.agents.agent import Agent, Prompt
from daiku.agents.drafting.answer_form import AnswerForm
from daiku.agents.drafting.part_request import part_request
from daiku.agents.part import Part, Stage
from daiku.core.drafting.moves import document_of
from daiku.core.drafting.style_issues import patch_of_style
from daiku.core.replies.parse import Unreadable
from daiku.core.state.state import State
from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.work.documents import PatchMade
from daiku.domain.work.handovers import Brief
from daiku.domain.work.patches import Issue
from daiku.texts.text import text

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
    return part_request("agents/style_request", brief)


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
    Prompt("agents/style"),
    part=Part(
        label=Label("Style", "文体担当"),
        description="finds what is wrong in grammar, spelling and tone",
        delegate=False,
        repeats=True,
        role=ISSUES.role,
        stage=Stage(style_made, style_request),
    ),
)
