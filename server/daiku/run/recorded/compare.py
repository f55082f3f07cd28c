"""Compare a replayed run with its record: the fields that are not compared, and the first difference in the others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic.alias_generators import to_camel

from daiku.domain.base import Frozen, JsonObject, Wire
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.errors import Failure
from daiku.domain.events import (
    AgentEnd,
    ApprovalAsked,
    ApprovalGiven,
    CheckpointEvent,
    Edit,
    Event,
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
from daiku.domain.messages import Usage
from daiku.texts.text import Text, text

Kept: TypeAlias = Literal["left_out", "taken"]
"""Left out: differs from play to play. Taken: comes from outside and is read from the record; its consequences are compared."""


class Part(NamedTuple):
    """Fields of event types that are not compared, and what they are; no fields: the complete event."""

    what: Text
    types: tuple[type[Wire], ...]
    fields: tuple[str, ...] = ()
    within: Callable[[Any], bool] = lambda _: True
    """A condition that an event of these types must meet."""

    def covers(self, event: Event) -> bool:
        """Return True if the part applies to the event."""
        return isinstance(event, self.types) and self.within(event)


def is_only_shown(event: Event) -> bool:
    """Return True if the event only informs the user. An agent's end does more: its usage follows from its run."""
    return isinstance(event, Notice | LineEvent) and not isinstance(event, AgentEnd)


def _is_from_model(event: MessageEvent) -> bool:
    return event.role == "assistant"


def _is_from_user(event: MessageEvent) -> bool:
    return event.role == "user" and event.reminder is None


LEFT_OUT = (
    Part(text("replay.question_ids"), (ApprovalAsked, ApprovalGiven), ("approval_id",)),
    Part(text("replay.question_ids"), (InputAsked, InputGiven), ("input_id",)),
    Part(text("replay.reasons"), (ApprovalAsked,), ("kind", "why")),
    Part(text("replay.durations"), (ToolResponse,), ("duration_ms",)),
    Part(text("replay.sizes"), (Compacted, Pruned), ("before_tokens", "after_tokens")),
    Part(text("replay.told"), (Notice, LineEvent), within=is_only_shown),
)
"""New ids, measured times and sizes, and events that only inform."""
TAKEN = (
    Part(text("replay.requests"), (RunStarted,)),
    Part(text("replay.model"), (Usage,)),
    Part(text("replay.model"), (MessageEvent,), within=_is_from_model),
    Part(text("replay.model"), (Compacted,), ("summary",)),
    Part(text("replay.person"), (MessageEvent,), within=_is_from_user),
    Part(text("replay.person"), (ApprovalGiven, InputGiven, Review, Restored)),
    Part(text("replay.moments"), (MessageEvent,), ("seen",)),
    Part(text("replay.arguments"), (ToolCallEvent,), ("args",)),
    Part(text("replay.tools"), (ToolResponse,), ("ok", "result", "data", "images", "untrusted", "outcome")),
    Part(text("replay.tools"), (ApprovalAsked,), ("preview", "remember", "hunks")),
    Part(text("replay.tools"), (Edit, CheckpointEvent, PlanEvent, Todo)),
    Part(text("replay.failures"), (Failure,)),
)
"""The request, and what the model, the user and the tools returned."""


class Normalised(Frozen):
    """One thing that was not compared: its name, the number of events that have it, and what it is."""

    name: str
    kept: Kept
    events: int
    what: Text


def list_uncompared(events: Iterable[Event]) -> tuple[Normalised, ...]:
    """List what is not compared of these events, in the order of the two tables."""
    counts = Counter(part.what for event in events for part in (*LEFT_OUT, *TAKEN) if part.covers(event))
    kinds: dict[Text, Kept] = {part.what: "left_out" for part in LEFT_OUT}
    kinds |= {part.what: "taken" for part in TAKEN}
    return tuple(
        Normalised(name=what.id.removeprefix("replay."), kept=kept, events=counts[what], what=what)
        for what, kept in kinds.items()
        if counts[what]
    )


class Difference(Frozen):
    """The first difference and its place. `step`: number of the run's event, from 1; `around`: outer agents first."""

    seq: int
    run: str
    agent: str
    around: tuple[str, ...] = ()
    step: int
    recorded: str
    replayed: str


class Mismatch(NamedTuple):
    """A recorded chunk, and how it and its replay are shown where they differ."""

    chunk: Chunk
    recorded: str
    replayed: str

    def locate(self, chunks: Sequence[Chunk]) -> Difference:
        """Return the difference with its place among the durable `chunks` of the session."""
        seq, run, agent, parent = self.chunk.seq, self.chunk.run, self.chunk.agent, self.chunk.parent
        first = {chunk.run: chunk for chunk in reversed(chunks)}
        around: list[str] = []
        while parent is not None and len(around) < len(first):
            outer = first.get(parent)
            around.insert(0, outer.agent if outer else "?")
            parent = outer.parent if outer else None
        return Difference(
            seq=seq,
            run=run,
            agent=agent,
            around=tuple(around),
            step=sum(chunk.run == run and chunk.seq <= seq for chunk in chunks),
            recorded=self.recorded,
            replayed=self.replayed,
        )


END = "the end"


def find_mismatch(recorded: Sequence[Chunk], made: Sequence[Event]) -> Mismatch | None:
    """Return the first difference between a run and its replay. A record may end before its run did."""
    for chunk, event in zip(recorded, made, strict=False):
        if (mismatch := compare(chunk, event)) is not None:
            return mismatch
    if len(made) > len(recorded) and isinstance(recorded[-1].event, RunFinished):
        return Mismatch(recorded[-1], END, _show(made[len(recorded)]))
    if len(made) < len(recorded):
        missing = recorded[len(made)]
        return Mismatch(missing, _show(missing.event), END)
    return None


def compare(chunk: Chunk, made: Event, ignored: Collection[str] = ()) -> Mismatch | None:
    """Compare an event with its replay in all fields but those `ignored` or not recorded by an older version."""
    if type(chunk.event) is not type(made):
        return Mismatch(chunk, _show(chunk.event), _show(made))
    recorded, replayed = _compared_fields(chunk.event), _compared_fields(made)
    skipped = (recorded.keys() - json.loads(chunk.data).keys()).union(ignored)
    both = recorded | replayed
    names = [name for name in both if name not in skipped and recorded.get(name) != replayed.get(name)]
    if not names:
        return None
    return Mismatch(chunk, _show(chunk.event, names), _show(made, names))


def _compared_fields(event: Event) -> JsonObject:
    """Return the event as JSON, without what differs from play to play. `texts` repeats the sentences by id."""
    dropped = {to_camel(name) for part in LEFT_OUT if part.covers(event) for name in part.fields} | {"texts"}
    fields: JsonObject = json.loads(encode_event(event))
    return {name: value for name, value in fields.items() if name not in dropped}


def _show(event: Event, names: Collection[str] | None = None) -> str:
    fields = _compared_fields(event)
    shown = {name: value for name, value in fields.items() if names is None or name in names}
    return f"{event.type} {json.dumps(shown, ensure_ascii=False, separators=(',', ':'))}"
