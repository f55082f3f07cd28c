"""Answers to a run's questions: validated, recorded, and remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from daiku.domain.errors import Failure, UsageError
from daiku.domain.events import ApprovalGiven, InputGiven
from daiku.run.rules.state.state import State
from daiku.run.run_log import RunLog
from daiku.texts.text import NO_TEXT, text

if TYPE_CHECKING:
    from daiku.guard.rules.policy import Policy


def has_question(state: State, question: str) -> bool:
    """Return True if the run asked for the approval or input with this id."""
    approvals, inputs = state.questions.approvals.values(), state.questions.inputs.values()
    return any(a.approval_id == question for a in approvals) or any(i.input_id == question for i in inputs)


def check_answer(state: State, event: ApprovalGiven | InputGiven) -> None:
    """Raise UsageError unless the answer fits an open question of an unfinished run."""
    from daiku.edits.rules.changes.choose import explain_invalid_choice  # when used

    questions = state.questions
    if isinstance(event, ApprovalGiven):
        question = next((a for a in questions.approvals.values() if a.approval_id == event.approval_id), None)
        is_answered, problem = (
            event.approval_id in questions.decisions,
            NO_TEXT if question is None else explain_invalid_choice(question, event),
        )
    else:
        question = next((i for i in questions.inputs.values() if i.input_id == event.input_id), None)
        is_answered, problem = event.input_id in questions.answers, NO_TEXT
    if question is None:
        raise UsageError(Failure(kind="not_found", message=text("runs.not_asked")))
    if state.finished is not None:
        raise UsageError(Failure(kind="usage", message=text("runs.over", status=state.finished.status)))
    if is_answered:
        raise UsageError(Failure(kind="usage", message=text("runs.answered_already")))
    if problem:
        hint = text("runs.still_open")
        raise UsageError(Failure(kind="usage", message=problem, hint=hint))


def record_answer(log: RunLog, policy: Policy, event: ApprovalGiven | InputGiven) -> None:
    """Record the answer; permanent decisions are stored for the workspace."""
    if isinstance(event, ApprovalGiven) and event.decision in ("allow_always", "reject_always"):
        services, key = log.services, _grant_key(log, policy, event.approval_id)
        if key:
            answer = "allow" if event.decision == "allow_always" else "reject"
            services.grants.remember(services.workspace_key, key, answer)
    log.record(event)


def _grant_key(log: RunLog, policy: Policy, approval_id: str) -> str:
    """Return the key that stores the decision on a pending call; empty if it cannot be stored."""
    from daiku.guard.rules.guard import verdict  # when used

    state = log.record.state
    approval = next(a for a in state.questions.approvals.values() if a.approval_id == approval_id)
    call = next((c for c in state.calls.pending if c.id == approval.call_id), None)
    spec = log.services.registry.spec(call.tool) if call is not None else None
    return "" if call is None or spec is None or not approval.remember else verdict(call, spec, policy).key
