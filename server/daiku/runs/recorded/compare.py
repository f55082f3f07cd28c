"""Compares a replayed run with its record: the first event that differs in more than ids and times."""

from __future__ import annotations

from daiku.domain.base import Frozen
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.errors import Failure
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    Event,
    InputAsked,
    InputGiven,
    RunFinished,
    ToolResponse,
)
from daiku.domain.held import Compacted, Pruned
from daiku.texts.catalogue import ENGLISH
from daiku.texts.text import NO_TEXT


class Difference(Frozen):
    """Where a replay left the record: the chunk, what was recorded, what came instead."""

    seq: int
    recorded: str
    replayed: str


def _plain(event: Event) -> str:
    """The event without what differs from play to play: new ids, measured times, prose of notices."""
    match event:
        case ApprovalAsked():
            event = event.model_copy(update={"approval_id": "", "kind": "edit", "why": NO_TEXT})
        case Failure():
            event = event.in_language(ENGLISH)
        case ApprovalGiven():
            event = event.model_copy(update={"approval_id": ""})
        case InputAsked():
            event = event.model_copy(update={"input_id": ""})
        case InputGiven():
            event = event.model_copy(update={"input_id": ""})
        case ToolResponse():
            event = event.model_copy(update={"duration_ms": 0})
        case Compacted() | Pruned():
            event = event.model_copy(update={"before_tokens": 0, "after_tokens": 0})
        case _:
            pass
    return f"{event.type} {encode_event(event)}"


def first_difference(recorded: list[Chunk], made: list[Event]) -> Difference | None:
    """The first difference between a run on record and what was made again; None where there is none. A record
    that ends before its run did says nothing of what came then."""
    for chunk, event in zip(recorded, made, strict=False):
        if _plain(chunk.event) != _plain(event):
            return Difference(seq=chunk.seq, recorded=_plain(chunk.event), replayed=_plain(event))
    if len(made) > len(recorded) and isinstance(recorded[-1].event, RunFinished):
        extra = _plain(made[len(recorded)])
        return Difference(seq=recorded[-1].seq, recorded="the end", replayed=extra)
    if len(made) < len(recorded):
        missing = recorded[len(made)]
        return Difference(seq=missing.seq, recorded=_plain(missing.event), replayed="the end")
    return None
