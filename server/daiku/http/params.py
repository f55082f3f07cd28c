"""What requests carry: bodies and queries."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from daiku.domain.base import Wire
from daiku.domain.events import ApprovalDecision
from daiku.domain.runs import ClientApprovals, ContextItem, Mode, RunLimits

MAX_SEQ = 2**53 - 1
"""The largest number that every JSON reader knows exactly (C1.10)."""
Seq = Annotated[int, Field(ge=0, le=MAX_SEQ)]
Id = Annotated[str, Field(min_length=1, max_length=200)]


class SessionStart(Wire):
    """`POST /v1/sessions`."""

    title: Annotated[str, Field(max_length=1000)] | None = None


class SessionQuery(Wire):
    """`GET /v1/sessions`."""

    query: str = ""
    limit: Annotated[int, Field(ge=1, le=1000)] = 50


class TailQuery(Wire):
    """Behind which chunk to go on; in an address `after_seq`."""

    after_seq: Seq = 0


class RunStart(Wire):
    """`POST /v1/sessions/{id}/runs`."""

    text: str
    agent: Id = "coordinator"
    mode: Mode = "act"
    model: str | None = None
    context: tuple[ContextItem, ...] = ()
    approvals: ClientApprovals = "ask"
    limits: RunLimits | None = None

    @field_validator("text")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("say what to do")
        return value


class RunRef(Wire):
    """`POST /v1/runs/{id}/pause` and `…/cancel`; the id stands in the address."""

    run_id: Id


class RunResume(RunRef):
    """`POST /v1/runs/{id}/resume`."""

    approvals: ClientApprovals = "ask"
    model: str = ""


class RunApprove(RunRef):
    """`POST /v1/runs/{id}/approve`."""

    approval_id: Id
    decision: ApprovalDecision
    feedback: str | None = None
    hunks: tuple[int, ...] | None = None


class RunAnswer(RunRef):
    """`POST /v1/runs/{id}/answer`."""

    input_id: Id
    text: str


class RunSteer(RunRef):
    """`POST /v1/runs/{id}/steer`."""

    text: str
