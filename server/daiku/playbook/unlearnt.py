"""Table of runs that are pending for learning, and learning from those of ended processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from time import monotonic

from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError, UsageError
from daiku.domain.events import Bullet
from daiku.run.recorded.history import last_start
from daiku.run.services import RecordsPendingRuns
from daiku.store.database import Database
from daiku.trace.journal import Journal
from daiku.trace.sessions import SessionStore

logger = logging.getLogger(__name__)

SECONDS = 2.0
"""Time in seconds after which no further session is started."""


def find_left_sessions(journal: SessionStore, pending: RecordsPendingRuns) -> tuple[str, ...]:
    """Return the sessions with pending runs that no process is running."""
    return tuple(session for session in pending.sessions() if journal.is_free(session))


def catch_up(
    journal: Journal, pending: RecordsPendingRuns, learning: Callable[[str], Sequence[Bullet]]
) -> None:
    """Learn from pending runs for a short while, and add the news to their sessions.

    A failure is logged and retried the next time.
    """
    deadline = monotonic() + SECONDS
    try:
        for session in find_left_sessions(journal, pending):
            with suppress(UsageError):  # deleted, or resumed in the meantime
                _record_news(journal, session, learning(session))
            pending.remove_session(session)
            if monotonic() > deadline:
                break
    except DaikuError:
        logger.warning("what runs of ended processes taught was not learnt", exc_info=True)


def _record_news(journal: Journal, session: str, news: Sequence[Bullet]) -> None:
    if news:
        lock = journal.lock(session)
        try:
            run = last_start(journal.chunks(session)).run
            journal.writer(session).write(run, None, "user", tuple(news))
        finally:
            lock.release()


MOST = 20
"""Maximum number of sessions to learn from at a time, newest first."""
REFLECTION_TABLE = "runs_to_look_at"
"""Table of runs that are pending for a reflection, with the schema of `unlearnt_runs`."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS unlearnt_runs(
  run TEXT PRIMARY KEY, session TEXT NOT NULL, workspace TEXT NOT NULL, number INTEGER NOT NULL) STRICT;
CREATE INDEX IF NOT EXISTS unlearnt_runs_of ON unlearnt_runs(workspace, number);
"""
_NOTE = (
    "INSERT INTO unlearnt_runs VALUES(?, ?, ?, (SELECT COALESCE(MAX(number), 0) + 1 FROM unlearnt_runs))"
    " ON CONFLICT(run) DO NOTHING"
)
_SESSIONS = (
    "SELECT session FROM unlearnt_runs WHERE workspace = ? GROUP BY session ORDER BY MAX(number) DESC LIMIT ?"
)
_RUNS = "SELECT run FROM unlearnt_runs WHERE workspace = ? AND session = ?"
_FORGET = "DELETE FROM unlearnt_runs WHERE run = ?"


@dataclass(slots=True)
class PendingRuns:
    """The pending runs of one folder. Methods raise DaikuError."""

    database: Database
    workspace: str
    table: str = "unlearnt_runs"
    _prepared: bool = False

    def add(self, run: str, session: str) -> None:
        """Record that a run started or resumed."""
        if not self._prepared:
            self.database.prepare(self._sql(_SCHEMA))
            self._prepared = True
        self.database.write(self._sql(_NOTE), (run, session, self.workspace))

    def remove_session(self, session: str, besides: Collection[str] = ()) -> None:
        """Remove the runs of a session, except those in `besides`."""
        if self._has_table():
            runs = [row[0] for row in self.database.query(self._sql(_RUNS), (self.workspace, session))]
            self.database.write_all(self._sql(_FORGET), [(run,) for run in runs if run not in besides])

    def sessions(self) -> tuple[str, ...]:
        """Return the sessions with pending runs, newest first, at most `MOST`."""
        rows = self.database.query(self._sql(_SESSIONS), (self.workspace, MOST)) if self._has_table() else []
        return tuple(row[0] for row in rows)

    def _sql(self, statement: str) -> str:
        return statement.replace("unlearnt_runs", self.table)

    def _has_table(self) -> bool:
        self._prepared = self._prepared or self.database.has(self.table)
        return self._prepared
