"""Protocols for the store of sessions that runs use; `Journal` implements them on SQLite."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from daiku.domain.chunks import Chunk
from daiku.domain.events import Event
from daiku.domain.sessions import Session, SessionStatus
from daiku.store.lock import Lock
from daiku.trace.fork import CopyReferences


class ChunkWriter(Protocol):
    """The only writer of a session in this process."""

    @property
    def last_seq(self) -> int:
        """Last assigned number; 0 before the first."""
        ...

    def write(
        self, run: str, parent: str | None, agent: str, events: Iterable[Event], *, durable: bool = False
    ) -> list[Chunk]:
        """Number, redact, and store `events` in one transaction.

        `durable`: synced to disk. Raises DaikuError: none stored.
        """
        ...


class SessionStore(Protocol):
    """Sessions and their chunks. Methods raise UsageError (not_found), or DaikuError if the store fails."""

    def add_session(self, workspace: str = "", title: str = "") -> str:
        """Create a session without chunks and return its id."""
        ...

    def get_session(self, session: str) -> Session: ...

    def chunks(self, session: str, after_seq: int = 0) -> list[Chunk]:
        """Return the durable chunks after `after_seq`, oldest first."""
        ...

    def changes(self, session: str, after_seq: int = 0) -> list[Chunk]:
        """Return the durable chunks that record file changes."""
        ...

    def changed_sessions(self, workspace: str) -> dict[str, int]:
        """Return a workspace's sessions with file changes, latest first, with the seq of their last change."""
        ...

    def is_free(self, session: str) -> bool:
        """Return True if no process has a live run in `session`."""
        ...

    def running_titles(self, workspace: str, *, excluding: str, most: int) -> list[str]:
        """Return at most `most` titles of other sessions with a live run, without `excluding`."""
        ...

    def fork_session(self, session: str, at_seq: int, copies: CopyReferences | None = None) -> Session:
        """Copy the chunks up to `at_seq` (inclusive) to a new session, with new ids."""
        ...

    def session_of_run(self, run: str) -> str: ...

    def session_of_plan(self, plan: str) -> tuple[str, str]:
        """Return the session and run that last changed the plan."""
        ...

    def writer(self, session: str) -> ChunkWriter: ...

    def note_status(self, session: str, status: SessionStatus, model: str = "", title: str = "") -> None:
        """Store the status of the last run; the title only if there is none."""
        ...

    def lock(self, session: str) -> Lock:
        """Acquire the right to run in `session`, until release. Raises UsageError (busy)."""
        ...
