"""What a run does next, as data: a pure function of its state and the rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure
from daiku.domain.events import ApprovalAsked, InputAsked
from daiku.domain.messages import AssistantMessage, Message, ToolMessage
from daiku.domain.runs import TerminalStatus
from daiku.domain.tools import Effect, Outcome, ToolCall, ToolSpec
from daiku.run.rules.calls.refs import find_refs, why_not_run
from daiku.run.rules.reminders import (
    NO_MORE_CALLS,
    Remind,
    due_reminder,
    incomplete_turn,
    limit_failure,
    limit_reached,
    rounds_of,
)
from daiku.run.rules.state.condense import Condensing, Window, is_full, plan_condensing
from daiku.run.rules.state.context import rough_tokens
from daiku.run.rules.state.machine import Move
from daiku.run.rules.state.repetition import repetition_failure
from daiku.run.rules.state.shorten import Reading
from daiku.run.rules.state.state import State
from daiku.texts.text import NO_TEXT, Text, text

if TYPE_CHECKING:
    from daiku.guard.rules.policy import Verdict

INTERRUPTED = text("calls.interrupted")
OBJECTIONS = 2
"""How often a run is told that it cannot end like this; after that it has failed."""


def _as_written(call: ToolCall) -> ToolCall:
    return call


def _no_objection(_: State) -> Text:
    return NO_TEXT


def never_unfinished(_: State) -> Failure | None:
    """Return None: a run without a state machine may end when the model stops."""
    return None


@dataclass(frozen=True, slots=True)
class Rules:
    """What `decide` may consult: the tools on offer, the guard, the size at which to compact (tokens, 0 never)."""

    spec: Callable[[str], ToolSpec | None]
    verdict: Callable[[ToolCall, bool], Verdict]
    """The guard's word on a call; the flag says that untrusted text is in the conversation."""
    read: Callable[[ToolCall], ToolCall] = _as_written
    """The call with its arguments as the tool gets them: what is judged, shown and run is the same."""
    compact_at: int = 0
    keep_messages: int = 0
    """How many of the newest messages stay where old ones are summarized; 0: as many as there is room for."""
    tokens: Callable[[Sequence[Message]], int] = rough_tokens
    """About how many tokens these messages take."""
    prefix: Callable[[], int] = int
    """About how many tokens the system prompt and the tools take."""
    condensing: Callable[[State], Condensing | None] | None = None
    """How the conversation is made shorter; None: worked out from the sizes."""
    objection: Callable[[State], Text] = _no_objection
    """What is wrong with ending now, as the model is to be told; empty where nothing is."""
    unfinished: Callable[[State], Failure | None] = never_unfinished
    """Why a run that has said its last word has failed all the same."""
    machine: Callable[[State], Move] | None = None
    """What drives the run in place of a model."""

    def window(self) -> Window:
        """What may be sent, and how it is measured."""
        reading = Reading(self.read, self._effect)
        return Window(self.compact_at, self.prefix, self.tokens, reading, self.keep_messages)

    def _effect(self, tool: str) -> Effect | None:
        spec = self.spec(tool)
        return spec.effect if spec is not None else None

    def condense(self, state: State, *, refused: bool = False) -> Condensing | None:
        """How to make the conversation shorter; None where nothing is won by it."""
        if self.condensing is not None:
            return self.condensing(state)
        return plan_condensing(state, self.window(), refused=refused)


@dataclass(frozen=True, slots=True)
class AskModel:
    """Call the model with the messages so far."""


@dataclass(frozen=True, slots=True)
class TakeMove:
    """Do what the run's state machine says is next."""

    move: Move


@dataclass(frozen=True, slots=True)
class Compact:
    """Make the conversation shorter."""

    how: Condensing


@dataclass(frozen=True, slots=True)
class AskApproval:
    """Ask the person, or go on waiting for what was `asked` before a restart."""

    call: ToolCall
    verdict: Verdict
    asked: ApprovalAsked | None


@dataclass(frozen=True, slots=True)
class AskPerson:
    """Put a question to the person, or go on waiting for its answer."""

    call: ToolCall
    asked: InputAsked | None


@dataclass(frozen=True, slots=True)
class Answered:
    """The person's answer is there: it is the call's result."""

    call: ToolCall
    text: Text
    unattended: bool = False
    """Nobody was there: the text is not a person's."""


@dataclass(frozen=True, slots=True)
class RunTools:
    """Carry out these calls, side by side when there are several."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer the call without carrying it out."""

    call: ToolCall
    why: Text
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Object:
    """Tell the model why its work cannot be taken like this."""

    why: Text


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell the model something of Daiku's own before it is asked again."""

    remind: Remind


@dataclass(frozen=True, slots=True)
class Finish:
    """End the run; with `failure` where a limit or an error ended it."""

    status: TerminalStatus
    failure: Failure | None = None


Command: TypeAlias = (
    AskModel
    | TakeMove
    | Compact
    | AskApproval
    | AskPerson
    | Answered
    | RunTools
    | Refuse
    | Object
    | Tell
    | Finish
)


def decide(state: State, rules: Rules) -> Command:
    """The next command. Total; called only while the run is not finished."""
    if state.failure is not None:
        return Finish("limit" if state.failure.kind == "limit" else "failed")
    if state.calls.pending:
        return _next_call(state, rules)
    over = _spent(state)
    if over is not None:
        return Finish("limit", over)
    last = state.conversation.messages[-1] if state.conversation.messages else None
    if isinstance(last, AssistantMessage) and not last.calls:
        return _end(state, rules)
    circles = repetition_failure(state.health.trail, state.request.limits.max_repeats)
    if circles is not None:
        return Finish("limit", circles)
    if state.request.asks_model and (remind := due_reminder(state)) is not None:
        return Tell(remind)
    if "last_word" not in state.health.reminders and (over := limit_reached(state)) is not None:
        return Finish("limit", over)
    if "last_word" in state.health.reminders and isinstance(last, ToolMessage):
        return Finish("limit", limit_reached(state, before=1))
    if is_full(state.conversation, rules.window()) and (how := rules.condense(state)) is not None:
        return Compact(how)
    return AskModel() if rules.machine is None else TakeMove(rules.machine(state))


def _end(state: State, rules: Rules) -> Command:
    """The model has said its last word; what it hands over has to be of use."""
    if "last_word" in state.health.reminders:
        return Finish("limit", limit_reached(state, before=1))
    match incomplete_turn(state) if state.request.asks_model else None:
        case Remind() as remind:
            return Tell(remind)
        case Failure() as failure:
            return Finish("failed", failure)
        case None:
            pass
    why = rules.objection(state)
    if not why:
        left = rules.unfinished(state)
        return Finish("completed") if left is None else Finish("failed", left)
    if state.health.reminders.count(
        "objection"
    ) < OBJECTIONS and not 0 < state.request.limits.max_rounds <= rounds_of(state):
        return Object(why)
    return Finish("failed", Failure(kind="format", message=text("run.unusable", why=why)))


def _next_call(state: State, rules: Rules) -> Command:
    call = state.calls.pending[0]
    if "last_word" in state.health.reminders and call.id not in state.calls.started:
        return Refuse(call, NO_MORE_CALLS, "not_run")
    spec = rules.spec(call.tool)
    if call.id in state.calls.started:
        resumes = spec is not None and spec.resumes
        return RunTools((call,)) if resumes else Refuse(call, INTERRUPTED, "interrupted")
    if why := _too_many(state, call) or why_not_run(call, state.conversation.messages):
        return Refuse(call, why, "not_run")
    call = rules.read(call)
    if spec is None or call.malformed is not None:
        return RunTools((call,))
    if spec.effect == "ask":
        return _question(state, call)
    verdict = rules.verdict(call, state.tainted)
    match verdict.answer:
        case "deny":
            return Refuse(call, verdict.why, "unattended" if verdict.unattended else "denied")
        case "ask":
            return _approval(state, call, verdict)
        case "allow":
            return RunTools(_together(state, rules, call, spec))


def _too_many(state: State, call: ToolCall) -> Text:
    """Why `call` is one too many of its reply; empty when it is not."""
    most = state.request.limits.max_actions
    if not most or len(state.conversation.messages) < 1:
        return NO_TEXT
    reply = next((m for m in reversed(state.conversation.messages) if isinstance(m, AssistantMessage)), None)
    ids = [each.id for each in reply.calls] if reply is not None else []
    return text("calls.too_many", count=len(ids), most=most) if call.id in ids[most:] else NO_TEXT


def _question(state: State, call: ToolCall) -> Command:
    asked = state.questions.inputs.get(call.id)
    if asked is not None and asked.input_id in state.questions.answers:
        given = state.questions.answers[asked.input_id]
        said = text("run.nobody_answers") if given.unattended else Text(given.text)
        return Answered(call, said, given.unattended)
    return AskPerson(call, asked)


def _approval(state: State, call: ToolCall, verdict: Verdict) -> Command:
    from daiku.team.rules.person import format_rejection  # when used

    asked = state.questions.approvals.get(call.id)
    given = state.questions.decisions.get(asked.approval_id) if asked is not None else None
    if given is None:
        return AskApproval(call, verdict, asked)
    if given.decision in ("allow_once", "allow_always"):
        return RunTools((call,))
    if given.unattended:
        network = verdict.kind == "network" and call.args.get("network") is True
        why = text("run.nobody_approves_network") if network else text("run.nobody_approves")
        return Refuse(call, why, "unattended")
    return Refuse(call, format_rejection(given.feedback or ""), "rejected")


def _together(state: State, rules: Rules, first: ToolCall, spec: ToolSpec) -> tuple[ToolCall, ...]:
    """The allowed, independent, read-only calls at the head of the list; at least the first."""
    if not spec.parallel:
        return (first,)
    calls = [first]
    for call in state.calls.pending[1:]:
        other = rules.spec(call.tool)
        if other is None or not other.parallel or call.malformed is not None:
            break
        if any(find_refs(call.args)) or _too_many(state, call):  # it may wait for one of these
            break
        meant = rules.read(call)
        if rules.verdict(meant, state.tainted).answer != "allow":
            break
        calls.append(meant)
    return tuple(calls)


def _spent(state: State) -> Failure | None:
    limits, usage = state.request.limits, state.spending.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    if 0 < limits.max_tokens <= tokens:
        return limit_failure(text("limits.tokens"), text("limits.count_tokens", count=tokens), "max_tokens")
    if usage.cost is not None and 0 < limits.max_cost <= usage.cost:
        return limit_failure(text("limits.cost"), f"${usage.cost:.4f}", "max_cost")
    return None
