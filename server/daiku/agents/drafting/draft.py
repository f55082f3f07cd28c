"""The draft agent: writes a part of a document anew, headings kept; and the one that chooses the parts (R1.60)."""

from __future__ import annotations

from pydantic import Field

from daiku.agents.agent import Agent, Prompt
from daiku.agents.coding.handover_text import fenced
from daiku.agents.drafting.answer_form import AnswerForm, last_reply
from daiku.agents.drafting.part_request import part_request
from daiku.agents.part import Part, Stage
from daiku.core.changes.changemap import patch_between
from daiku.core.drafting.moves import document_of
from daiku.core.drafting.replies import new_text
from daiku.core.replies.parse import Unreadable
from daiku.core.state.state import State
from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.work.documents import PatchMade, SectionsChosen
from daiku.domain.work.handovers import Brief
from daiku.prompts import render
from daiku.texts.text import text


def draft_request(brief: Brief) -> str:
    """The request to the draft agent: its part, the headings that stay, and how deep to go."""
    return part_request("agents/draft_request", brief)


def draft_made(state: State) -> PatchMade | Unreadable:
    """The patch that leads to the text of the last reply. Unreadable, and said to the model, where that text lost
    headings or much else, or was cut off."""
    document, said = document_of(state), last_reply(state)
    if document is None or said is None:
        return Unreadable(text("roles.no_answer"))
    new = new_text(said.text, document)
    return new if isinstance(new, Unreadable) else PatchMade(patch=patch_between(document.text, new))


DRAFT = Agent(
    "draft",
    Prompt("agents/draft"),
    part=Part(
        label=Label("Draft", "下書き担当"),
        description="writes a part of a document anew and keeps its headings",
        delegate=False,
        repeats=True,
        stage=Stage(draft_made, draft_request),
    ),
)


# ---- which parts of a long document are concerned


class SectionsForm(Frozen):
    """The parts that the request is about."""

    numbers: tuple[int, ...] = Field(
        description="numbers of the parts that have to change, as few as will do"
    )


CHOICE = AnswerForm(
    SectionsForm,
    "report/sections",
    "End your work with the parts that have to change.",
    lambda form: text("document.chosen", numbers=", ".join(map(str, form.numbers)) or "-"),
)


class SectionsVariables(Frozen):
    """A long document as a list of its parts, fenced already."""

    request: str
    path: str
    parts: int
    outline: str


def sections_request(brief: Brief) -> str:
    """The request for the parts that are concerned."""
    document = brief.document
    if document is None:
        return brief.request
    return render(
        "agents/sections_request",
        SectionsVariables(
            request=brief.request,
            path=document.path,
            parts=document.parts,
            outline=fenced(document.outline, "~"),
        ),
    ).strip()


def sections_chosen(state: State) -> SectionsChosen | Unreadable:
    """The parts that the run chose; Unreadable where it names one that there is not."""
    document, form = document_of(state), CHOICE.given(state)
    if document is None or form is None:
        return CHOICE.missing
    wrong = [str(number) for number in form.numbers if not 1 <= number <= document.parts]
    if wrong:
        return Unreadable(text("document.no_such_part", numbers=", ".join(wrong), count=document.parts))
    return SectionsChosen(numbers=tuple(sorted(set(form.numbers))))


SECTIONS = Agent(
    "sections",
    Prompt("agents/sections"),
    part=Part(
        label=Label("Section picker", "対象の節の選択"),
        description="chooses the parts of a long document that a request is about",
        delegate=False,
        repeats=True,
        role=CHOICE.role,
        stage=Stage(sections_chosen, sections_request),
    ),
)
