"""What a replay does not compare, by name: what differs by nature, and what it takes from the record as it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias

from daiku.domain.base import Frozen, Wire
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
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.held import Compacted, Pruned, Todo
from daiku.domain.messages import Usage
from daiku.texts.catalogue import ENGLISH
from daiku.texts.text import NO_TEXT, Text, text

Kept: TypeAlias = Literal["left_out", "taken"]
"""Left out: what differs from play to play is not compared. Taken: what comes from outside is read from the record, and what
follows from it is compared."""


class Normalised(Frozen):
    """One thing that was not compared: its name, in how many events of the session it stands, and what it is."""

    name: str
    kept: Kept
    events: int
    what: Text


class Part(NamedTuple):
    """Fields of a type of event that are not compared, under the name of what they are; no fields: the whole event."""

    name: str
    kept: Kept
    types: tuple[type[Wire], ...]
    fields: tuple[str, ...] = ()
    within: Callable[[Any], bool] = lambda _: True
    """Of these events, those that are meant."""


def only_tells(event: Event) -> bool:
    """Whether an event only tells a person something; what an agent used follows from its run."""
    return isinstance(event, Notice | LineEvent) and not isinstance(event, AgentEnd)


LEFT_OUT = (
    Part("question_ids", "left_out", (ApprovalAsked, ApprovalGiven), ("approval_id",)),
    Part("question_ids", "left_out", (InputAsked, InputGiven), ("input_id",)),
    Part("reasons", "left_out", (ApprovalAsked,), ("kind", "why")),
    Part("durations", "left_out", (ToolResponse,), ("duration_ms",)),
    Part("sizes", "left_out", (Compacted, Pruned), ("before_tokens", "after_tokens")),
    Part("told", "left_out", (Notice, LineEvent), within=only_tells),
)
"""Ids that are new each time, measured times and sizes, words and notices that only tell."""


def _by_model(event: MessageEvent) -> bool:
    return event.role == "assistant"


def _by_person(event: MessageEvent) -> bool:
    return event.role == "user" and event.reminder is None


TAKEN = (
    Part("requests", "taken", (RunStarted,)),
    Part("model", "taken", (Usage,)),
    Part("model", "taken", (MessageEvent,), within=_by_model),
    Part("model", "taken", (Compacted,), ("summary",)),
    Part("person", "taken", (MessageEvent,), within=_by_person),
    Part("person", "taken", (ApprovalGiven, InputGiven, Review, Restored)),
    Part("moments", "taken", (MessageEvent,), ("seen",)),
    Part("arguments", "taken", (ToolCallEvent,), ("args",)),
    Part("tools", "taken", (ToolResponse,), ("ok", "result", "data", "images", "untrusted", "outcome")),
    Part("tools", "taken", (ApprovalAsked,), ("preview", "remember", "hunks")),
    Part("tools", "taken", (Edit, CheckpointEvent, PlanEvent, Todo)),
    Part("failures", "taken", (Failure,)),
)
"""What was asked for, and what the model, the person and the tools gave: what follows from it is compared."""
WORDS: Mapping[str, Text] = MappingProxyType(
    {
        "question_ids": text("replay.question_ids"),
        "reasons": text("replay.reasons"),
        "durations": text("replay.durations"),
        "sizes": text("replay.sizes"),
        "moments": text("replay.moments"),
        "told": text("replay.told"),
        "requests": text("replay.requests"),
        "model": text("replay.model"),
        "arguments": text("replay.arguments"),
        "person": text("replay.person"),
        "tools": text("replay.tools"),
        "failures": text("replay.failures"),
    }
)


def normalised(events: Iterable[Event]) -> tuple[Normalised, ...]:
    """What is not compared of these events, in the order in which it is listed here."""
    types = Counter[str]()
    for event in events:
        types.update({p.name for p in (*LEFT_OUT, *TAKEN) if isinstance(event, p.types) and p.within(event)})
    kinds: dict[str, Kept] = {part.name: part.kept for part in (*LEFT_OUT, *TAKEN)}
    return tuple(
        Normalised(name=name, kept=kept, events=types[name], what=WORDS[name])
        for name, kept in kinds.items()
        if types[name]
    )


def plain(event: Event) -> Event:
    """The event without what differs from play to play."""
    if isinstance(event, Failure):
        event = event.in_language(ENGLISH)
    dropped = {
        name: _EMPTY.get(name, "")
        for part in LEFT_OUT
        if isinstance(event, part.types)
        for name in part.fields
    }
    return event.model_copy(update=dropped) if dropped else event


_EMPTY: Mapping[str, object] = MappingProxyType(
    {"kind": "edit", "why": NO_TEXT, "duration_ms": 0, "before_tokens": 0, "after_tokens": 0}
)
