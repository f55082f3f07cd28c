"""The eval agent: judges the new paragraphs of a document by a rubric, each criterion with a score (R1.66)."""

from __future__ import annotations

from pydantic import Field

from daiku.domain.base import Frozen
from daiku.domain.labels import Label
from daiku.domain.work.documents import Criterion, Evaluated, Rubric, Score
from daiku.domain.work.handovers import Brief
from daiku.models.rules.replies.parse import Unreadable
from daiku.prompts import render
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.handover_text import fence
from daiku.team.drafting.answer_form import AnswerForm
from daiku.team.part import Part, Stage
from daiku.team.rules.drafting.moves import document_of
from daiku.team.rules.drafting.rubric import BEST, rubric_of, total
from daiku.texts.text import NO_TEXT, Text, text


class ScoreForm(Frozen):
    """The score of one criterion."""

    criterion: str = Field(description="its id")
    score: int = Field(ge=0, le=BEST, description="0 not met to 4 fully met")
    why: str = Field(default="", description="one sentence, with the words that show it")
    advice: str = Field(default="", description="below 4: what the writer should do otherwise next time")


class ScoresForm(Frozen):
    """The judgement of a text: each criterion once."""

    scores: tuple[ScoreForm, ...] = Field(min_length=1, description="one for each criterion")


class EvaluationVariables(Frozen):
    """What is judged, and by what; texts are fenced already."""

    request: str
    path: str
    rubric: str
    criteria: tuple[Criterion, ...]
    passages: str
    references: tuple[tuple[str, str], ...]


def evaluation_request(brief: Brief) -> str:
    """The request to the evaluator."""
    document = brief.document
    if document is None:
        return brief.request
    rubric = rubric_of(document)
    return render(
        "team/eval_request",
        EvaluationVariables(
            request=brief.request,
            path=document.path,
            rubric=rubric.name,
            criteria=rubric.criteria,
            passages=fence("\n\n[…]\n\n".join(document.passages), "~"),
            references=tuple((each.source, fence(each.text, "~")) for each in document.references),
        ),
    ).strip()


def not_the_rubric(form: ScoresForm, brief: Brief | None) -> Text:
    """What is wrong with scores that are not one for each criterion; empty where nothing is."""
    if brief is None or brief.document is None:
        return NO_TEXT
    given = [each.criterion for each in form.scores]
    wanted = [each.id for each in rubric_of(brief.document).criteria]
    if sorted(given) == sorted(wanted):
        return NO_TEXT
    return text("document.other_criteria", given=", ".join(given), wanted=", ".join(wanted))


SCORES = AnswerForm(
    ScoresForm,
    "report/scores",
    "End your work with the scores, each criterion once.",
    lambda form: Text(", ".join(f"{each.criterion} {each.score}/{BEST}" for each in form.scores)),
    not_the_rubric,
)


def evaluated(state: State) -> Evaluated | Unreadable:
    """The scores with their weighted total."""
    document, form = document_of(state), SCORES.given(state)
    if document is None or form is None:
        return SCORES.missing
    rubric: Rubric = rubric_of(document)
    scores = tuple(Score(**dict(each)) for each in form.scores)
    return Evaluated(scores=scores, total=round(total(rubric, scores), 4))


EVAL = Agent(
    "eval",
    Prompt("team/eval"),
    part=Part(
        label=Label("Eval", "評価担当"),
        description="judges a text by a rubric",
        delegate=False,
        repeats=True,
        role=SCORES.role,
        stage=Stage(evaluated, evaluation_request),
    ),
)
