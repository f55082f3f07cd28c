"""The loop's ports, answered from the record of a run: what its model said, its tools gave, a person decided."""

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
from daiku.run.rules.state.machine import EndRun, MakeCall, Move
from daiku.run.rules.state.recorder import Recorder
from daiku.run.rules.state.state import State
from daiku.run.rules.verdict import ending
from daiku.texts.text import NO_TEXT, Text


class Broken(asyncio.CancelledError):  # control flow: the loop keeps what was shown, as it did then
    """The reply was broken off from outside: cancelled, or out of time."""


class Over(Exception):  # control flow: the record has nothing more to give
    """The record ends here (an interrupted run)."""


OUTSIDE = (PlanEvent, Todo, Edit, CheckpointEvent, HandoffStart, HandoffEnd, Review, Restored)
"""What tools and edges add; the loop does not decide it."""


class Recorded:
    """The loop's ports, answered from the record."""

    def __init__(self, chunks: Sequence[Chunk], handed: Callable[[State], object] | None = None) -> None:
        """`handed`: what a nested run's agent makes of its state, as it is handed back; None where that is not known."""
        self.agent = chunks[0].agent
        self._nested = chunks[0].parent is not None
        self._handed = handed
        self._no_agent_end = not any(isinstance(c.event, AgentStart | AgentEnd) for c in chunks)
        """A journal of before these events."""
        self.made: list[Event] = []
        self.events = events = [c.event for c in chunks]
        self._answers = {e.id: e for e in events if isinstance(e, ToolResponse)}
        self._called = {e.id: e for e in events if isinstance(e, ToolCallEvent)}
        self._parallel = {
            e.tool
            for one, other in pairwise(events)
            if isinstance(one, ToolCallEvent) and isinstance(other, ToolCallEvent)
            for e in (one, other)
        }
        self._asked = {e.call_id: e for e in events if isinstance(e, ApprovalAsked)}
        self._given = {e.approval_id: e for e in events if isinstance(e, ApprovalGiven)}
        self._inputs = {e.call_id: e for e in events if isinstance(e, InputAsked)}
        self._input_given = {e.input_id: e for e in events if isinstance(e, InputGiven)}

    def write(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        """Take what the loop writes, with what came from outside at this place before it."""
        written: list[Event] = []
        for event in events:
            if event.type in EPHEMERAL or is_only_shown(event):
                continue
            written += self.outside()
            if self._ended_here(event):
                raise Over
            if isinstance(event, AgentEnd) and self._no_agent_end:
                continue
            written.append(self._aligned(event))
            self.made.append(written[-1])
        return tuple(written)

    def _ended_here(self, event: Event) -> bool:
        """Return True if the run was ended from outside before `event`, a nested one maybe after its last word."""
        if not all(isinstance(e, Failure | AgentEnd | RunFinished) for e in self._rest):
            return False
        finished = next((e for e in self._rest if isinstance(e, RunFinished)), None)
        if finished is None or has_answer(finished.status):
            return False
        given_up = self._nested and finished.status == "cancelled"
        return given_up or not isinstance(event, Failure | AgentEnd | RunFinished)

    @property
    def _rest(self) -> Iterator[Event]:
        """The events of the record after those that were made again, without a copy: it is asked for each event."""
        return map(self.events.__getitem__, range(len(self.made), len(self.events)))

    def _from_outside(self, event: Event) -> bool:
        said = isinstance(event, MessageEvent) and event.role == "user" and event.reminder is None
        routed = isinstance(event, Usage) and event is self.events[min(1, len(self.events) - 1)]
        return said or routed or isinstance(event, OUTSIDE) or is_only_shown(event) or self._of_an_edge(event)

    def outside(self) -> list[Event]:
        """Take what came from outside at this place of the record."""
        found = list(takewhile(self._from_outside, self._rest))
        self.made += found
        return found

    def _of_an_edge(self, event: Event) -> bool:
        """Asked and answered by an edge (MCP servers), not by the loop for a call."""
        match event:
            case ApprovalAsked(from_server=by_edge) | InputAsked(from_server=by_edge):
                return by_edge
            case ApprovalGiven(approval_id=given):
                mine = (a for a in self._asked.values() if a.approval_id == given)
            case InputGiven(input_id=given):
                mine = (a for a in self._inputs.values() if a.input_id == given)
            case _:
                return False
        return any(asked.from_server for asked in mine)

    def _aligned(self, event: Event) -> Event:
        """When something was said while the model was asked is a matter of time, not of decisions."""
        recorded = next(self._rest, None)
        if isinstance(event, MessageEvent) and isinstance(recorded, MessageEvent):
            return event.model_copy(update={"seen": recorded.seen})
        return event

    def close(self, state: State) -> None:
        """Take the recorded end of a run that was ended from outside; its result still follows from `state`."""
        for event in self.outside():
            state = apply(state, event)
        rest = tuple(self._rest)
        if not all(isinstance(e, ToolResponse | Failure | AgentEnd | RunFinished) for e in rest):
            return
        for event in rest:
            if not isinstance(event, ToolResponse):
                for call in (c for c in state.calls.pending if c.id in state.calls.started):
                    self.made.append(cut_short(call, "cancelled"))  # each call gets its answer
            match event:
                case AgentEnd():
                    self.made.append(AgentEnd(usage=state.spending.own))
                case RunFinished(status=status):
                    ended = ending(state, _status(status, state.failure))
                    told = self._no_agent_end or any(isinstance(e, AgentEnd) for e in self.made)
                    self.made += ended[1:] if told else ended
                case _:
                    self.made.append(event)
            state = apply(state, event)

    @property
    def rules(self) -> Rules:
        start = self.events[0]
        driven = isinstance(start, RunStarted) and (start.driven or bool(start.calls))
        return Rules(
            spec=self._spec,
            verdict=self._verdict,
            read=self._read,
            condensing=self._condensing,
            objection=self._objection,
            unfinished=self._unfinished,
            machine=self._move if driven else None,
        )

    def _move(self, _: State) -> Move:
        """The next move on record of a run that a state machine drove."""
        if (reply := self._next_reply()) is None:
            if (error := self._failure()) is None:
                raise Over
            return error.failure
        said, _used = reply
        if not said.calls:
            return EndRun(said.text)
        return MakeCall(said.calls[0], said.text, question_of(said.opaque))

    def _objection(self, state: State) -> Text:
        """Why what the run handed back could not be passed on; as on record where its agent is not known here."""
        if self._handed is not None:
            found = self._handed(state)
            return found.problem if isinstance(found, Unreadable) else NO_TEXT
        match self._following():
            case MessageEvent(role="user", reminder="objection", text=why):
                return why
            case _:
                return NO_TEXT

    def _unfinished(self, _: State) -> Failure | None:
        """Why the run failed although it had said its last word, as on record."""
        left = (e for e in self.events if isinstance(e, Failure) and e.kind == "plan")
        return next((Failure(kind=e.kind, message=e.message, hint=e.hint) for e in left), None)

    @property
    def asked_again(self) -> bool:
        """Whether the record has another reply of the model."""
        return self._next_reply() is not None

    def _next_reply(self) -> tuple[MessageEvent, Usage | None] | None:
        """Return the model's next reply and its usage; a reply that was cut off has none."""
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
        """The call with the arguments that it was made with then."""
        made = self._called.get(call.id)
        return call if made is None else call.model_copy(update={"args": made.args})

    def _verdict(self, call: ToolCall, tainted: bool) -> Verdict:
        if call.id in self._asked:
            return Verdict("ask", NO_TEXT)
        answer = self._answers.get(call.id)
        if answer is not None and answer.outcome in ("denied", "unattended"):
            return Verdict("deny", Text(answer.result), unattended=answer.outcome == "unattended")
        return Verdict("allow", NO_TEXT)

    def paused(self) -> bool:
        return False

    async def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        match self._following(), self._following(1):
            case Usage() as used, Failure(kind="guardrail") as failure:
                raise BlockedReply(failure, used, NO_TEXT)
            case Usage() as used, MessageEvent(role="user", reminder="objection", text=told):
                raise BlockedReply(Failure(kind="guardrail", message=told), used, told)
            case _:
                pass
        if isinstance(self._following(), Pruned | Compacted | Usage):  # too long or full enough then
            raise ContextOverflowError(Failure(kind="context_overflow", message=NO_TEXT))
        if (reply := self._next_reply()) is None:
            raise self._failure() or Over
        said, used = reply
        if used is None:
            yield TextDelta(said.text)
            raise self._failure() or Broken
        message = AssistantMessage(
            text=said.text, thinking=said.thinking, calls=said.calls, opaque=said.opaque
        )
        yield Reply(message, used, said.finish)
        if isinstance(self._following(), Failure) and (failure := self._failure()) is not None:
            raise failure  # a role that has failed says so, and why

    def _condensing(self, _: State) -> Condensing | None:
        """How the conversation was made shorter then; None where the record goes on otherwise."""
        rest = list(islice((e for e in self._rest if not self._from_outside(e)), 3))
        pruned = rest[0] if rest and isinstance(rest[0], Pruned) else None
        left = rest[1:] if pruned else rest[:2]
        summary = next((e for e in left if not isinstance(e, Usage)), None)
        kept = summary.kept if isinstance(summary, Compacted) else None
        return Condensing(pruned, kept, 0) if pruned is not None or kept is not None else None

    def _following(self, later: int = 0) -> Event | None:
        """What the loop wrote next on record, or `later` than that."""
        rest = (e for e in self._rest if not self._from_outside(e))
        return next(islice(rest, later, None), None)

    def _failure(self) -> LLMRequestError | None:
        """What the record says went wrong; None where it was ended from outside."""
        failure = next((e for e in self.events if isinstance(e, Failure)), None)
        if failure is None or failure.kind == "limit":
            return None
        return LLMRequestError(failure)

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        answer = self._answers.get(call.id)
        if answer is None:
            raise Over
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
        asked = self._asked.get(call.id)
        if asked is None:
            raise Over
        return ApprovalPreview(asked.preview, asked.remember, asked.hunks)

    async def trial(self, call: ToolCall, record: Recorder) -> Text:
        return NO_TEXT

    async def approval(self, asked: ApprovalAsked) -> ApprovalGiven:
        mine = self._asked.get(asked.call_id)
        given = self._given.get(mine.approval_id) if mine is not None else None
        if given is None:
            raise Over
        return given.model_copy(update={"approval_id": asked.approval_id})

    async def answer(self, asked: InputAsked) -> InputGiven:
        mine = self._inputs.get(asked.call_id)
        given = self._input_given.get(mine.input_id) if mine is not None else None
        if given is None:
            raise Over
        return given.model_copy(update={"input_id": asked.input_id})

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        paid, compacted = self._following(), self._following(1)
        if isinstance(paid, Compacted):
            return paid.summary, None
        if isinstance(paid, Usage) and isinstance(compacted, Compacted):
            return compacted.summary, paid
        raise Over


def _status(recorded: TerminalStatus, failure: Failure | None) -> TerminalStatus:
    """How a run ends that is ended from outside; by a limit it may also have failed."""
    if failure is None:
        return "cancelled"
    return recorded if failure.kind == "limit" and recorded in ("limit", "failed") else "failed"
