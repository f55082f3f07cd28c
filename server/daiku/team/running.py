"""Result of an agent's run, and the options of its Runner; the Runner itself is in `daiku.library`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from typing import Any, TypeAlias, TypedDict, cast, get_args

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure
from daiku.domain.events import ApprovalAsked, ApprovalDecision
from daiku.domain.messages import Usage
from daiku.domain.runs import ClientApprovals, RunLimits, RunStatus, UnverifiedReason
from daiku.domain.work.plans import PlanStanding
from daiku.models.families import Model
from daiku.run.rules.outside import Guard, Remembers
from daiku.texts.text import Text

MODES = get_args(ClientApprovals)
DECISIONS: tuple[str, ...] = get_args(ApprovalDecision)
Approves: TypeAlias = Callable[[ApprovalAsked], Awaitable[ApprovalDecision]]
"""Async function that decides on a run's approval requests."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a run (PROTOCOL 6), also of a failed one: `status` says so, `error` says why.

    `output` is the value of the agent's `output` type; None without one, or if the run did not complete. `usage` counts
    tokens, its `cost` is in USD. `unattended`: a call was denied because nobody was there to approve it. `plan` is the
    plan that the run worked on, `last_seq` the number of its last chunk. `reasons` says why a run is
    `completed_unverified`. `unchecked`: no check passed after the last change. `run_id` continues a paused run,
    `session_id` the conversation.
    """

    text: Text
    output: Any
    status: RunStatus
    usage: Usage
    error: Failure | None
    run_id: str
    session_id: str
    last_seq: int = 0
    plan: PlanStanding | None = None
    unattended: bool = False
    reasons: tuple[UnverifiedReason, ...] = ()
    unchecked: bool = False


class RunnerOptions(TypedDict, total=False):
    """Keyword arguments of a Runner; all are optional."""

    model: str | Model
    workspace: str | PathLike[str] | None
    store: str | PathLike[str] | None
    approvals: ClientApprovals | Approves
    guardrails: Sequence[Guard]
    router: Any
    memory: Remembers | None
    limits: RunLimits | Mapping[str, Any] | None
    settings: Mapping[str, Any] | None
    trace: Any
    """A TraceLogger, or the path to write to; its type would make every import slower."""


def build_runner(options: RunnerOptions) -> Any:
    """Return a `Runner` for one run of an agent."""
    # Imported when used: the Runner is in a higher layer, and its imports are slow.
    return import_module("daiku").Runner(**options)


def check_decisions(wrong: Sequence[object]) -> None:
    """Raise ValueError if the approvals function returned anything but a decision."""
    if wrong:
        raise ValueError(
            f"Runner: `approvals` returns one of {', '.join(DECISIONS)}, not {wrong[0]!r:.80}; the call was rejected."
        )


def check_approvals(approvals: object) -> ClientApprovals | Approves:
    """Return the approvals of a Runner. Raises ValueError."""
    if callable(approvals) and not isinstance(approvals, type):
        return cast("Approves", approvals)
    if approvals not in MODES:
        raise ValueError(
            f"Runner: `approvals` is one of {', '.join(MODES)} or an async function, not {approvals!r:.80}."
        )
    return cast("ClientApprovals", approvals)


def check_request_text(value: object) -> str:
    """Return the text of a request. Raises TypeError or ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"Runner.run: `text` is a text, not {type(value).__name__}.")
    if not value.strip():
        raise ValueError("Runner.run: `text` is empty; say what is to be done.")
    return value
