"""Log of a team's run: its answered tool calls in order, each with its outcome."""

from __future__ import annotations

from typing import NamedTuple

from daiku.domain.events import HandoffEnd
from daiku.domain.messages import AssistantMessage, ToolMessage
from daiku.domain.tools import Outcome, ToolCall
from daiku.domain.work.handovers import Findings
from daiku.domain.work.plans import Plan, Step
from daiku.run.rules.state.state import State
from daiku.team.rules.plans.transitions import find_step
from daiku.texts.text import Text, text


class AnsweredCall(NamedTuple):
    """An answered call, with the `handoff` result of its nested run if there was one."""

    call: ToolCall
    outcome: Outcome | None
    text: str
    handoff: HandoffEnd | None = None

    @property
    def ok(self) -> bool:
        """True if the call was carried out as requested."""
        return self.outcome == "done"

    @property
    def agent(self) -> str:
        """Agent of a handoff; empty for other calls."""
        return str(self.call.args.get("agent", "")) if self.call.tool == "agent/handoff" else ""

    @property
    def step_update(self) -> tuple[str, str] | None:
        """Step id and status of an executed plan/update_step call."""
        if self.call.tool != "plan/update_step" or not self.ok:
            return None
        return str(self.call.args.get("step_id")), str(self.call.args.get("status"))


def list_answered_calls(state: State) -> tuple[AnsweredCall, ...]:
    """Return the answered calls of this run."""
    messages = state.conversation.messages[state.conversation.start :]
    calls = {call.id: call for m in messages if isinstance(m, AssistantMessage) for call in m.calls}
    handoffs = {handoff.call_id: handoff for handoff in state.nested.returned}
    return tuple(
        AnsweredCall(calls[m.call_id], m.outcome, m.text, handoffs.get(m.call_id))
        for m in messages
        if isinstance(m, ToolMessage) and m.call_id in calls
    )


def is_rejected(state: State, entry: AnsweredCall) -> bool:
    """Return True if the user rejected the call, or all that its nested run wanted to do."""
    approval = state.questions.approvals.get(entry.call.id)
    decision = state.questions.decisions.get(approval.approval_id) if approval is not None else None
    if decision is not None and decision.decision in ("reject_once", "reject_always"):
        return True
    handoff = entry.handoff
    if handoff is None or entry.agent not in ("coder", "runner"):
        return False
    if not handoff.rejected and not any(call.outcome == "unattended" for call in handoff.refused):
        return False
    return handoff.deeds is None or not (
        handoff.deeds.files or any(c.exit_code == 0 for c in handoff.deeds.commands)
    )


def find_step_number(plan: Plan, step: Step) -> int:
    """Return the step's position in the plan, from 1."""
    return plan.steps.index(step) + 1


def has_begun(log: tuple[AnsweredCall, ...], step: Step) -> bool:
    """Return True if this run began the step."""
    return any(t.step_update == (step.step_id, "in_progress") for t in log)


def select_since_begin(log: tuple[AnsweredCall, ...], step: Step) -> tuple[AnsweredCall, ...]:
    """Return the calls since the step was begun; all if this run did not begin it."""
    begins_at = [i for i, t in enumerate(log) if t.step_update == (step.step_id, "in_progress")]
    return log[begins_at[-1] + 1 :] if begins_at else log


def select_for_step(log: tuple[AnsweredCall, ...], plan: Plan, step: Step) -> tuple[AnsweredCall, ...]:
    """Return the calls since another step was last completed or failed; all if there is none."""
    updates = [(i, *t.step_update) for i, t in enumerate(log) if t.step_update is not None]
    ends = [
        i
        for i, name, status in updates
        if status in ("completed", "failed") and find_step(plan, name) != step
    ]
    return log[ends[-1] :] if ends else log


def select_since_work(log: tuple[AnsweredCall, ...]) -> tuple[AnsweredCall, ...]:
    """Return the calls after the last handoff to coder, runner, or planner; all if there is none."""
    last = [n for n, t in enumerate(log) if t.agent in WORKERS or t.call.tool == "agent/parallel"]
    return log[last[-1] + 1 :] if last else log


WORKERS = ("coder", "runner", "planner")


def select_since_handoff(log: tuple[AnsweredCall, ...], agent: str) -> tuple[AnsweredCall, ...]:
    """Return the calls from the last handoff to `agent` on. Raises ValueError if there is none."""
    return log[max(i for i, t in enumerate(log) if t.agent == agent) :]


GO_ON, STOP = OFFERED = (text("team.go_on"), text("team.stop_here"))


def format_rejection(feedback: str) -> Text:
    """Return the result text of a call that the user rejected."""
    return text("team.call_rejected_because", message=feedback) if feedback else text("team.call_rejected")


def find_task_text(state: State, plan: Plan) -> str:
    """Return the team's task: the request, else the plan's goal."""
    return state.request.prompt or plan.goal


def add_user_messages(state: State, request: str) -> str:
    """Append what the user said during the run to the request."""
    words = "\n".join(describe_answers(state))
    return f"{request}\n\n{words}" if words else request


def describe_answers(state: State) -> tuple[str, ...]:
    """Return the user's answers and messages during the run, oldest first, each answer with its question."""
    questions = (t for t in list_answered_calls(state) if t.call.tool == "user/ask")
    answers = (_format_answer(t) for t in questions if find_choice(state, t) is None)
    return (*answers, *(f"The person says: {text}" for text in state.conversation.steering))


def find_open_question(state: State, log: tuple[AnsweredCall, ...]) -> str | None:
    """Return the researcher's question to the user if it was not asked yet."""
    findings = [b.handover for b in state.nested.returned if isinstance(b.handover, Findings)]
    question = findings[-1].ask_user.strip() if findings else ""
    if not question or any(t.call.args.get("question") == question for t in log):
        return None
    return question


def find_unanswered_questions(state: State) -> tuple[str, ...]:
    """Return the questions that nobody was there to answer; assumptions replaced the answers."""
    questions = (
        t for t in list_answered_calls(state) if t.call.tool == "user/ask" and not t.call.args.get("choices")
    )
    return tuple(str(t.call.args.get("question", "")) for t in questions if _is_unanswered(t))


def find_choice(state: State, entry: AnsweredCall) -> int | None:
    """Return the 0-based choice of the user; None for a free-text answer, or no answer."""
    question = state.questions.inputs.get(entry.call.id)
    answer = state.questions.answers.get(question.input_id) if question is not None else None
    return question.chosen(answer.text) if question is not None and answer is not None else None


def _format_answer(entry: AnsweredCall) -> str:
    question = entry.call.args.get("question")
    if entry.call.args.get("choices"):
        return f"The person says: {entry.text}"
    if _is_unanswered(entry):
        return (
            f"Nobody was there to answer this question: “{question}” Go by what is most usual and easiest to change "
            "later, all the same way, and say in your notes what you assumed."
        )
    return f"The person was asked: “{question}” They answered: {entry.text}"


def _is_unanswered(entry: AnsweredCall) -> bool:
    return not entry.ok
