"""Runs on record that are not under way here: opened to write to them, or to end them."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from daiku.agents.table import agent_on_record
from daiku.core.state.state import State
from daiku.domain.chunks import Chunk
from daiku.domain.events import Event
from daiku.runs.ending import end
from daiku.runs.recorded.history import asked_by, open_nested_starts, state_of
from daiku.runs.run_log import Listener, RunLog, open_log
from daiku.runs.services import RunServices


def nobody(_: Chunk) -> None:
    """A listener for writes that no front follows."""


def from_record(
    services: RunServices,
    chunks: Sequence[Chunk],
    run: str,
    state: State,
    listen: Listener = nobody,
) -> RunLog:
    """The run as it stands on record, a nested one too."""
    first = next(c for c in chunks if c.run == run)
    agent = agent_on_record(first.agent)
    return open_log(services, agent, run, first.session, state, listen, first.parent)


@contextmanager
def reopen(services: RunServices, run: str, question: str) -> Generator[RunLog]:
    """The run that asked `question`, `run` or a nested one of its session, to write the answer to; under
    the session's lock. Raises UsageError."""
    session = services.journal.session_of_run(run)
    lock = services.journal.lock(session)
    try:
        chunks = services.journal.chunks(session)
        asking = asked_by(chunks, question) or run
        yield from_record(services, chunks, asking, state_of(chunks, asking))
    finally:
        lock.release()


def add_to_record(services: RunServices, session: str, run: str, *events: Event) -> None:
    """Write what the person did in a session in which nothing is under way. Raises UsageError where something is."""
    lock = services.journal.lock(session)
    try:
        services.journal.writer(session).write(run, None, "user", events)
    finally:
        lock.release()


def end_on_record(log: RunLog, chunks: Sequence[Chunk], listen: Listener = nobody) -> None:
    """Cancel a run that is not under way, its nested runs first: each ends in one status."""
    for start in open_nested_starts(chunks, log.run):
        nested = from_record(log.services, chunks, start.run, state_of(chunks, start.run), listen)
        end(nested, "cancelled", None)
    end(log, "cancelled", None)
