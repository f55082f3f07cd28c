"""Comparison of a replayed run with its record, and the fields that are not compared."""

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

UncomparedKind: TypeAlias = Literal["left_out", "taken"]
"""`left_out`: differs between replays. `taken`: input from outside, read from the record."""


class UncomparedFields(NamedTuple):
    """Fields of event types that are not compared, and their label. No fields: the entire event."""

    what: Text
    types: tuple[type[Wire], ...]
    fields: tuple[str, ...] = ()
    within: Callable[[Any], bool] = lambda _: True
    """Condition that an event of these types must meet."""

    def covers(self, event: Event) -> bool:
        """Return True if these fields belong to the event."""
        return isinstance(event, self.types) and self.within(event)


def is_only_shown(event: Event) -> bool:
    """Return True if the event only informs the user. An agent's end also has usage, which is compared."""
    return isinstance(event, Notice | LineEvent) and not isinstance(event, AgentEnd)


def _is_from_model(event: MessageEvent) -> bool:
    return event.role == "assistant"


def _is_from_user(event: MessageEvent) -> bool:
    return event.role == "user" and event.reminder is None


LEFT_OUT = (
    UncomparedFields(text("replay.question_ids"), (ApprovalAsked, ApprovalGiven), ("approval_id",)),
    UncomparedFields(text("replay.question_ids"), (InputAsked, InputGiven), ("input_id",)),
    UncomparedFields(text("replay.reasons"), (ApprovalAsked,), ("kind", "why")),
    UncomparedFields(text("replay.durations"), (ToolResponse,), ("duration_ms",)),
    UncomparedFields(text("replay.sizes"), (Compacted, Pruned), ("before_tokens", "after_tokens")),
    UncomparedFields(text("replay.told"), (Notice, LineEvent), within=is_only_shown),
)
"""New ids, measured times and sizes, and events that only inform the user."""
TAKEN = (
    UncomparedFields(text("replay.requests"), (RunStarted,)),
    UncomparedFields(text("replay.model"), (Usage,)),
    UncomparedFields(text("replay.model"), (MessageEvent,), within=_is_from_model),
    UncomparedFields(text("replay.model"), (Compacted,), ("summary",)),
    UncomparedFields(text("replay.person"), (MessageEvent,), within=_is_from_user),
    UncomparedFields(text("replay.person"), (ApprovalGiven, InputGiven, Review, Restored)),
    UncomparedFields(text("replay.moments"), (MessageEvent,), ("seen",)),
    UncomparedFields(text("replay.arguments"), (ToolCallEvent,), ("args",)),
    UncomparedFields(
        text("replay.tools"), (ToolResponse,), ("ok", "result", "data", "images", "untrusted", "outcome")
    ),
    UncomparedFields(text("replay.tools"), (ApprovalAsked,), ("preview", "remember", "hunks")),
    UncomparedFields(text("replay.tools"), (Edit, CheckpointEvent, PlanEvent, Todo)),
    UncomparedFields(text("replay.failures"), (Failure,)),
)
"""The request, and the output of the model, the user, and the tools."""


class Uncompared(Frozen):
    """A kind of data that was not compared: its name, its number of events, and its label."""

    name: str
    kept: UncomparedKind
    events: int
    what: Text


def list_uncompared(events: Iterable[Event]) -> tuple[Uncompared, ...]:
    """Return what is not compared in these events, in the order of LEFT_OUT and TAKEN."""
    counts = Counter(part.what for event in events for part in (*LEFT_OUT, *TAKEN) if part.covers(event))
    kinds: dict[Text, UncomparedKind] = {part.what: "left_out" for part in LEFT_OUT}
    kinds |= {part.what: "taken" for part in TAKEN}
    return tuple(
        Uncompared(name=what.id.removeprefix("replay."), kept=kept, events=counts[what], what=what)
        for what, kept in kinds.items()
        if counts[what]
    )


class Difference(Frozen):
    """The first difference and its place.

    `step`: number of the run's event, from 1. `around`: names of the outer agents, outermost first.
    """

    seq: int
    run: str
    agent: str
    around: tuple[str, ...] = ()
    step: int
    recorded: str
    replayed: str


class Mismatch(NamedTuple):
    """A recorded chunk that differs from its replay, with both displayed."""

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


def find_mismatch(recorded: Sequence[Chunk], replayed: Sequence[Event]) -> Mismatch | None:
    """Return the first difference between a run and its replay. A record may end before its run did."""
    for chunk, event in zip(recorded, replayed, strict=False):
        if (mismatch := compare(chunk, event)) is not None:
            return mismatch
    if len(replayed) > len(recorded) and isinstance(recorded[-1].event, RunFinished):
        return Mismatch(recorded[-1], END, _display(replayed[len(recorded)]))
    if len(replayed) < len(recorded):
        missing = recorded[len(replayed)]
        return Mismatch(missing, _display(missing.event), END)
    return None


def compare(chunk: Chunk, replayed_event: Event, ignored: Collection[str] = ()) -> Mismatch | None:
    """Compare an event with its replay; skip `ignored` fields and those missing in an older record."""
    if type(chunk.event) is not type(replayed_event):
        return Mismatch(chunk, _display(chunk.event), _display(replayed_event))
    recorded, replayed = _compared_fields(chunk.event), _compared_fields(replayed_event)
    skipped = (recorded.keys() - json.loads(chunk.data).keys()).union(ignored)
    both = recorded | replayed
    names = [name for name in both if name not in skipped and recorded.get(name) != replayed.get(name)]
    if not names:
        return None
    return Mismatch(chunk, _display(chunk.event, names), _display(replayed_event, names))


def _compared_fields(event: Event) -> JsonObject:
    """Return the event as JSON, without fields that differ between replays. `texts` repeats other fields."""
    dropped = {to_camel(name) for part in LEFT_OUT if part.covers(event) for name in part.fields} | {"texts"}
    fields: JsonObject = json.loads(encode_event(event))
    return {name: value for name, value in fields.items() if name not in dropped}


def _display(event: Event, names: Collection[str] | None = None) -> str:
    fields = _compared_fields(event)
    selected = {name: value for name, value in fields.items() if names is None or name in names}
    return f"{event.type} {json.dumps(selected, ensure_ascii=False, separators=(',', ':'))}"
