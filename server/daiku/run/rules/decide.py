"""Decide a run's next command from its state and rules. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure
from daiku.domain.events import ApprovalAsked, InputAsked
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.runs import TerminalStatus
from daiku.domain.tools import Effect, Outcome, ToolCall, ToolSpec
from daiku.run.rules.calls.refs import find_refs, unresolved_reason
from daiku.run.rules.reminders import (
    NO_MORE_CALLS,
    ReminderText,
    due_reminder,
    incomplete_turn,
    limit_failure,
    limit_reached,
    rounds_of,
)
from daiku.run.rules.state.condense import Condensing, ContextWindow, Reading, is_full, plan_condensing
from daiku.run.rules.state.context import rough_tokens
from daiku.run.rules.state.machine import Move
from daiku.run.rules.state.repetition import repetition_failure
from daiku.run.rules.state.state import State
from daiku.texts.text import NO_TEXT, Text, text

if TYPE_CHECKING:
    from daiku.guard.rules.policy import Verdict

INTERRUPTED = text("calls.interrupted")
OBJECTIONS = 2
"""Number of times that a run may correct an unusable result before it fails."""


def _as_written(call: ToolCall) -> ToolCall:
    return call


def _no_objection(_: State) -> Text:
    return NO_TEXT


def never_unfinished(_: State) -> Failure | None:
    """Return None: a run without a state machine may end when the model stops."""
    return None


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules that `decide` consults: tools, guard, and context limits. `compact_at`: tokens, 0: never."""

    spec: Callable[[str], ToolSpec | None]
    verdict: Callable[[ToolCall, bool], Verdict]
    """Returns the guard's verdict on a call; the flag is True if the conversation has untrusted text."""
    read: Callable[[ToolCall], ToolCall] = _as_written
    """Returns the call with the arguments that the tool receives; these are checked, shown, and run."""
    compact_at: int = 0
    keep_messages: int = 0
    """Number of newest messages that a summary keeps; 0: as many as fit."""
    tokens: Callable[[Sequence[Message]], int] = rough_tokens
    """Estimates the tokens of messages."""
    prefix: Callable[[], int] = int
    """Estimates the tokens of the system prompt and the tools."""
    condensing: Callable[[State], Condensing | None] | None = None
    """Decides how to condense the conversation; None: by token counts."""
    objection: Callable[[State], Text] = _no_objection
    """Returns the correction for the model if the run may not end yet; empty if it may."""
    unfinished: Callable[[State], Failure | None] = never_unfinished
    """Returns the failure of a run that ended but has not completed its work."""
    machine: Callable[[State], Move] | None = None
    """State machine that drives the run instead of a model."""

    def window(self) -> ContextWindow:
        """Return the context limits and how to measure them."""
        reading = Reading(self.read, self._effect)
        return ContextWindow(self.compact_at, self.prefix, self.tokens, reading, self.keep_messages)

    def _effect(self, tool: str) -> Effect | None:
        spec = self.spec(tool)
        return spec.effect if spec is not None else None

    def condense(self, state: State, *, refused: bool = False) -> Condensing | None:
        """Return how to condense the conversation; None if that saves nothing."""
        if self.condensing is not None:
            return self.condensing(state)
        return plan_condensing(state, self.window(), refused=refused)


@dataclass(frozen=True, slots=True)
class AskModel:
    """Request a reply from the model."""


@dataclass(frozen=True, slots=True)
class TakeMove:
    """Execute the next move of the run's state machine."""

    move: Move


@dataclass(frozen=True, slots=True)
class Compact:
    """Condense the conversation."""

    how: Condensing


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Request approval from the user, or keep waiting for `asked` after a restart."""

    call: ToolCall
    verdict: Verdict
    asked: ApprovalAsked | None


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Ask the user a question, or keep waiting for its answer after a restart."""

    call: ToolCall
    asked: InputAsked | None


@dataclass(frozen=True, slots=True)
class UseAnswer:
    """Use the user's answer as the result of the call."""

    call: ToolCall
    text: Text
    unattended: bool = False
    """True if no user was present, so that the text is a default."""


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls, in parallel if there are several."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer the call without running it."""

    call: ToolCall
    why: Text
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Correct:
    """Send the model a correction of its result."""

    why: Text


@dataclass(frozen=True, slots=True)
class SendReminder:
    """Send the model a reminder."""

    remind: ReminderText


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run; `failure` if a limit or an error ended it."""

    status: TerminalStatus
    failure: Failure | None = None


Command: TypeAlias = (
    AskModel
    | TakeMove
    | Compact
    | AskApproval
    | AskPerson
    | UseAnswer
    | RunTools
    | Refuse
    | Correct
    | SendReminder
    | Finish
)


def decide(state: State, rules: Rules) -> Command:
    """Return the next command. Total; called only while the run is not finished."""
    if state.failure is not None:
        return Finish("limit" if state.failure.kind == "limit" else "failed")
    if state.calls.pending:
        return _next_call(state, rules)
    exceeded = _exceeded_limit(state)
    if exceeded is not None:
        return Finish("limit", exceeded)
    last_message = state.conversation.messages[-1] if state.conversation.messages else None
    if isinstance(last_message, AssistantMessage) and not last_message.calls:
        return _end(state, rules)
    loop_failure = repetition_failure(state.health.trail, state.request.limits.max_repeats)
    if loop_failure is not None:
        return Finish("limit", loop_failure)
    if state.request.asks_model and (reminder := due_reminder(state)) is not None:
        return SendReminder(reminder)
    if "last_word" not in state.health.reminders and (exceeded := limit_reached(state)) is not None:
        return Finish("limit", exceeded)
    if "last_word" in state.health.reminders and isinstance(last_message, ToolMessage):
        return Finish("limit", limit_reached(state, before=1))
    if is_full(state.conversation, rules.window()) and (condensing := rules.condense(state)) is not None:
        return Compact(condensing)
    return AskModel() if rules.machine is None else TakeMove(rules.machine(state))


def _end(state: State, rules: Rules) -> Command:
    """Return the command for a final answer: finish, or correct it."""
    if "last_word" in state.health.reminders:
        return Finish("limit", limit_reached(state, before=1))
    match incomplete_turn(state) if state.request.asks_model else None:
        case ReminderText() as reminder:
            return SendReminder(reminder)
        case Failure() as failure:
            return Finish("failed", failure)
        case None:
            pass
    objection = rules.objection(state)
    if not objection:
        failure = rules.unfinished(state)
        return Finish("completed") if failure is None else Finish("failed", failure)
    if state.health.reminders.count(
        "objection"
    ) < OBJECTIONS and not 0 < state.request.limits.max_rounds <= rounds_of(state):
        return Correct(objection)
    return Finish("failed", Failure(kind="format", message=text("run.unusable", why=objection)))


def _next_call(state: State, rules: Rules) -> Command:
    call = state.calls.pending[0]
    if "last_word" in state.health.reminders and call.id not in state.calls.started:
        return Refuse(call, NO_MORE_CALLS, "not_run")
    spec = rules.spec(call.tool)
    if call.id in state.calls.started:
        resumes = spec is not None and spec.resumes
        return RunTools((call,)) if resumes else Refuse(call, INTERRUPTED, "interrupted")
    if reason := _exceeds_call_limit(state, call) or unresolved_reason(call, state.conversation.messages):
        return Refuse(call, reason, "not_run")
    call = rules.read(call)
    if spec is None or call.malformed is not None:
        return RunTools((call,))
    if spec.effect == "ask":
        return _ask_question(state, call)
    verdict = rules.verdict(call, state.tainted)
    match verdict.answer:
        case "deny":
            return Refuse(call, verdict.why, "unattended" if verdict.unattended else "denied")
        case "ask":
            return _ask_approval(state, call, verdict)
        case "allow":
            return RunTools(_parallel_calls(state, rules, call, spec))


def _exceeds_call_limit(state: State, call: ToolCall) -> Text:
    """Return why `call` exceeds the limit of calls in a reply; empty if it does not."""
    limit = state.request.limits.max_actions
    if not limit or len(state.conversation.messages) < 1:
        return NO_TEXT
    reply = next((m for m in reversed(state.conversation.messages) if isinstance(m, AssistantMessage)), None)
    ids = [each.id for each in reply.calls] if reply is not None else []
    return text("calls.too_many", count=len(ids), most=limit) if call.id in ids[limit:] else NO_TEXT


def _ask_question(state: State, call: ToolCall) -> Command:
    question = state.questions.inputs.get(call.id)
    if question is not None and question.input_id in state.questions.answers:
        answer = state.questions.answers[question.input_id]
        answer_text = text("run.nobody_answers") if answer.unattended else Text(answer.text)
        return UseAnswer(call, answer_text, answer.unattended)
    return AskPerson(call, question)


def _ask_approval(state: State, call: ToolCall, verdict: Verdict) -> Command:
    from daiku.team.rules.record import format_rejection  # when used

    approval = state.questions.approvals.get(call.id)
    decision = state.questions.decisions.get(approval.approval_id) if approval is not None else None
    if decision is None:
        return AskApproval(call, verdict, approval)
    if decision.decision in ("allow_once", "allow_always"):
        return RunTools((call,))
    if decision.unattended:
        is_network = verdict.kind == "network" and call.args.get("network") is True
        reason = text("run.nobody_approves_network") if is_network else text("run.nobody_approves")
        return Refuse(call, reason, "unattended")
    return Refuse(call, format_rejection(decision.feedback or ""), "rejected")


def _parallel_calls(state: State, rules: Rules, first: ToolCall, spec: ToolSpec) -> tuple[ToolCall, ...]:
    """Return the allowed, independent, read-only calls at the head of the list; at least the first."""
    if not spec.parallel:
        return (first,)
    calls = [first]
    for call in state.calls.pending[1:]:
        other = rules.spec(call.tool)
        if other is None or not other.parallel or call.malformed is not None:
            break
        if any(find_refs(call.args)) or _exceeds_call_limit(
            state, call
        ):  # it may use a result of these calls
            break
        call_as_read = rules.read(call)
        if rules.verdict(call_as_read, state.tainted).answer != "allow":
            break
        calls.append(call_as_read)
    return tuple(calls)


def _exceeded_limit(state: State) -> Failure | None:
    limits, usage = state.request.limits, state.spending.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    if 0 < limits.max_tokens <= tokens:
        return limit_failure(text("limits.tokens"), text("limits.count_tokens", count=tokens), "max_tokens")
    if usage.cost is not None and 0 < limits.max_cost <= usage.cost:
        return limit_failure(text("limits.cost"), f"${usage.cost:.4f}", "max_cost")
    return None
