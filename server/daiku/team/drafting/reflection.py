"""The eval agent, which scores new paragraphs by a rubric (R1.66), and the agents that learn from evaluations (R1.67)."""

from __future__ import annotations

from pydantic import Field

from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.work.documents import Criterion, Evaluated, PatchMade, Rubric, Score
from daiku.domain.work.handovers import Brief
from daiku.edits.rules.changes.changemap import patch_between
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.handover_text import fence
from daiku.team.drafting.part_request import AnswerForm
from daiku.team.part import Machine, Part, Stage
from daiku.team.rules.drafting.moves import find_document, unfinished
from daiku.team.rules.drafting.reflection import (
    MOST_LESSONS,
    build_brief,
    format_lessons,
    next_move,
    parse_lessons,
)
from daiku.team.rules.drafting.rubric import BEST, compute_total, find_rubric
from daiku.texts.text import NO_TEXT, Text, text


class ScoreForm(Frozen):
    """Schema of the score of one criterion."""

    criterion: str = Field(description="its id")
    score: int = Field(ge=0, le=BEST, description="0 not met to 4 fully met")
    why: str = Field(default="", description="one sentence, with the words that show it")
    advice: str = Field(default="", description="below 4: what the writer should do otherwise next time")


class ScoresForm(Frozen):
    """Schema of an evaluation: each criterion once."""

    scores: tuple[ScoreForm, ...] = Field(min_length=1, description="one for each criterion")


class EvaluationVariables(Frozen):
    """Template variables of the evaluator's request; texts are fenced already."""

    request: str
    path: str
    rubric: str
    criteria: tuple[Criterion, ...]
    passages: str
    references: tuple[tuple[str, str], ...]


def build_evaluation_request(brief: Brief) -> str:
    """Build the evaluator's request."""
    document = brief.document
    if document is None:
        return brief.request
    rubric = find_rubric(document)
    return render(
        "agents/eval_request",
        EvaluationVariables(
            request=brief.request,
            path=document.path,
            rubric=rubric.name,
            criteria=rubric.criteria,
            passages=fence("\n\n[…]\n\n".join(document.passages), "~"),
            references=tuple(
                (reference.source, fence(reference.text, "~")) for reference in document.references
            ),
        ),
    ).strip()


def check_criteria(form: ScoresForm, brief: Brief | None) -> Text:
    """Return an error unless the scores have each criterion exactly once; empty if they do."""
    if brief is None or brief.document is None:
        return NO_TEXT
    scored = [item.criterion for item in form.scores]
    required = [item.id for item in find_rubric(brief.document).criteria]
    if sorted(scored) == sorted(required):
        return NO_TEXT
    return text("document.other_criteria", given=", ".join(scored), wanted=", ".join(required))


SCORES = AnswerForm(
    ScoresForm,
    "report/scores",
    "End your work with the scores, each criterion once.",
    lambda form: Text(", ".join(f"{each.criterion} {each.score}/{BEST}" for each in form.scores)),
    check_criteria,
)


def build_evaluation(state: State) -> Evaluated | Unreadable:
    """Return the scores with their weighted total."""
    document, form = find_document(state), SCORES.find_answer(state)
    if document is None or form is None:
        return SCORES.missing
    rubric: Rubric = find_rubric(document)
    scores = tuple(Score(**dict(score)) for score in form.scores)
    return Evaluated(scores=scores, total=round(compute_total(rubric, scores), 4))


EVAL = Agent(
    "eval",
    Prompt("agents/eval"),
    part=Part(
        label=Label("Evaluator", "評価担当"),
        description="judges a text by a rubric",
        delegate=False,
        repeats=True,
        role=SCORES.role,
        stage=Stage(build_evaluation, build_evaluation_request),
    ),
)


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
