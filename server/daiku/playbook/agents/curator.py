"""The Curator: turns insights into changes of the playbook (B3.4)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ConfigDict, Field

from daiku.domain.base import Frozen
from daiku.domain.held import CurationOperation, OperationType
from daiku.domain.labels import Label
from daiku.playbook.rules.sections import SECTIONS
from daiku.prompts import render
from daiku.run.rules.outside import FoundLesson
from daiku.team.agent import Agent, Prompt
from daiku.team.coding.handover_text import fence
from daiku.team.drafting.answer_form import AnswerForm
from daiku.team.part import Part
from daiku.texts.text import text

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


ANSWER = AnswerForm(
    CurationForm,
    "report/curation",
    "End your work with the changes of the playbook.",
    lambda form: text("playbook.curated", count=len(form.operations)),
)


def build_request(insights: Sequence[str], lessons: Sequence[FoundLesson]) -> str:
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
        label=Label("Curator", "整理役"),
        description="says which changes of the playbook insights come to",
        delegate=False,
        role=ANSWER.role,
    ),
)
