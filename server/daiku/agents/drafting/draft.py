"""The draft agent: writes a part of a document anew, headings kept; and the one that chooses the parts (R1.60)."""

from __future__ import annotations

from pydantic import Field

from daiku.agents.agent import Agent, Prompt
from daiku.agents.coding.handover_text import fenced
from daiku.agents.drafting.part_request import part_request
from daiku.agents.form_tool import by_tool
from daiku.agents.part import Part, Stage
from daiku.agents.role import Role
from daiku.core.calls.arguments import schema_of
from daiku.core.changes.changemap import patch_between
from daiku.core.drafting.replies import new_text
from daiku.core.replies.parse import Unreadable, read_json
from daiku.core.state.state import State
from daiku.domain.base import Frozen, JsonObject
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message
from daiku.domain.tools import ToolSpec
from daiku.domain.work.documents import PatchMade, SectionsChosen
from daiku.domain.work.handovers import Brief
from daiku.prompts import render
from daiku.texts.text import Text, text


def draft_request(brief: Brief) -> str:
    """The request to the draft agent: its part, the headings that stay, and how deep to go."""
    return part_request("agents/draft_request", brief)


def draft_made(state: State) -> PatchMade | Unreadable:
    """The patch that leads to the text of the last reply. Unreadable, and said to the model, where that text lost
    headings or much else, or was cut off."""
    document = state.request.brief.document if state.request.brief is not None else None
    said = last_reply(state)
    if document is None or said is None:
        return Unreadable(text("roles.no_answer"))
    new = new_text(said.text, document)
    return new if isinstance(new, Unreadable) else PatchMade(patch=patch_between(document.text, new))


def last_reply(state: State) -> AssistantMessage | None:
    """The last reply of this run."""
    here = state.conversation.messages[state.conversation.start :]
    return next((m for m in reversed(here) if isinstance(m, AssistantMessage)), None)


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


SECTIONS_TOOL = ToolSpec(
    name="report/sections",
    description="End your work with the parts that have to change.",
    parameters=schema_of(SectionsForm),
    effect="none",
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


def read_sections(
    message: AssistantMessage, _messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """The parts that a reply names."""
    form = read_json(message.text, SectionsForm.model_validate, cut=cut)
    if isinstance(form, Unreadable):
        return form
    told: JsonObject = {"numbers": list(form.numbers)}
    shown = text("document.chosen", numbers=", ".join(map(str, form.numbers)) or "-")
    return AssistantMessage(text=shown, thinking=message.thinking, opaque={"daiku": told})


def sections_chosen(state: State) -> SectionsChosen | Unreadable:
    """The parts that the run chose; Unreadable where it names one that there is not."""
    document = state.request.brief.document if state.request.brief is not None else None
    said = last_reply(state)
    told = said.opaque.get("daiku") if said is not None else None
    if document is None or not isinstance(told, dict):
        return Unreadable(text("roles.call_missing", tool="report__sections"))
    form = SectionsForm.model_validate(told)
    wrong = [str(number) for number in form.numbers if not 1 <= number <= document.parts]
    if wrong:
        return Unreadable(text("document.no_such_part", numbers=", ".join(wrong), count=document.parts))
    return SectionsChosen(numbers=tuple(sorted(set(form.numbers))))


def never(_: tuple[Message, ...]) -> None:
    """Return None: these roles say nothing without their model."""
    return


def asks_for(tool: ToolSpec) -> Text:
    """What a model is told that answered in words where `tool` was to be called."""
    return text("roles.call_missing", tool=tool.name.replace("/", "__"))


SECTIONS = Agent(
    "sections",
    Prompt("agents/sections"),
    part=Part(
        label=Label("Section picker", "対象の節の選択"),
        description="chooses the parts of a long document that a request is about",
        delegate=False,
        repeats=True,
        role=Role(
            by_tool(SECTIONS_TOOL, read_sections),
            never,
            prose=lambda _, __: Unreadable(asks_for(SECTIONS_TOOL)),
            tools=(SECTIONS_TOOL,),
        ),
        stage=Stage(sections_chosen, sections_request),
    ),
)
