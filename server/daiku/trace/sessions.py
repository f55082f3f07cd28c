"""What runs ask of whoever keeps their sessions; `Journal` is the one on SQLite (R1.2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from daiku.domain.chunks import Chunk
from daiku.domain.events import Event
from daiku.domain.sessions import Session, SessionStatus
from daiku.store.lock import Lock
from daiku.trace.fork import Copies


class WritesChunks(Protocol):
    """The one writer of a session in this process."""

    @property
    def last_seq(self) -> int:
        """The last number given out; 0 before the first."""
        ...

    def write(
        self, run: str, parent: str | None, agent: str, events: Iterable[Event], *, surely: bool = False
    ) -> list[Chunk]:
        """Number, redact, and store `events` in one transaction (`surely`: durably). Raises DaikuError: none stored."""
        ...


class KeepsSessions(Protocol):
    """Sessions and their chunks. Methods raise UsageError (not_found), or DaikuError if the store fails."""

    def add_session(self, workspace: str = "", title: str = "") -> str:
        """The id of a new session without chunks."""
        ...

    def get_session(self, session: str) -> Session: ...

    def chunks(self, session: str, after_seq: int = 0) -> list[Chunk]:
        """The durable chunks after `after_seq`, oldest first."""
        ...

    def changes(self, session: str, after_seq: int = 0) -> list[Chunk]:
        """Of the durable chunks those that say what became of files."""
        ...

    def changed_sessions(self, workspace: str) -> dict[str, int]:
        """The sessions of a workspace that changed files, the last one first, each with where it last did."""
        ...

    def is_free(self, session: str) -> bool:
        """Return True if no process has a run under way in `session`."""
        ...

    def running_titles(self, workspace: str, *, beside: str, most: int) -> list[str]:
        """The titles of at most so many other sessions than `beside` in which a run is under way now."""
        ...

    def fork_session(self, session: str, at_seq: int, copies: Copies | None = None) -> Session:
        """A new session that holds the chunks up to and including `at_seq`, with ids of its own."""
        ...

    def session_of_run(self, run: str) -> str: ...

    def session_of_plan(self, plan: str) -> tuple[str, str]:
        """Session and run that last changed the plan."""
        ...

    def writer(self, session: str) -> WritesChunks: ...

    def note_status(self, session: str, status: SessionStatus, model: str = "", title: str = "") -> None:
        """Note what the last run is doing; a title only where there is none yet."""
        ...

    def lock(self, session: str) -> Lock:
        """The right to run in `session`, until released. Raises UsageError (busy)."""
        ...
