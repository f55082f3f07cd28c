"""Play a recorded run again without a model: the core must come to the same events."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Sequence

from daiku.core import loop
from daiku.core.decide import Rules
from daiku.core.guard import Verdict
from daiku.core.state import Recorder, State, fold
from daiku.domain.base import Frozen
from daiku.domain.errors import Failure, LLMRequestError
from daiku.domain.events import (
    EPHEMERAL,
    ApprovalAsked,
    ApprovalGiven,
    Chunk,
    Compacted,
    Event,
    InputAsked,
    InputGiven,
    MessageSaid,
    Notice,
    RunFinished,
    RunStarted,
    ToolCalled,
    ToolResponded,
    Used,
    encode_event,
)
from daiku.domain.messages import AssistantMessage, Message, ModelEvent, Reply, Usage
from daiku.domain.tools import ToolCall, ToolResult, ToolSpec


class Difference(Frozen):
    """Where a replay left the record: the chunk, what was recorded, what came instead."""

    seq: int
    recorded: str
    replayed: str


class Replayed(Frozen):
    """How many events were compared, and the first difference (None: the same to the end)."""

    events: int
    difference: Difference | None = None


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
        difference = _first_difference(own, played.made)
        if difference is not None:
            return Replayed(events=compared, difference=difference)
    return Replayed(events=compared)


def _by_run(chunks: Sequence[Chunk]) -> list[list[Chunk]]:
    runs: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        runs.setdefault(chunk.run, []).append(chunk)
    return list(runs.values())


async def _play(recorded: _Recorded, state: State) -> State:
    def write(events: tuple[Event, ...]) -> tuple[Event, ...]:
        recorded.made.extend(e for e in events if e.type not in EPHEMERAL)
        return events

    first = recorded.chunks[0].event
    record = Recorder(state, write)
    recorded.record = record
    try:
        if isinstance(first, RunStarted):
            record(first)
        await loop.run(record, recorded)
    except _Over:
        pass
    outside = recorded.outside()
    if outside:
        record(*outside)
    return fold((c.event for c in recorded.chunks), state)


class _Recorded:
    """The loop's ports, answered from the record."""

    agent = "coordinator"

    def __init__(self, chunks: list[Chunk]) -> None:
        self.chunks = chunks
        self.made: list[Event] = []
        self.record: Recorder | None = None
        events = [c.event for c in chunks]
        self._events = events
        self._replies = deque(e for e in events if isinstance(e, MessageSaid) and e.role == "assistant")
        self._usage = deque(e for e in events if isinstance(e, Used))
        self._summaries = deque(e for e in events if isinstance(e, Compacted))
        self._answers = {e.id: e for e in events if isinstance(e, ToolResponded)}
        self._called = {e.id for e in events if isinstance(e, ToolCalled)}
        self._asked = {e.call_id: e for e in events if isinstance(e, ApprovalAsked)}
        self._given = {e.approval_id: e for e in events if isinstance(e, ApprovalGiven)}
        self._inputs = {e.call_id: e for e in events if isinstance(e, InputAsked)}
        self._input_given = {e.input_id: e for e in events if isinstance(e, InputGiven)}
        self._said = deque(e for e in events if isinstance(e, MessageSaid) and e.role == "user")

    @property
    def rules(self) -> Rules:
        return Rules(spec=self._spec, verdict=self._verdict)

    def _spec(self, name: str) -> ToolSpec:
        asks = any(
            isinstance(e, ToolCalled) and e.tool == name and e.id in self._inputs for e in self._events
        )
        effect = "ask" if asks else "edit"
        return ToolSpec(name=name, description="", parameters={}, effect=effect)

    def _verdict(self, call: ToolCall, tainted: bool) -> Verdict:
        if call.id in self._asked:
            return Verdict("ask", "on record")
        answer = self._answers.get(call.id)
        refused = answer is not None and not answer.ok and answer.duration_ms == 0
        return Verdict("deny", answer.result) if refused and answer else Verdict("allow", "")

    def paused(self) -> bool:
        return False

    async def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        if not self._replies:
            failure = next((e for e in self._events if e.type == "error"), None)
            if failure is None:
                raise _Over
            raise LLMRequestError(
                Failure.model_validate_json(encode_event(failure)),
            )
        said = self._replies.popleft()
        while self._said and self._said[0] is not said and self._before(self._said[0], said):
            if self.record is not None:
                self.record(self._said.popleft())
        used = self._usage.popleft() if self._usage else Used()
        message = AssistantMessage(
            text=said.text, thinking=said.thinking, calls=said.calls, opaque=said.opaque
        )
        yield Reply(message, Usage.model_validate(used.model_dump()), "stop")

    def _before(self, one: Event, other: Event) -> bool:
        return next(e for e in self._events if e is one or e is other) is one

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        answer = self._answers.get(call.id)
        if answer is None:
            raise _Over
        start = next(i for i, e in enumerate(self._events) if isinstance(e, ToolCalled) and e.id == call.id)
        stop = self._events.index(answer)
        for event in self._events[start + 1 : stop]:
            if event.type in ("plan", "edit", "checkpoint", "notice", "bullet"):
                record(event)
        return ToolResult(
            ok=answer.ok,
            text=answer.result,
            data=answer.data,
            images=answer.images,
            untrusted=answer.untrusted,
        )

    async def preview(self, call: ToolCall, record: Recorder) -> tuple[str, str] | ToolResult:
        asked = self._asked.get(call.id)
        if asked is None:
            raise _Over
        return asked.preview, asked.remember

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

    async def summarise(self, messages: tuple[Message, ...]) -> str:
        if not self._summaries:
            raise _Over
        return self._summaries.popleft().summary

    def outside(self) -> list[Event]:
        """What the loop does not decide: how a run was ended from outside (cancelled, timed out)."""
        theirs: list[Event] = [e for e in self._events if not isinstance(e, Notice)]
        count = sum(not isinstance(e, Notice) for e in self.made)
        rest = theirs[count:]
        ended = bool(self.made) and isinstance(self.made[-1], RunFinished)
        return rest if rest and not ended and isinstance(rest[-1], RunFinished) else []


def _plain(event: Event) -> str:
    """The event without what differs from play to play: new ids, measured times, prose of notices."""
    match event:
        case ApprovalAsked():
            event = event.model_copy(update={"approval_id": "", "kind": "edit", "why": ""})
        case ApprovalGiven():
            event = event.model_copy(update={"approval_id": ""})
        case InputAsked():
            event = event.model_copy(update={"input_id": ""})
        case InputGiven():
            event = event.model_copy(update={"input_id": ""})
        case ToolResponded():
            event = event.model_copy(update={"duration_ms": 0})
        case Compacted():
            event = event.model_copy(update={"before_tokens": 0})
        case _:
            pass
    return f"{event.type} {encode_event(event)}"


def _first_difference(recorded: list[Chunk], made: list[Event]) -> Difference | None:
    ours = [e for e in made if not isinstance(e, Notice)]
    theirs = [c for c in recorded if not isinstance(c.event, Notice)]
    for chunk, event in zip(theirs, ours, strict=False):
        if _plain(chunk.event) != _plain(event):
            return Difference(seq=chunk.seq, recorded=_plain(chunk.event), replayed=_plain(event))
    if len(ours) > len(theirs) and theirs:
        extra = _plain(ours[len(theirs)])
        return Difference(seq=theirs[-1].seq, recorded="the end", replayed=extra)
    if len(ours) < len(theirs):
        missing = theirs[len(ours)]
        return Difference(seq=missing.seq, recorded=_plain(missing.event), replayed="the end")
    return None
