"""The agents that learn from evaluations: one writes the lessons, one proposes their file (R1.67)."""

from __future__ import annotations

from pydantic import Field

from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.work.documents import PatchMade
from daiku.domain.work.handovers import Brief
from daiku.edits.rules.changes.changemap import patch_between
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.handover_text import fence
from daiku.team.drafting.answer_form import AnswerForm
from daiku.team.part import Machine, Part, Stage
from daiku.team.rules.drafting.moves import find_document, unfinished
from daiku.team.rules.drafting.reflection import (
    MOST_LESSONS,
    build_brief,
    format_lessons,
    next_move,
    parse_lessons,
)
from daiku.texts.text import text


class LessonsForm(Frozen):
    """Schema of the lessons file's content."""

    lessons: tuple[str, ...] = Field(
        max_length=MOST_LESSONS,
        description="one sentence each, those that still hold and new ones, the most useful first",
    )


ANSWER = AnswerForm(
    LessonsForm,
    "report/lessons",
    "End your work with all lessons that shall hold from now on.",
    lambda form: text("document.lessons", count=len(form.lessons)),
)


class LessonsVariables(Frozen):
    """Template variables: evaluations, and the lessons so far; fenced already."""

    lessons: str
    evidence: str


def build_lessons_request(brief: Brief) -> str:
    """Build the request to the agent that writes the lessons."""
    if brief.document is None:
        return brief.request
    so_far = "\n".join(f"- {lesson}" for lesson in parse_lessons(brief.document.text))
    evidence = fence("\n\n".join(brief.document.passages), "~")
    return render(
        "agents/lessons_request",
        LessonsVariables(lessons=fence(so_far, "~") if so_far else "", evidence=evidence),
    ).strip()


def build_lessons_patch(state: State) -> PatchMade | Unreadable:
    """Return the patch of the lessons file."""
    document, form = find_document(state), ANSWER.find_answer(state)
    if document is None or form is None:
        return ANSWER.missing
    lessons = tuple(lesson for lesson in form.lessons if lesson.strip())
    new = document.text if lessons == parse_lessons(document.text) else format_lessons(lessons)
    return PatchMade(patch=patch_between(document.text, new))


LESSONS = Agent(
    "lessons",
    Prompt("agents/lessons"),
    part=Part(
        label=Label("Lesson writer", "教訓の作成担当"),
        description="draws lessons for writers from judgements of texts",
        delegate=False,
        role=ANSWER.role,
        stage=Stage(build_lessons_patch, build_lessons_request),
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
        machine=Machine(next_move, build_brief, unfinished),
    ),
)
