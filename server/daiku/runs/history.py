"""Reading a session's chunks back: the events of its top-level runs."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.domain.events import Chunk, Event, RunStarted


def events_of(chunks: Sequence[Chunk], until_run: str | None = None) -> list[Event]:
    """The events of top-level runs, those after `until_run` left out."""
    top = [c for c in chunks if c.parent is None]
    if until_run is None:
        return [c.event for c in top]
    last = max(i for i, c in enumerate(top) if c.run == until_run)
    return [c.event for c in top[: last + 1]]


def last_start(chunks: Sequence[Chunk]) -> Chunk:
    return next(c for c in reversed(chunks) if isinstance(c.event, RunStarted) and c.parent is None)
