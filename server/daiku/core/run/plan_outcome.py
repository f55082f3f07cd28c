"""The state of a plan at the end of a run: its progress, and the failure if it was to be finished."""

from __future__ import annotations

from daiku.core.proof.attempts import Attempts
from daiku.core.state.lessons import used_bullets
from daiku.core.state.state import State
from daiku.domain.errors import Failure
from daiku.domain.events import AgentEnd, RunFinished
from daiku.domain.messages import AssistantMessage
from daiku.domain.runs import TerminalStatus, UnverifiedReason
from daiku.domain.work.plans import Plan, PlanStanding
from daiku.texts.text import NO_TEXT, text


def unfinished(state: State) -> Failure | None:
    """Return why the plan or step that the run was asked to do is not completed; None if it is."""
    from daiku.core.proof.gate import progress_text  # when used
    from daiku.core.team.moves import plan_of  # when used

    plan = plan_of(state)
    wanted = state.request.brief.step_id if state.request.brief is not None else ""
    if plan is None:
        return Failure(kind="plan", message=text("run.no_plan"))
    left = [s for s in plan.steps if s.status != "completed" and wanted in ("", s.step_id)]
    if not left and plan.steps:
        return None
    return Failure(kind="plan", message=progress_text(plan, left), hint=text("run.resume_plan"))


def touched_plan(state: State) -> Plan | None:
    """The plan that a run worked, or last changed."""
    key = state.plans.last or (
        state.request.brief.plan.plan_id if state.request.brief and state.request.brief.plan else ""
    )
    return next((plan for plan in state.plans.all if plan.plan_id == key), None)


def plan_standing(state: State) -> PlanStanding | None:
    """How far the plan is that a run worked, or last changed."""
    plan = touched_plan(state)
    return plan.standing() if plan is not None else None


def _reasons(state: State) -> tuple[UnverifiedReason, ...]:
    """Return why the record does not support that the run is completed; a run that only answered has no such record."""
    request, tried, last = state.request, state.attempts, state.conversation.messages[-1:]
    only_answered = request.mode != "plan" and not (
        request.may_edit or state.done.commands or tried != Attempts()
    )
    marked = any(isinstance(message, AssistantMessage) and message.opaque for message in last)
    if only_answered and state.conversation.finish == "stop" and not marked:
        return ()
    from daiku.core.run.verdict import unverified_reasons  # when used

    return unverified_reasons(state)


def ending(state: State, status: TerminalStatus) -> tuple[AgentEnd, RunFinished]:
    """Build the last events of a run that ends with `status` in `state`: what its agent used itself, and how the
    run ended (as the record supports it), with what its nested runs used and which lessons were cited. A guardrail leaves no text of it."""
    reasons = _reasons(state) if status == "completed" else ()
    blocked = state.failure is not None and state.failure.kind == "guardrail"
    spent, said = state.spending, NO_TEXT if blocked else state.conversation.text
    finished = RunFinished(
        status="completed_unverified" if reasons else status,
        text=NO_TEXT if any(reason.kind == "unreadable_calls" for reason in reasons) else said,
        usage=spent.usage,
        plan=plan_standing(state),
        used_bullets=used_bullets(state),
        reasons=reasons,
    )
    return AgentEnd(usage=spent.own), finished
