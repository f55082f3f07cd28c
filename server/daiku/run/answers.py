"""The person's answers to a run's questions: checked against what was asked, recorded, and remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daiku.domain.errors import Failure, UsageError
from daiku.domain.events import ApprovalGiven, InputGiven
from daiku.run.rules.state.state import State
from daiku.run.run_log import RunLog
from daiku.texts.text import NO_TEXT, text

if TYPE_CHECKING:
    from daiku.guard.rules.policy import Policy


def asks(state: State, question: str) -> bool:
    """Whether the run asked the approval or input of that id."""
    approvals, inputs = state.questions.approvals.values(), state.questions.inputs.values()
    return any(a.approval_id == question for a in approvals) or any(i.input_id == question for i in inputs)


def check_answer(state: State, event: ApprovalGiven | InputGiven) -> None:
    """Raise UsageError where the run has ended, did not ask that, has its answer, or cannot use this one."""
    from daiku.edits.rules.changes.choose import why_unfit  # when used

    known = state.questions
    if isinstance(event, ApprovalGiven):
        asked = next((a for a in known.approvals.values() if a.approval_id == event.approval_id), None)
        answered, wrong = (
            event.approval_id in known.decisions,
            NO_TEXT if asked is None else why_unfit(asked, event),
        )
    else:
        asked = next((i for i in known.inputs.values() if i.input_id == event.input_id), None)
        answered, wrong = event.input_id in known.answers, NO_TEXT
    if asked is None:
        raise UsageError(Failure(kind="not_found", message=text("runs.not_asked")))
    if state.finished is not None:
        raise UsageError(Failure(kind="usage", message=text("runs.over", status=state.finished.status)))
    if answered:
        raise UsageError(Failure(kind="usage", message=text("runs.answered_already")))
    if wrong:
        hint = text("runs.still_open")
        raise UsageError(Failure(kind="usage", message=wrong, hint=hint))


def record_answer(log: RunLog, policy: Policy, event: ApprovalGiven | InputGiven) -> None:
    """Record the answer; a decision for always is remembered for the workspace."""
    if isinstance(event, ApprovalGiven) and event.decision in ("allow_always", "reject_always"):
        services, key = log.services, _grant_key(log, policy, event.approval_id)
        if key:
            answer = "allow" if event.decision == "allow_always" else "reject"
            services.grants.remember(services.workspace_key, key, answer)
    log.record(event)


def _grant_key(log: RunLog, policy: Policy, approval_id: str) -> str:
    """The key under which the decision on a pending call is remembered; empty where it cannot be."""
    from daiku.guard.rules.guard import verdict  # when used

    state = log.record.state
    asked = next(a for a in state.questions.approvals.values() if a.approval_id == approval_id)
    call = next((c for c in state.calls.pending if c.id == asked.call_id), None)
    spec = log.services.registry.spec(call.tool) if call is not None else None
    return "" if call is None or spec is None or not asked.remember else verdict(call, spec, policy).key
