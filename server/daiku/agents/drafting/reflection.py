"""The agents that learn from judgements of finished work: one writes the lessons, one proposes their file (R1.67)."""

from __future__ import annotations

from pydantic import Field

from daiku.agents.agent import Agent, Prompt
from daiku.agents.coding.handover_text import fenced
from daiku.agents.drafting.draft import asks_for, last_reply, never
from daiku.agents.form_tool import by_tool
from daiku.agents.part import Machine, Part, Stage
from daiku.agents.role import Role
from daiku.core.calls.arguments import schema_of
from daiku.core.changes.changemap import patch_between
from daiku.core.drafting.moves import unfinished
from daiku.core.drafting.reflection import MOST_LESSONS, brief_of, lessons_in, lessons_text, next_move
from daiku.core.replies.parse import Unreadable, read_json
from daiku.core.state.state import State
from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.messages import AssistantMessage, Message
from daiku.domain.tools import ToolSpec
from daiku.domain.work.documents import PatchMade
from daiku.domain.work.handovers import Brief
from daiku.prompts import render
from daiku.texts.text import text


class LessonsForm(Frozen):
    """The lessons as they are to stand in the file."""

    lessons: tuple[str, ...] = Field(
        max_length=MOST_LESSONS,
        description="one sentence each, those that still hold and new ones, the most useful first",
    )


SPEC = ToolSpec(
    name="report/lessons",
    description="End your work with all lessons that shall hold from now on.",
    parameters=schema_of(LessonsForm),
    effect="none",
)


class LessonsVariables(Frozen):
    """What judgements say, and the lessons so far; fenced already."""

    lessons: str
    evidence: str


def lessons_request(brief: Brief) -> str:
    """The request to the agent that writes the lessons."""
    if brief.document is None:
        return brief.request
    so_far = "\n".join(f"- {lesson}" for lesson in lessons_in(brief.document.text))
    evidence = fenced("\n\n".join(brief.document.passages), "~")
    return render(
        "agents/lessons_request",
        LessonsVariables(lessons=fenced(so_far, "~") if so_far else "", evidence=evidence),
    ).strip()


def read(
    message: AssistantMessage, _messages: tuple[Message, ...], cut: bool
) -> AssistantMessage | Unreadable:
    """The lessons that a reply holds."""
    form = read_json(message.text, LessonsForm.model_validate, cut=cut)
    if isinstance(form, Unreadable):
        return form
    shown = text("document.lessons", count=len(form.lessons))
    return AssistantMessage(
        text=shown, thinking=message.thinking, opaque={"daiku": form.model_dump(mode="json")}
    )


def lessons_made(state: State) -> PatchMade | Unreadable:
    """The patch of the file of lessons."""
    document = state.request.brief.document if state.request.brief is not None else None
    said = last_reply(state)
    told = said.opaque.get("daiku") if said is not None else None
    if document is None or not isinstance(told, dict):
        return Unreadable(asks_for(SPEC))
    lessons = tuple(lesson for lesson in LessonsForm.model_validate(told).lessons if lesson.strip())
    new = document.text if lessons == lessons_in(document.text) else lessons_text(lessons)
    return PatchMade(patch=patch_between(document.text, new))


LESSONS = Agent(
    "lessons",
    Prompt("agents/lessons"),
    part=Part(
        label=Label("Lessons", "教訓"),
        description="draws lessons for writers from judgements of texts",
        delegate=False,
        role=Role(by_tool(SPEC, read), never, prose=lambda _, __: Unreadable(asks_for(SPEC)), tools=(SPEC,)),
        stage=Stage(lessons_made, lessons_request),
    ),
)
REFLECTION = Agent(
    "reflection",
    Prompt("agents/coordinator"),
    tools=("agent/handoff", "document/apply"),
    part=Part(
        label=Label("Reflection", "振り返り"),
        description="proposes lessons for the drafting agents from all judgements of a workspace",
        delegate=False,
        machine=Machine(next_move, brief_of, unfinished),
    ),
)
