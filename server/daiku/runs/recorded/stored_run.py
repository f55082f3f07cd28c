"""Runs that are not under way here, as the journal has them: to write to, or to be ended."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from daiku.agents.table import agent_on_record
from daiku.core.state.state import State
from daiku.domain.chunks import Chunk
from daiku.domain.events import Event
from daiku.runs.ending import end
from daiku.runs.live import LiveRun
from daiku.runs.recorded.history import asked_by, open_below, state_of
from daiku.runs.wiring import Wiring


def nobody(_: Chunk) -> None:
    """A listener for writes that no front follows."""


def from_record(
    wiring: Wiring,
    chunks: Sequence[Chunk],
    run: str,
    state: State,
    listen: Callable[[Chunk], None] = nobody,
) -> LiveRun:
    """The run as it stands on record, a nested one too."""
    first = next(c for c in chunks if c.run == run)
    live = LiveRun(wiring, agent_on_record(first.agent), run, first.session, state, listen, "ask")
    live.parent = first.parent
    return live


@contextmanager
def reopened(wiring: Wiring, run: str, question: str) -> Generator[LiveRun]:
    """The run that asked `question`, `run` or a nested one of its session, to write the answer to; under
    the session's lock. Raises UsageError."""
    session = wiring.journal.session_of_run(run)
    lock = wiring.journal.lock(session)
    try:
        chunks = wiring.journal.chunks(session)
        asking = asked_by(chunks, question) or run
        live = from_record(wiring, chunks, asking, state_of(chunks, asking))
        live.prepare()
        yield live
    finally:
        lock.release()


def add_to_record(wiring: Wiring, session: str, run: str, *events: Event) -> None:
    """Write what the person did in a session in which nothing is under way. Raises UsageError where something is."""
    lock = wiring.journal.lock(session)
    try:
        wiring.journal.writer(session).write(run, None, "user", events)
    finally:
        lock.release()


def end_on_record(live: LiveRun, chunks: Sequence[Chunk], listen: Callable[[Chunk], None] = nobody) -> None:
    """Cancel a run that is not under way, its nested runs first: each ends in one status."""
    for start in open_below(chunks, live.run):
        nested = from_record(live.wiring, chunks, start.run, state_of(chunks, start.run), listen)
        end(nested, "cancelled", None)
    end(live, "cancelled", None)
