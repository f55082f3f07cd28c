"""Agents that are one call of a tool without a model: the search of references (R1.62) and the guard (R1.63-R1.65)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from daiku.domain.errors import Failure
from daiku.domain.labels import Label
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolCall
from daiku.domain.work.documents import ReferencesFound, SimilarityFound
from daiku.domain.work.handovers import Brief
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.rules.state.machine import EndRun, MakeCall, Move
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.part import Machine, Part, Stage
from daiku.team.rules.drafting.moves import unfinished
from daiku.team.rules.record import AnsweredCall, answered_calls
from daiku.texts.text import as_text, text

T = TypeVar("T", ReferencesFound, SimilarityFound)


def _tool_part(tool: str, kind: type[T], label: Label, description: str) -> Part:
    """Build the part of an agent that calls `tool` once, without a model, and hands over its result as a `kind`."""

    def handover(state: State) -> T | Unreadable:
        done = _answer(state, tool)
        try:
            return kind.model_validate_json(done.text if done is not None else "")
        except ValidationError:
            return Unreadable(as_text(done.text) if done is not None else text("roles.no_answer"))

    return Part(
        label=label,
        description=description,
        delegate=False,
        stage=Stage(handover),
        machine=Machine(_calls_once(tool), _no_brief, unfinished),
    )


def _calls_once(tool: str) -> Callable[[State, ApprovalMode, Failure | None], Move]:
    """The machine of a stage that calls `tool` and ends."""

    def next_move(state: State, _approvals: ApprovalMode, _refused: Failure | None) -> Move:
        done = _answer(state, tool)
        if done is None:
            return MakeCall(ToolCall(tool=tool))
        return (
            EndRun(text("document.looked")) if done.ok else Failure(kind="tool", message=as_text(done.text))
        )

    return next_move


def _answer(state: State, tool: str) -> AnsweredCall | None:
    return next((taken for taken in answered_calls(state) if taken.call.tool == tool), None)


def _no_brief(_state: State, _agent: str, request: str) -> Brief:
    """Return a bare brief: these stages hand nothing on."""
    return Brief(request=request)


REFERENCE = Agent(
    "reference",
    Prompt("team/coordinator"),
    tools=("document/references",),
    part=_tool_part(
        "document/references",
        ReferencesFound,
        Label("Reference", "参照担当"),
        "finds passages of the workspace's references that are near to a text",
    ),
)
GUARD = Agent(
    "guard",
    Prompt("team/coordinator"),
    tools=("document/similarity",),
    part=_tool_part(
        "document/similarity",
        SimilarityFound,
        Label("Guard", "類似度の確認担当"),
        "compares a text with the workspace's references",
    ),
)
