"""Read from a session's chunks: events of top-level runs, the state of a run, which run asked a question."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.core.state.fold import fold
from daiku.core.state.state import State
from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, Event, InputAsked, RunFinished, RunStarted


def events_of(chunks: Sequence[Chunk], until_run: str | None = None) -> list[Event]:
    """The events of top-level runs, those after `until_run` left out."""
    top = [c for c in chunks if c.parent is None]
    if until_run is None:
        return [c.event for c in top]
    last = max(i for i, c in enumerate(top) if c.run == until_run)
    return [c.event for c in top[: last + 1]]


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
