"""Forks a conversation at a point of its past: copies its checkpoints, and finds the files as they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from daiku.domain.chunks import Chunk
from daiku.domain.events import CheckpointEvent, Edit, Restored, Review
from daiku.workspace.checkpoints import CheckpointStore


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
