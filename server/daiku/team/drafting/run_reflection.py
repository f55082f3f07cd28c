"""Agents that learn from ended runs (ACE): the Reflector (B3.3) and the Curator (B3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ConfigDict, Field

from daiku.domain.base import Frozen
from daiku.domain.held import BulletTag, CurationOperation, Lesson, OperationType, Reflection, Tag
from daiku.domain.labels import Label
from daiku.playbook.rules.sections import SECTIONS
from daiku.prompts import render
from daiku.run.rules.outside import FoundLesson
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.handover_text import fence
from daiku.team.drafting.part_request import AnswerForm
from daiku.team.part import Part
from daiku.texts.text import text

MOST_INSIGHTS = 6
LONGEST_INSIGHT = 2_000
"""Maximum length of an insight in characters. One that is too long for a lesson needs review anyway."""
LONGEST_WORDS = 4_000


class TagForm(Frozen):
    """Verdict on one lesson."""

    model_config = ConfigDict(extra="ignore")

    id: str = Field(description="its id, such as batc-00001")
    tag: Tag = Field(description="helpful, harmful or neutral")


class ReflectionForm(Frozen):
    """Result of reflecting on a run."""

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


REFLECTION_ANSWER = AnswerForm(
    ReflectionForm,
    "report/reflection",
    "End your work with what the run shows.",
    lambda form: text("playbook.reflected", count=len(form.insights or ())),
)


def build_reflection_request(
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
        label=Label("Reflector", "振り返り担当"),
        description="looks at a run that has ended, for lessons",
        delegate=False,
        role=REFLECTION_ANSWER.role,
    ),
)


MOST_OPERATIONS = 8
LONGEST_CONTENT = 2_000


class OperationForm(Frozen):
    """One change of the playbook."""

    model_config = ConfigDict(extra="ignore")

    type: OperationType = Field(description="what is done")
    section: str = Field(default="", description="ADD: " + ", ".join(SECTIONS))
    content: str = Field(default="", description="ADD, UPDATE, MERGE: the lesson, one sentence")
    id: str = Field(default="", description="UPDATE, REMOVE: the lesson that is changed")
    ids: tuple[str, ...] = Field(
        default=(), description="MERGE: the lessons that say the same, the one that stays first"
    )


class CurationForm(Frozen):
    """The changes that the insights come to."""

    model_config = ConfigDict(extra="ignore")

    reasoning: str = Field(default="", description="how you come to it, in a few sentences")
    operations: tuple[OperationForm, ...] = Field(
        default=(), description="few; [] where all is known already"
    )


class CurationVariables(Frozen):
    """Variables of the Curator's prompt; texts are fenced. `lessons`: id, section, and text of each."""

    insights: str
    lessons: tuple[tuple[str, str, str], ...]
    sections: tuple[str, ...]


CURATION_ANSWER = AnswerForm(
    CurationForm,
    "report/curation",
    "End your work with the changes of the playbook.",
    lambda form: text("playbook.curated", count=len(form.operations)),
)


def build_curation_request(insights: Sequence[str], lessons: Sequence[FoundLesson]) -> str:
    """Return the request to the Curator, with the lessons of the playbook that are similar to the insights."""
    lines = "\n".join(f"- {' '.join(each.split())}" for each in insights)
    return render(
        "agents/curator_request",
        CurationVariables(
            insights=fence(lines, "~"),
            lessons=tuple(
                (each.lesson.id, each.section, " ".join(each.lesson.text.split())) for each in lessons
            ),
            sections=SECTIONS,
        ),
    ).strip()


def parse_operations(form: CurationForm, lessons: Sequence[FoundLesson]) -> tuple[CurationOperation, ...]:
    """Return the requested operations, validated and limited in number and length.

    An update of a lesson that the Curator did not receive becomes an addition; other operations on it are
    left out.
    """
    ids = {each.lesson.id for each in lessons}
    operations: list[CurationOperation] = []
    for each in form.operations:
        content = each.content.strip()[:LONGEST_CONTENT]
        merge_ids = tuple(dict.fromkeys(name for name in each.ids if name in ids))
        match each.type:
            case "ADD" | "UPDATE" if content:
                target = each.id if each.type == "UPDATE" and each.id in ids else ""
                kind: OperationType = "UPDATE" if target else "ADD"
                operations.append(
                    CurationOperation(type=kind, section=each.section, content=content, id=target)
                )
            case "MERGE" if len(merge_ids) > 1:
                operations.append(CurationOperation(type="MERGE", content=content, ids=merge_ids))
            case "REMOVE" if each.id in ids:
                operations.append(CurationOperation(type="REMOVE", id=each.id))
            case _:
                pass
    return tuple(operations[:MOST_OPERATIONS])


CURATOR = Agent(
    "curator",
    Prompt("agents/curator"),
    part=Part(
        label=Label("Curator", "整理担当"),
        description="says which changes of the playbook insights come to",
        delegate=False,
        role=CURATION_ANSWER.role,
    ),
)
