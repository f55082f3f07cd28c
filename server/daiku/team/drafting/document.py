"""The document agent, and agents without a model that call one tool: reference search (R1.62), guard (R1.63-R1.65)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from daiku.domain.errors import Failure
from daiku.domain.labels import Label
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolCall
from daiku.domain.work.documents import PatchMade, ReferencesFound, SimilarityFound
from daiku.domain.work.handovers import Brief
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.rules.state.machine import EndRun, MakeCall, Move
from daiku.run.rules.state.state import State
from daiku.team.agent import Agent, Prompt
from daiku.team.part import Machine, Part, Stage
from daiku.team.rules.drafting.moves import build_brief, find_document, next_move, unfinished
from daiku.team.rules.drafting.progress import find_progress, merge_work
from daiku.team.rules.record import AnsweredCall, list_answered_calls
from daiku.texts.text import as_text, text

T = TypeVar("T", ReferencesFound, SimilarityFound)


def _build_part(tool: str, kind: type[T], label: Label, description: str) -> Part:
    """Build the part of an agent that calls `tool` once without a model; its handover is the result as a `kind`."""

    def handover(state: State) -> T | Unreadable:
        entry = _find_answer(state, tool)
        try:
            return kind.model_validate_json(entry.text if entry is not None else "")
        except ValidationError:
            return Unreadable(as_text(entry.text) if entry is not None else text("roles.no_answer"))

    return Part(
        label=label,
        description=description,
        delegate=False,
        stage=Stage(handover),
        machine=Machine(_build_single_call(tool), _build_bare_brief, unfinished),
    )


def _build_single_call(tool: str) -> Callable[[State, ApprovalMode, Failure | None], Move]:
    """Build the state machine of a stage that calls `tool` and ends."""

    def next_move(state: State, _approvals: ApprovalMode, _model_failure: Failure | None) -> Move:
        entry = _find_answer(state, tool)
        if entry is None:
            return MakeCall(ToolCall(tool=tool))
        return (
            EndRun(text("document.looked")) if entry.ok else Failure(kind="tool", message=as_text(entry.text))
        )

    return next_move


def _find_answer(state: State, tool: str) -> AnsweredCall | None:
    return next((entry for entry in list_answered_calls(state) if entry.call.tool == tool), None)


def _build_bare_brief(_state: State, _agent: str, request: str) -> Brief:
    """Return a bare brief: these stages pass no results on."""
    return Brief(request=request)


REFERENCE = Agent(
    "reference",
    Prompt("agents/coordinator"),
    tools=("document/references",),
    part=_build_part(
        "document/references",
        ReferencesFound,
        Label("Reference finder", "参照担当"),
        "finds passages of the workspace's references that are near to a text",
    ),
)
GUARD = Agent(
    "guard",
    Prompt("agents/coordinator"),
    tools=("document/similarity",),
    part=_build_part(
        "document/similarity",
        SimilarityFound,
        Label("Similarity checker", "類似度の確認担当"),
        "compares a text with the workspace's references",
    ),
)


def build_document_patch(state: State) -> PatchMade | Unreadable:
    """Return the patch of the complete document, as the handover to the calling agent."""
    document = find_document(state)
    if document is None:
        return Unreadable(text("document.none"))
    return PatchMade(patch=merge_work(find_progress(state, document)).patch)


DOCUMENT = Agent(
    "document",
    Prompt("agents/coordinator"),
    tools=("agent/handoff", "document/*"),
    part=Part(
        label=Label("Document writer", "文書担当"),
        description="revises a document by draft, style, reference, guard and evaluation",
        delegate=False,
        repeats=True,
        stage=Stage(build_document_patch),
        machine=Machine(next_move, build_brief, unfinished),
    ),
)
