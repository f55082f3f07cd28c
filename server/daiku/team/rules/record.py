"""The answered tool calls of a team's run, in order, each with its outcome."""

from __future__ import annotations

from typing import NamedTuple

from daiku.domain.events import HandoffEnd
from daiku.domain.messages import AssistantMessage, ToolMessage
from daiku.domain.tools import Outcome, ToolCall
from daiku.domain.work.plans import Plan, Step
from daiku.run.rules.state.state import State
from daiku.team.rules.plans.transitions import find_step


class AnsweredCall(NamedTuple):
    """A call that was answered; `back` is what a nested run handed back for it."""

    call: ToolCall
    outcome: Outcome | None
    text: str
    back: HandoffEnd | None = None

    @property
    def ok(self) -> bool:
        """Whether the call was carried out as asked."""
        return self.outcome == "done"

    @property
    def agent(self) -> str:
        """Whom the call handed over to; empty for every other call."""
        return str(self.call.args.get("agent", "")) if self.call.tool == "agent/handoff" else ""

    @property
    def step_update(self) -> tuple[str, str] | None:
        """The step and the status of a plan/update_step that was carried out."""
        if self.call.tool != "plan/update_step" or not self.ok:
            return None
        return str(self.call.args.get("step_id")), str(self.call.args.get("status"))


def answered_calls(state: State) -> tuple[AnsweredCall, ...]:
    """The answered calls of this run."""
    mine = state.conversation.messages[state.conversation.start :]
    calls = {call.id: call for m in mine if isinstance(m, AssistantMessage) for call in m.calls}
    backs = {back.call_id: back for back in state.nested.returned}
    return tuple(
        AnsweredCall(calls[m.call_id], m.outcome, m.text, backs.get(m.call_id))
        for m in mine
        if isinstance(m, ToolMessage) and m.call_id in calls
    )


def rejected(state: State, taken: AnsweredCall) -> bool:
    """Return True if the person rejected the call, or what its nested run wanted, and nothing came of it."""
    asked = state.questions.approvals.get(taken.call.id)
    given = state.questions.decisions.get(asked.approval_id) if asked is not None else None
    if given is not None and given.decision in ("reject_once", "reject_always"):
        return True
    back = taken.back
    if back is None or taken.agent not in ("coder", "runner"):
        return False
    if not back.rejected and not any(call.outcome == "unattended" for call in back.refused):
        return False
    return back.deeds is None or not (back.deeds.files or any(c.exit_code == 0 for c in back.deeds.commands))


def number(plan: Plan, step: Step) -> int:
    """The step's place in the plan, from 1."""
    return plan.steps.index(step) + 1


def begins(log: tuple[AnsweredCall, ...], step: Step) -> bool:
    """Whether this run began the step."""
    return any(t.step_update == (step.step_id, "in_progress") for t in log)


def since_begun(log: tuple[AnsweredCall, ...], step: Step) -> tuple[AnsweredCall, ...]:
    """What was done since the step was begun; all where this run did not begin it."""
    begun = [i for i, t in enumerate(log) if t.step_update == (step.step_id, "in_progress")]
    return log[begun[-1] + 1 :] if begun else log


def calls_for_step(log: tuple[AnsweredCall, ...], plan: Plan, step: Step) -> tuple[AnsweredCall, ...]:
    """Return the calls since another step was last completed or failed; all if none was."""
    moves = [(i, *t.step_update) for i, t in enumerate(log) if t.step_update is not None]
    ends = [i for i, name, to in moves if to in ("completed", "failed") and find_step(plan, name) != step]
    return log[ends[-1] :] if ends else log


def since_work(log: tuple[AnsweredCall, ...]) -> tuple[AnsweredCall, ...]:
    """Return the calls after the last handoff to coder, runner or planner; all if there is none."""
    last = [n for n, t in enumerate(log) if t.agent in WORKERS or t.call.tool == "agent/parallel"]
    return log[last[-1] + 1 :] if last else log


WORKERS = ("coder", "runner", "planner")


def since(log: tuple[AnsweredCall, ...], agent: str) -> tuple[AnsweredCall, ...]:
    """Return the calls from the last handoff to `agent` on; there must be one."""
    return log[max(i for i, t in enumerate(log) if t.agent == agent) :]
