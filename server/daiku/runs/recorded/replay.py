"""Play a recorded run again without a model: the core must come to the same events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from itertools import islice, pairwise

from daiku.core.guard.policy import Verdict
from daiku.core.run import loop
from daiku.core.run.decide import Rules
from daiku.core.run.ports import ApprovalPreview, BlockedReply
from daiku.core.state.condense import Condensing
from daiku.core.state.fold import fold
from daiku.core.state.machine import EndRun, MakeCall, Move
from daiku.core.state.recorder import Recorder
from daiku.core.state.state import State
from daiku.domain.base import Frozen
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.errors import ContextOverflowError, Failure, LLMRequestError
from daiku.domain.events import (
    EPHEMERAL,
    AgentEnd,
    ApprovalAsked,
    ApprovalGiven,
    CheckpointEvent,
    Edit,
    Event,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    InputGiven,
    LineEvent,
    MessageEvent,
    Notice,
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
from daiku.domain.tools import ToolCall, ToolResult, ToolSpec
from daiku.runs.recorded.compare import Difference, first_difference
from daiku.runs.recorded.said import replies_of, summaries_of
from daiku.texts.text import NO_TEXT, Text


class Replayed(Frozen):
    """How many events were compared, and the first difference (None: the same to the end)."""

    events: int
    difference: Difference | None = None


class _Broken(asyncio.CancelledError):  # control flow: the loop keeps what was shown, as it did then
    """The reply was broken off from outside: cancelled, or out of time."""


class _Over(Exception):  # control flow: the record has nothing more to give
    """The record ends here (an interrupted run)."""


async def replay(chunks: Sequence[Chunk]) -> Replayed:
    """Replay the top-level runs of a session in order and compare every durable event."""
    top = [c for c in chunks if c.parent is None and c.event.type not in EPHEMERAL]
    state, compared = State(), 0
    for own in _by_run(top):
        played = _Recorded(own)
        state = await _play(played, state)
        compared += len(played.made)
        difference = first_difference(own, played.made)
        if difference is not None:
            return Replayed(events=compared, difference=difference)
    return Replayed(events=compared)


def _by_run(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    runs: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        runs.setdefault(chunk.run, []).append(chunk)
    return list(runs.values())


async def _play(recorded: _Recorded, state: State) -> State:
    record = Recorder(state, recorded.write)
    first = recorded.events[0]
    try:
        if isinstance(first, RunStarted):
            record(first)
        while not await _played(record, recorded):
            pass
    except* _Over:  # of calls side by side, each says it
        pass
    recorded.close()
    return fold(recorded.events, state)


async def _played(record: Recorder, recorded: _Recorded) -> bool:
    """Play on until the run ends; False where a reply was cut off, and the model was asked again later."""
    try:
        await loop.run(record, recorded)
    except _Broken:
        return not recorded.asked_again
    return True


OUTSIDE = (
    *(PlanEvent, Todo, Edit, CheckpointEvent, Notice, LineEvent),
    *(HandoffStart, HandoffEnd, Review, Restored),
)
"""What tools and edges add; the loop does not decide it."""


class _Recorded:
    """The loop's ports, answered from the record."""

    def __init__(self, chunks: list[Chunk]) -> None:
        self.agent = chunks[0].agent
        self.made: list[Event] = []
        self.events = events = [c.event for c in chunks]
        self._replies = deque(replies_of(events))
        self._summaries = deque(summaries_of(events))
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
            if event.type in EPHEMERAL or isinstance(event, Notice | LineEvent):
                continue
            written += self._outside()
            written.append(self._aligned(event))
            self.made.append(written[-1])
        return tuple(written)

    def _from_outside(self, event: Event) -> bool:
        said = (
            isinstance(event, MessageEvent) and event.role == "user" and event.reminder in (None, "objection")
        )
        routed = isinstance(event, Usage) and event is self.events[min(1, len(self.events) - 1)]
        return said or routed or isinstance(event, OUTSIDE) or self._of_an_edge(event)

    def _outside(self) -> list[Event]:
        found: list[Event] = []
        while len(self.made) < len(self.events):
            event = self.events[len(self.made)]
            if not self._from_outside(event):
                break
            found.append(event)
            self.made.append(event)
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
        if not isinstance(event, MessageEvent) or len(self.made) >= len(self.events):
            return event
        recorded = self.events[len(self.made)]
        seen = recorded.seen if isinstance(recorded, MessageEvent) else event.seen
        return event.model_copy(update={"seen": seen})

    def close(self) -> None:
        """Take the end as it is where a run was ended from outside: cancelled, out of time, failed."""
        self._outside()
        rest = self.events[len(self.made) :]
        if rest and all(isinstance(e, ToolResponse | Failure | AgentEnd | RunFinished) for e in rest):
            self.made += rest

    @property
    def rules(self) -> Rules:
        start = self.events[0]
        driven = isinstance(start, RunStarted) and (start.driven or bool(start.calls))
        return Rules(
            spec=self._spec,
            verdict=self._verdict,
            read=self._read,
            condensing=self._condensing,
            unfinished=self._unfinished,
            machine=self._move if driven else None,
        )

    def _move(self, _: State) -> Move:
        """The next move on record of a run that a state machine drove."""
        if not self._replies:
            if (error := self._failure()) is None:
                raise _Over
            return error.failure
        said, _used = self._replies.popleft()
        if not said.calls:
            return EndRun(said.text)
        return MakeCall(said.calls[0], said.text, question_of(said.opaque))

    def _unfinished(self, _: State) -> Failure | None:
        """Why the run failed although it had said its last word, as on record."""
        left = (e for e in self.events if isinstance(e, Failure) and e.kind == "plan")
        return next((Failure(kind=e.kind, message=e.message, hint=e.hint) for e in left), None)

    @property
    def asked_again(self) -> bool:
        """Whether the record has another reply of the model."""
        return bool(self._replies)

    def _spec(self, name: str) -> ToolSpec:
        asks = any(
            isinstance(e, ToolCallEvent) and e.tool == name and e.id in self._inputs for e in self.events
        )
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
            case _:
                pass
        if isinstance(
            self._following(), Pruned | Compacted | Usage
        ):  # too long, or full enough, as it was then
            raise ContextOverflowError(Failure(kind="context_overflow", message=NO_TEXT))
        if not self._replies:
            raise self._failure() or _Over
        said, used = self._replies.popleft()
        if used is None:
            yield TextDelta(said.text)
            raise self._failure() or _Broken
        message = AssistantMessage(
            text=said.text, thinking=said.thinking, calls=said.calls, opaque=said.opaque
        )
        yield Reply(message, Usage.model_validate(used.model_dump()), "stop")
        if isinstance(self._following(), Failure) and (failure := self._failure()) is not None:
            raise failure  # a role that has failed says so, and why

    def _condensing(self, _: State) -> Condensing | None:
        """How the conversation was made shorter then; None where the record goes on otherwise."""
        rest = [e for e in self.events[len(self.made) :] if not self._from_outside(e)][:3]
        pruned = rest[0] if rest and isinstance(rest[0], Pruned) else None
        left = iter(rest[1:] if pruned else rest)
        after = next(left, None)
        if isinstance(after, Usage):
            after = next(left, None)
        kept = after.kept if isinstance(after, Compacted) else None
        return Condensing(pruned, kept, 0) if pruned is not None or kept is not None else None

    def _following(self, later: int = 0) -> Event | None:
        """What the loop wrote next on record, or `later` than that."""
        rest = (e for e in self.events[len(self.made) :] if not self._from_outside(e))
        return next(islice(rest, later, None), None)

    def _failure(self) -> LLMRequestError | None:
        """What the record says went wrong; None where it was ended from outside."""
        failure = next((e for e in self.events if isinstance(e, Failure)), None)
        if failure is None or failure.kind == "limit":
            return None
        return LLMRequestError(Failure.model_validate_json(encode_event(failure)))

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        answer = self._answers.get(call.id)
        if answer is None:
            raise _Over
        return ToolResult(
            ok=answer.ok,
            outcome=answer.outcome,
            text=answer.result,
            data=answer.data,
            images=answer.images,
            untrusted=answer.untrusted,
        )

    async def preview(self, call: ToolCall, record: Recorder) -> ApprovalPreview | ToolResult:
        asked = self._asked.get(call.id)
        if asked is None:
            raise _Over
        return ApprovalPreview(asked.preview, asked.remember, asked.hunks)

    async def approval(self, asked: ApprovalAsked) -> ApprovalGiven:
        mine = self._asked.get(asked.call_id)
        given = self._given.get(mine.approval_id) if mine is not None else None
        if given is None:
            raise _Over
        return given.model_copy(update={"approval_id": asked.approval_id})

    async def answer(self, asked: InputAsked) -> InputGiven:
        mine = self._inputs.get(asked.call_id)
        given = self._input_given.get(mine.input_id) if mine is not None else None
        if given is None:
            raise _Over
        return given.model_copy(update={"input_id": asked.input_id})

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        if not self._summaries:
            raise _Over
        return self._summaries.popleft()
