"""Read the history of a session: runs and their states, forks of it, and the checkpoints that forks copy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daiku.core.state.fold import fold
from daiku.core.state.state import State
from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    ApprovalAsked,
    CheckpointEvent,
    Edit,
    Event,
    InputAsked,
    Restored,
    Review,
    RunFinished,
    RunStarted,
)
from daiku.workspace.checkpoints import CheckpointStore


def events_of(chunks: Sequence[Chunk], until_run: str | None = None) -> list[Event]:
    """The events of top-level runs, those after `until_run` left out."""
    top = [c for c in chunks if c.parent is None]
    if until_run is None:
        return [c.event for c in top]
    last = max(i for i, c in enumerate(top) if c.run == until_run)
    return [c.event for c in top[: last + 1]]


def starts_of(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Where the person's runs begin, without the nested ones."""
    return [c for c in chunks if isinstance(c.event, RunStarted) and c.parent is None]


def last_start(chunks: Sequence[Chunk]) -> Chunk:
    return next(c for c in reversed(chunks) if isinstance(c.event, RunStarted) and c.parent is None)


def state_of(chunks: Sequence[Chunk], run: str) -> State:
    """The state of `run`, a nested one too."""
    own = [c for c in chunks if c.run == run]
    if own[0].parent is None:
        return fold(events_of(chunks, until_run=run))
    return fold(c.event for c in own)


def asked_by(chunks: Sequence[Chunk], question: str) -> str | None:
    """The run that asked for an approval or an answer of that id."""
    for chunk in chunks:
        match chunk.event:
            case ApprovalAsked(approval_id=key) | InputAsked(input_id=key) if key == question:
                return chunk.run
            case _:
                pass
    return None


def open_nested_starts(chunks: Sequence[Chunk], run: str) -> tuple[Chunk, ...]:
    """The starts of nested runs of `run` that have no end, the innermost first."""
    ended = {c.run for c in chunks if isinstance(c.event, RunFinished)}
    below, found = {run}, list[Chunk]()
    for chunk in chunks:
        if isinstance(chunk.event, RunStarted) and chunk.parent in below:
            below.add(chunk.run)
            if chunk.run not in ended:
                found.insert(0, chunk)
    return tuple(found)


def copy_checkpoints(store: CheckpointStore, session: str, chunks: Sequence[Chunk]) -> Mapping[str, str]:
    """Copy for `session` the checkpoints that the chunks name; return the new ids by the old ones."""
    names = dict.fromkeys(name for chunk in chunks if (name := checkpoint_of(chunk)) is not None)
    restored: set[str] = set()
    for chunk in chunks:
        if isinstance(chunk.event, Restored):
            back, redo = store.get(chunk.event.checkpoint_id), store.get(chunk.event.redo or "")
            restored |= set(redo.undid) if redo is not None else set[str]()
            restored -= set(back.undid) if back is not None and back.kind == "restore" else set[str]()
    return store.copy(session, tuple(names), restored)


def checkpoint_of(chunk: Chunk) -> str | None:
    """Return the checkpoint taken before the change that the chunk records; None for other chunks."""
    match chunk.event:
        case CheckpointEvent(checkpoint_id=name) | Edit(checkpoint_id=name) | Review(checkpoint_id=name):
            return name
        case Restored(redo=name):
            return name
        case _:
            return None


def first_after(store: CheckpointStore, chunks: Sequence[Chunk], at_seq: int) -> str | None:
    """The first checkpoint after `at_seq`: going back to it brings back the files as they were there."""
    before = {checkpoint_of(chunk) for chunk in chunks if chunk.seq <= at_seq}
    later = (checkpoint_of(chunk) for chunk in chunks if chunk.seq > at_seq)
    return next((n for n in later if n is not None and n not in before and store.get(n) is not None), None)
