"""Runs in the journal that are not in progress in this process: append to them, or end them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from daiku.domain.chunks import Chunk
from daiku.domain.events import Event
from daiku.run.ending import end
from daiku.run.recorded.history import find_asking_run, open_nested_starts, state_of
from daiku.run.rules.state.state import State
from daiku.run.run_log import Listener, RunLog, open_log
from daiku.run.services import RunServices


def ignore_chunk(_: Chunk) -> None:
    """Ignore the chunk; the listener if no client follows."""


def from_record(
    services: RunServices, chunks: Sequence[Chunk], run: str, state: State, listen: Listener = ignore_chunk
) -> RunLog:
    """Return the log of a recorded run, nested ones included."""
    first = next(c for c in chunks if c.run == run)
    if services.trace is not None and first.parent is None:
        services.trace.resume(run, chunks)
    agent = services.agents.find_recorded(first.agent)
    return open_log(services, agent, run, first.session, state, listen, first.parent)


@contextmanager
def reopen(services: RunServices, run: str, question: str) -> Generator[RunLog]:
    """Yield the log of the run that asked `question`, holding the session's lock. Raises UsageError."""
    session = services.journal.session_of_run(run)
    lock = services.journal.lock(session)
    try:
        chunks = services.journal.chunks(session)
        asking_run = find_asking_run(chunks, question) or run
        yield from_record(services, chunks, asking_run, state_of(chunks, asking_run))
    finally:
        lock.release()


def add_to_record(services: RunServices, session: str, run: str, *events: Event) -> None:
    """Record a user's action in a session without a live run. Raises UsageError if there is one."""
    lock = services.journal.lock(session)
    try:
        services.journal.writer(session).write(run, None, "user", events)
    finally:
        lock.release()


def end_on_record(log: RunLog, chunks: Sequence[Chunk], listen: Listener = ignore_chunk) -> None:
    """Cancel a run that is not in progress, its nested runs first."""
    for start in open_nested_starts(chunks, log.run):
        nested = from_record(log.services, chunks, start.run, state_of(chunks, start.run), listen)
        end(nested, "cancelled", None)
    end(log, "cancelled", None)
