"""The Reflector: finds what went wrong in an ended run, why, and what to remember (B3.3)."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from daiku.domain.base import Frozen
from daiku.domain.held import BulletTag, Lesson, Reflection, Tag
from daiku.domain.labels import Label
from daiku.prompts import render
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.handover_text import fence
from daiku.team.drafting.answer_form import AnswerForm
from daiku.team.part import Part
from daiku.texts.text import text

MOST_INSIGHTS = 6
LONGEST_INSIGHT = 2_000
"""Maximum length of an insight in characters. One that is too long for a lesson needs review anyway."""
LONGEST_WORDS = 4_000


class TagForm(Frozen):
    """What one lesson was worth."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field(description="its id, such as batc-00001")
    tag: Tag = Field(description="helpful, harmful or neutral")


class ReflectionForm(Frozen):
    """What a look at the run came to."""

    model_config = ConfigDict(extra="ignore")

    reasoning: str = Field(default="", description="how you come to it, in a few sentences")
    error_identification: str = Field(default="", description="what went wrong; empty where nothing did")
    root_cause_analysis: str = Field(default="", description="why it did")
    correct_approach: str = Field(default="", description="what would have been right")
    key_insight: str = Field(default="", description="the one thing to remember")
    insights: tuple[str, ...] | None = Field(
        default=None,
        description="lessons for later runs, one sentence each, the most useful first; [] where there are none",
    )
    tags: tuple[TagForm, ...] = Field(default=(), description="each lesson that the run was told, once")


class ReflectionVariables(Frozen):
    """Variables of the Reflector's prompt; texts are fenced. `before`: its previous reflection as JSON."""

    run: str
    lessons: tuple[tuple[str, str], ...]
    cited: tuple[str, ...]
    before: str = ""


ANSWER = AnswerForm(
    ReflectionForm,
    "report/reflection",
    "End your work with what the run shows.",
    lambda form: text("playbook.reflected", count=len(form.insights or ())),
)


def build_request(
    run: str, lessons: tuple[Lesson, ...], cited: tuple[str, ...], before: Reflection | None
) -> str:
    """Return the request to the Reflector."""
    earlier = before.model_dump_json(by_alias=False, exclude_defaults=True) if before is not None else ""
    return render(
        "agents/reflector_request",
        ReflectionVariables(
            run=fence(run, "~"),
            lessons=tuple((each.id, " ".join(each.text.split())) for each in lessons),
            cited=cited,
            before=fence(earlier, "~") if earlier else "",
        ),
    ).strip()


def parse_reflection(form: ReflectionForm, lessons: tuple[Lesson, ...]) -> Reflection:
    """Return the reflection, validated and limited in number and length.

    Tags of lessons that the run did not receive are left out. Without a list of insights, the key insight is
    used.
    """
    ids = {each.id for each in lessons}
    insights = tuple(
        dict.fromkeys(each.strip()[:LONGEST_INSIGHT] for each in form.insights or () if each.strip())
    )
    key = form.key_insight.strip()[:LONGEST_INSIGHT]
    tags: dict[str, Tag] = {each.id: each.tag for each in form.tags if each.id in ids}
    return Reflection(
        reasoning=form.reasoning[:LONGEST_WORDS],
        error_identification=form.error_identification[:LONGEST_WORDS],
        root_cause_analysis=form.root_cause_analysis[:LONGEST_WORDS],
        correct_approach=form.correct_approach[:LONGEST_WORDS],
        key_insight=key,
        insights=((key,) if key and form.insights is None else insights)[:MOST_INSIGHTS],
        tags=tuple(BulletTag(id=name, tag=tag) for name, tag in tags.items()),
    )


REFLECTOR = Agent(
    "reflector",
    Prompt("agents/reflector"),
    part=Part(
        label=Label("Reflector", "振り返り役"),
        description="looks at a run that has ended, for lessons",
        delegate=False,
        role=ANSWER.role,
    ),
)
