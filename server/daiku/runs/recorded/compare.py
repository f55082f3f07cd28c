"""Compares a replayed run with its record: the first event that differs in more than what is left out."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from daiku.domain.base import Frozen, JsonObject
from daiku.domain.chunks import Chunk, encode_event
from daiku.domain.events import Event, RunFinished
from daiku.runs.recorded.normalised import plain

END = "the end"


class Difference(Frozen):
    """Where a replay left the record: the chunk, its run, that run's agent and the agents of the runs around it from
    the outermost on, and the how-many-th of the run's durable events it is (from 1; 0: none of its own). Then what was
    recorded and what came instead, each with the fields alone that differ where it is the same event."""

    seq: int
    run: str
    agent: str
    around: tuple[str, ...] = ()
    step: int
    recorded: str
    replayed: str


def at(chunk: Chunk, recorded: str, replayed: str) -> Difference:
    """A difference at the chunk; which step of its run that is, and which runs are around it, is put in by `placed`."""
    return Difference(
        seq=chunk.seq, run=chunk.run, agent=chunk.agent, step=0, recorded=recorded, replayed=replayed
    )


def placed(difference: Difference, chunks: Sequence[Chunk]) -> Difference:
    """The difference with its place among the durable `chunks` of the session."""
    own = [c.seq for c in chunks if c.run == difference.run and c.seq <= difference.seq]
    first = {c.run: c for c in reversed(chunks)}
    around: list[str] = []
    run, seen = difference.run, set[str]()
    while run in first and run not in seen and (parent := first[run].parent) is not None:
        seen.add(run)
        around.insert(0, first[parent].agent if parent in first else "?")
        run = parent
    return difference.model_copy(update={"step": len(own), "around": tuple(around)})


def first_difference(recorded: Sequence[Chunk], made: Sequence[Event]) -> Difference | None:
    """The first difference between a run on record and what was made again; None where there is none. A record
    that ends before its run did says nothing of what came then."""
    for chunk, event in zip(recorded, made, strict=False):
        if (found := difference_at(chunk, event)) is not None:
            return found
    if len(made) > len(recorded) and isinstance(recorded[-1].event, RunFinished):
        return at(recorded[-1], END, _shown(made[len(recorded)]))
    if len(made) < len(recorded):
        missing = recorded[len(made)]
        return at(missing, _shown(missing.event), END)
    return None


def difference_at(chunk: Chunk, made: Event, fields: Collection[str] | None = None) -> Difference | None:
    """How `made` differs from the event of the chunk; of `fields` alone (as in JSON) where they are given."""
    recorded = chunk.event
    if type(recorded) is not type(made):
        return at(chunk, _shown(recorded), _shown(made))
    one, other = _fields(recorded), _fields(made)
    names = (one | other).keys() if fields is None else fields
    differ = [name for name in one | other if name in names and one.get(name) != other.get(name)]
    if not differ:
        return None
    return at(chunk, _json(recorded.type, one, differ), _json(made.type, other, differ))


def _fields(event: Event) -> JsonObject:
    return json.loads(encode_event(plain(event)))


def _shown(event: Event) -> str:
    return f"{event.type} {encode_event(plain(event))}"


def _json(type_: str, fields: JsonObject, names: Sequence[str]) -> str:
    kept = {name: fields[name] for name in names if name in fields}
    return f"{type_} {json.dumps(kept, ensure_ascii=False, separators=(',', ':'))}"
