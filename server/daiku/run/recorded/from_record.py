"""The loop's ports for a replay: replies, tool results, and answers come from the record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import chain, islice, pairwise, takewhile

from daiku.domain.chunks import Chunk
from daiku.domain.errors import ContextOverflowError, Failure, LLMRequestError
from daiku.domain.events import (
    EPHEMERAL,
    AgentEnd,
    AgentStart,
    ApprovalAsked,
    ApprovalGiven,
    CheckpointEvent,
    Edit,
    Event,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    InputGiven,
    MessageEvent,
    PlanEvent,
    Restored,
    Review,
    RunFinished,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Compacted, Pruned, Todo
from daiku.domain.messages import AssistantMessage, Message, ModelEvent, Reply, TextDelta, Usage, question_of
from daiku.domain.runs import TerminalStatus, has_answer
from daiku.domain.tools import ToolCall, ToolResult, ToolSpec
from daiku.guard.rules.policy import Verdict
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.ending import cut_short
from daiku.run.recorded.compare import is_only_shown
from daiku.run.rules.decide import Rules
from daiku.run.rules.ports import ApprovalPreview, BlockedReply
from daiku.run.rules.state.condense import Condensing
from daiku.run.rules.state.fold import apply
from daiku.run.rules.state.machine import EndRun, MakeCall, Move, Recorder
from daiku.run.rules.state.state import State
from daiku.run.rules.verdict import end_events
from daiku.texts.text import NO_TEXT, Text


class ReplyInterrupted(
    asyncio.CancelledError
):  # control flow: the loop keeps the draft, as in the recorded run
    """The recorded reply was interrupted: cancelled, or timed out."""


class RecordEnded(Exception):  # control flow: no more recorded events
    """The record ends here (an interrupted run)."""


OUTSIDE = (PlanEvent, Todo, Edit, CheckpointEvent, HandoffStart, HandoffEnd, Review, Restored)
"""Events that tools and users add; the loop does not decide them."""


class RecordedPorts:
    """The loop's ports, answered from the record."""

    def __init__(self, chunks: Sequence[Chunk], hand_back: Callable[[State], object] | None = None) -> None:
        """`hand_back`: builds a nested run's handover from its state; None if its agent is unknown."""
        self.agent = chunks[0].agent
        self._nested = chunks[0].parent is not None
        self._hand_back = hand_back
        self._no_agent_end = not any(isinstance(c.event, AgentStart | AgentEnd) for c in chunks)
        """The journal was written before these events existed."""
        self.replayed: list[Event] = []
        self.events = events = [c.event for c in chunks]
        self._results = {e.id: e for e in events if isinstance(e, ToolResponse)}
        self._called = {e.id: e for e in events if isinstance(e, ToolCallEvent)}
        self._parallel = {
            e.tool
            for one, other in pairwise(events)
            if isinstance(one, ToolCallEvent) and isinstance(other, ToolCallEvent)
            for e in (one, other)
        }
        self._approvals = {e.call_id: e for e in events if isinstance(e, ApprovalAsked)}
        self._decisions = {e.approval_id: e for e in events if isinstance(e, ApprovalGiven)}
        self._inputs = {e.call_id: e for e in events if isinstance(e, InputAsked)}
        self._input_answers = {e.input_id: e for e in events if isinstance(e, InputGiven)}

    def write(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Add the loop's events to the replay, after the outside events recorded before them."""
        written: list[Event] = []
        for event in events:
            if event.type in EPHEMERAL or is_only_shown(event):
                continue
            written += self.take_outside_events()
            if self._has_ended_before(event):
                raise RecordEnded
            if isinstance(event, AgentEnd) and self._no_agent_end:
                continue
            written.append(self._align_seen(event))
            self.replayed.append(written[-1])
        return tuple(written)

    def _has_ended_before(self, event: Event) -> bool:
        """Return True if the run was ended from outside before `event`, or a nested run after its last reply."""
        if not all(isinstance(e, Failure | AgentEnd | RunFinished) for e in self._rest):
            return False
        finished = next((e for e in self._rest if isinstance(e, RunFinished)), None)
        if finished is None or has_answer(finished.status):
            return False
        was_cancelled = self._nested and finished.status == "cancelled"
        return was_cancelled or not isinstance(event, Failure | AgentEnd | RunFinished)

    @property
    def _rest(self) -> Iterator[Event]:
        """Recorded events that are not replayed yet; an iterator, as it is read for each event."""
        return map(self.events.__getitem__, range(len(self.replayed), len(self.events)))

    def _is_from_outside(self, event: Event) -> bool:
        is_user_message = isinstance(event, MessageEvent) and event.role == "user" and event.reminder is None
        is_routing_usage = isinstance(event, Usage) and event is self.events[min(1, len(self.events) - 1)]
        return (
            is_user_message
            or is_routing_usage
            or isinstance(event, OUTSIDE)
            or is_only_shown(event)
            or self._is_about_server(event)
        )

    def take_outside_events(self) -> list[Event]:
        """Replay and return the outside events at this place of the record."""
        events = list(takewhile(self._is_from_outside, self._rest))
        self.replayed += events
        return events

    def _is_about_server(self, event: Event) -> bool:
        """Return True if an MCP server asked this question, or it answers one."""
        match event:
            case ApprovalAsked(from_server=from_server) | InputAsked(from_server=from_server):
                return from_server
            case ApprovalGiven(approval_id=answer_id):
                questions = (a for a in self._approvals.values() if a.approval_id == answer_id)
            case InputGiven(input_id=answer_id):
                questions = (a for a in self._inputs.values() if a.input_id == answer_id)
            case _:
                return False
        return any(question.from_server for question in questions)

    def _align_seen(self, event: Event) -> Event:
        """Return the event with the recorded `seen`, which depends on timing."""
        recorded = next(self._rest, None)
        if isinstance(event, MessageEvent) and isinstance(recorded, MessageEvent):
            return event.model_copy(update={"seen": recorded.seen})
        return event

    def close(self, state: State) -> None:
        """Replay the recorded end of a run that was ended from outside; its result is built from `state`."""
        for event in self.take_outside_events():
            state = apply(state, event)
        rest = tuple(self._rest)
        if not all(isinstance(e, ToolResponse | Failure | AgentEnd | RunFinished) for e in rest):
            return
        for event in rest:
            if not isinstance(event, ToolResponse):
                for call in (c for c in state.calls.pending if c.id in state.calls.started):
                    self.replayed.append(cut_short(call, "cancelled"))  # each started call gets a result
            match event:
                case AgentEnd():
                    self.replayed.append(AgentEnd(usage=state.spending.own))
                case RunFinished(status=status):
                    closing = end_events(state, _end_status(status, state.failure))
                    has_agent_end = self._no_agent_end or any(isinstance(e, AgentEnd) for e in self.replayed)
                    self.replayed += closing[1:] if has_agent_end else closing
                case _:
                    self.replayed.append(event)
            state = apply(state, event)

    @property
    def rules(self) -> Rules:
        start = self.events[0]
        is_driven = isinstance(start, RunStarted) and (start.driven or bool(start.calls))
        return Rules(
            spec=self._spec,
            verdict=self._verdict,
            read=self._read,
            condensing=self._condensing,
            objection=self._objection,
            unfinished=self._unfinished,
            machine=self._next_move if is_driven else None,
        )

    def _next_move(self, _: State) -> Move:
        """Return the next recorded move of a run driven by a state machine."""
        if (reply := self._next_reply()) is None:
            if (error := self._failure()) is None:
                raise RecordEnded
            return error.failure
        message, _usage = reply
        if not message.calls:
            return EndRun(message.text)
        return MakeCall(message.calls[0], message.text, question_of(message.opaque))

    def _objection(self, state: State) -> Text:
        """Return the reason that the handover was unusable; as recorded if the agent is unknown."""
        if self._hand_back is not None:
            handover = self._hand_back(state)
            return handover.problem if isinstance(handover, Unreadable) else NO_TEXT
        match self._next_loop_event():
            case MessageEvent(role="user", reminder="objection", text=why):
                return why
            case _:
                return NO_TEXT

    def _unfinished(self, _: State) -> Failure | None:
        """Return the recorded reason that the run failed after its last reply."""
        failures = (e for e in self.events if isinstance(e, Failure) and e.kind == "plan")
        return next((Failure(kind=e.kind, message=e.message, hint=e.hint) for e in failures), None)

    @property
    def has_more_replies(self) -> bool:
        """True if the record has another reply of the model."""
        return self._next_reply() is not None

    def _next_reply(self) -> tuple[MessageEvent, Usage | None] | None:
        """Return the model's next reply and its usage; an interrupted reply has no usage."""
        for event, following in pairwise(chain(self._rest, (None,))):
            if isinstance(event, MessageEvent) and event.role == "assistant":
                return event, following if isinstance(following, Usage) else None
        return None

    def _spec(self, name: str) -> ToolSpec:
        asks = any(e.tool == name and e.id in self._inputs for e in self._called.values())
        return ToolSpec(
            name=name,
            description="",
            parameters={},
            effect="ask" if asks else "edit",
            parallel=name in self._parallel,
        )

    def _read(self, call: ToolCall) -> ToolCall:
        """Return the call with its recorded arguments."""
        recorded = self._called.get(call.id)
        return call if recorded is None else call.model_copy(update={"args": recorded.args})

    def _verdict(self, call: ToolCall, tainted: bool) -> Verdict:
        if call.id in self._approvals:
            return Verdict("ask", NO_TEXT)
        answer = self._results.get(call.id)
        if answer is not None and answer.outcome in ("denied", "unattended"):
            return Verdict("deny", Text(answer.result), unattended=answer.outcome == "unattended")
        return Verdict("allow", NO_TEXT)

    def paused(self) -> bool:
        return False

    async def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        match self._next_loop_event(), self._next_loop_event(1):
            case Usage() as usage, Failure(kind="guardrail") as failure:
                raise BlockedReply(failure, usage, NO_TEXT)
            case Usage() as usage, MessageEvent(role="user", reminder="objection", text=correction):
                raise BlockedReply(Failure(kind="guardrail", message=correction), usage, correction)
            case _:
                pass
        if isinstance(
            self._next_loop_event(), Pruned | Compacted | Usage
        ):  # the recorded run overflowed or compacted here
            raise ContextOverflowError(Failure(kind="context_overflow", message=NO_TEXT))
        if (reply := self._next_reply()) is None:
            raise self._failure() or RecordEnded
        recorded, usage = reply
        if usage is None:
            yield TextDelta(recorded.text)
            raise self._failure() or ReplyInterrupted
        message = AssistantMessage(
            text=recorded.text, thinking=recorded.thinking, calls=recorded.calls, opaque=recorded.opaque
        )
        yield Reply(message, usage, recorded.finish)
        if isinstance(self._next_loop_event(), Failure) and (failure := self._failure()) is not None:
            raise failure  # a failed role

    def _condensing(self, _: State) -> Condensing | None:
        """Return how the conversation was condensed in the record; None if it was not."""
        rest = list(islice((e for e in self._rest if not self._is_from_outside(e)), 3))
        pruned = rest[0] if rest and isinstance(rest[0], Pruned) else None
        following = rest[1:] if pruned else rest[:2]
        summary = next((e for e in following if not isinstance(e, Usage)), None)
        kept = summary.kept if isinstance(summary, Compacted) else None
        return Condensing(pruned, kept, 0) if pruned is not None or kept is not None else None

    def _next_loop_event(self, later: int = 0) -> Event | None:
        """Return the loop's next recorded event, or the one `later` events after it."""
        rest = (e for e in self._rest if not self._is_from_outside(e))
        return next(islice(rest, later, None), None)

    def _failure(self) -> LLMRequestError | None:
        """Return the recorded failure; None if the run was ended from outside."""
        failure = next((e for e in self.events if isinstance(e, Failure)), None)
        if failure is None or failure.kind == "limit":
            return None
        return LLMRequestError(failure)

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        answer = self._results.get(call.id)
        if answer is None:
            raise RecordEnded
        return ToolResult(
            ok=answer.ok,
            outcome=answer.outcome,
            text=answer.result,
            data=answer.data,
            images=answer.images,
            untrusted=answer.untrusted,
        )

    settle = call

    async def preview(self, call: ToolCall, record: Recorder) -> ApprovalPreview | ToolResult:
        approval = self._approvals.get(call.id)
        if approval is None:
            raise RecordEnded
        return ApprovalPreview(approval.preview, approval.remember, approval.hunks)

    async def trial(self, call: ToolCall, record: Recorder) -> Text:
        return NO_TEXT

    async def approval(self, question: ApprovalAsked) -> ApprovalGiven:
        recorded = self._approvals.get(question.call_id)
        decision = self._decisions.get(recorded.approval_id) if recorded is not None else None
        if decision is None:
            raise RecordEnded
        return decision.model_copy(update={"approval_id": question.approval_id})

    async def answer(self, question: InputAsked) -> InputGiven:
        recorded = self._inputs.get(question.call_id)
        answer = self._input_answers.get(recorded.input_id) if recorded is not None else None
        if answer is None:
            raise RecordEnded
        return answer.model_copy(update={"input_id": question.input_id})

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        usage, compacted = self._next_loop_event(), self._next_loop_event(1)
        if isinstance(usage, Compacted):
            return usage.summary, None
        if isinstance(usage, Usage) and isinstance(compacted, Compacted):
            return compacted.summary, usage
        raise RecordEnded


def _end_status(recorded: TerminalStatus, failure: Failure | None) -> TerminalStatus:
    """Return the status of a run that was ended from outside; at a limit it may also have failed."""
    if failure is None:
        return "cancelled"
    return recorded if failure.kind == "limit" and recorded in ("limit", "failed") else "failed"
