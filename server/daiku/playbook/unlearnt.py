"""Table of the runs that were not learnt from yet, and learning from those that ended processes left behind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from time import monotonic

from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError, UsageError
from daiku.domain.events import Bullet
from daiku.run.recorded.history import last_start
from daiku.run.services import NotesUnlearnt
from daiku.store.database import Database
from daiku.trace.journal import Journal
from daiku.trace.sessions import KeepsSessions

logger = logging.getLogger(__name__)

SECONDS = 2.0
"""No further session is begun after this time."""


def left_behind(journal: KeepsSessions, unlearnt: NotesUnlearnt) -> tuple[str, ...]:
    """The sessions whose runs nobody learns from now: none is under way in any process."""
    return tuple(session for session in unlearnt.sessions() if journal.is_free(session))


def catch_up(journal: Journal, unlearnt: NotesUnlearnt, learning: Callable[[str], Sequence[Bullet]]) -> None:
    """Learn from the runs that were left behind, for a short while; what they taught is added to their sessions. Where that
    fails it is tried again another time: whoever looks at a playbook is shown what there is."""
    until = monotonic() + SECONDS
    try:
        for session in left_behind(journal, unlearnt):
            with suppress(UsageError):  # deleted, or somebody goes on with it just now
                _tell(journal, session, learning(session))
            unlearnt.learnt(session)
            if monotonic() > until:
                break
    except DaikuError:
        logger.warning("what runs of ended processes taught was not learnt", exc_info=True)


def _tell(journal: Journal, session: str, news: Sequence[Bullet]) -> None:
    if news:
        lock = journal.lock(session)
        try:
            run = last_start(journal.chunks(session)).run
            journal.writer(session).write(run, None, "user", tuple(news))
        finally:
            lock.release()


MOST = 20
"""Sessions that are learnt from at a time, the newest first: nobody who looks at a playbook waits for a year of them."""
PENDING_LOOKS = "runs_to_look_at"
"""The table of runs that a model has not looked at yet, in the form of the table of runs that were not learnt from."""
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
class Unlearnt:
    """The runs of one folder that began and were not learnt from yet. Methods raise DaikuError."""

    database: Database
    workspace: str
    table: str = "unlearnt_runs"
    _prepared: bool = False

    def begins(self, run: str, session: str) -> None:
        """A run begins, or goes on: whatever becomes of this process, it is to be learnt from."""
        if not self._prepared:
            self.database.prepare(self._sql(_SCHEMA))
            self._prepared = True
        self.database.write(self._sql(_NOTE), (run, session, self.workspace))

    def learnt(self, session: str, besides: Collection[str] = ()) -> None:
        """All runs of a session were learnt from, but for those that are under way still."""
        if self._is_there():
            runs = [row[0] for row in self.database.query(self._sql(_RUNS), (self.workspace, session))]
            self.database.write_all(self._sql(_FORGET), [(run,) for run in runs if run not in besides])

    def sessions(self) -> tuple[str, ...]:
        """The sessions that have such runs, the newest first, not all of very many."""
        rows = self.database.query(self._sql(_SESSIONS), (self.workspace, MOST)) if self._is_there() else []
        return tuple(row[0] for row in rows)

    def _sql(self, statement: str) -> str:
        return statement.replace("unlearnt_runs", self.table)

    def _is_there(self) -> bool:
        self._prepared = self._prepared or self.database.has(self.table)
        return self._prepared
