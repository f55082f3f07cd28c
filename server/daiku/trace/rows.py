"""Rows of the journal: SQL schema, conversion of chunks, and the queries for file changes."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TypeAlias

from pydantic import ValidationError

from daiku.domain.chunks import Chunk, decode_event
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import Event
from daiku.store.database import Database
from daiku.store.lock import LockLost
from daiku.texts.text import text

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions(
  id TEXT PRIMARY KEY, title TEXT NOT NULL, workspace TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  model TEXT, status TEXT NOT NULL, reserved INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX IF NOT EXISTS sessions_by_time ON sessions(workspace, updated_at DESC);
CREATE INDEX IF NOT EXISTS sessions_under_way ON sessions(workspace, updated_at DESC)
  WHERE status = 'running' OR status = 'waiting';
CREATE TABLE IF NOT EXISTS chunks(
  session TEXT NOT NULL, seq INTEGER NOT NULL, time TEXT NOT NULL, run TEXT NOT NULL,
  parent TEXT, agent TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  PRIMARY KEY(session, seq)) STRICT, WITHOUT ROWID;
DROP INDEX IF EXISTS chunks_by_run;
DROP INDEX IF EXISTS changes;
CREATE INDEX IF NOT EXISTS runs ON chunks(run) WHERE type IN ('run_started', 'agent_start');
CREATE INDEX IF NOT EXISTS file_changes ON chunks(session, seq)
  WHERE type = 'checkpoint' OR type = 'edit' OR type = 'review' OR type = 'restored';
CREATE TABLE IF NOT EXISTS copied_runs(
  run TEXT PRIMARY KEY, original TEXT NOT NULL, session TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS copied_runs_of ON copied_runs(original);
CREATE INDEX IF NOT EXISTS copied_runs_in ON copied_runs(session);
"""
"""Tables of the journal; indexes cover only what is looked up. `copied_runs`: copies of `original` runs in
forks."""

ALL = (1 << 63) - 1
"""Limit above any number of rows."""
INSERT = "INSERT INTO chunks VALUES(?,?,?,?,?,?,?,?)"
INSERT_AS_HOLDER = (
    "INSERT INTO chunks SELECT ?,?,?,?,?,?,?,? FROM leases WHERE session = ? AND number = ? FOR SHARE"
    " RETURNING seq"
)
"""INSERT that requires our lease of the session. A process that takes over waits for it and reads its rows."""
_HELD = "SELECT 1 FROM leases WHERE session = ? AND number = ? FOR SHARE"
READ = "SELECT seq, time, run, parent, agent, type, data FROM chunks"

Row: TypeAlias = tuple[str, int, str, str, str | None, str, str, str]
"""A chunk as INSERT stores it."""
Read: TypeAlias = tuple[int, str, str, str | None, str, str, str]
"""A chunk as READ returns it, without its session."""


def row_of(c: Chunk) -> Row:
    """Return the values of INSERT for `c`."""
    return (c.session, c.seq, c.time, c.run, c.parent, c.agent, c.event.type, c.data)


def chunk_of(session: str, row: Read) -> Chunk:
    """Return the chunk of `session` in `row`. Raises DaikuError if it is unreadable."""
    seq, time, run, parent, agent, type_, data = row
    return Chunk(seq, time, session, run, agent, event_of(type_, data), data, parent)


def event_of(type_: str, data: str) -> Event:
    """Return the stored event. Raises DaikuError if it is unreadable."""
    try:
        return decode_event(type_, data)
    except (KeyError, ValidationError) as error:
        message = text("journal.unreadable")
        hint = text("journal.bring_back")
        raise DaikuError(Failure(kind="internal", message=message, hint=hint)) from error


# SQLite uses the partial index only if its condition is repeated literally. `type IN (…)` would build a
# list on every insert, which costs a fifth of it.
FILE_CHANGES = (
    f"{READ} WHERE session = ? AND seq > ?"
    " AND (type = 'checkpoint' OR type = 'edit' OR type = 'review' OR type = 'restored') ORDER BY seq"
)
CHANGED_SESSIONS = (
    "SELECT id, last FROM (SELECT s.id, s.updated_at, (SELECT MAX(seq) FROM chunks INDEXED BY file_changes"
    " WHERE session = s.id AND (type = 'checkpoint' OR type = 'edit' OR type = 'review' OR type = 'restored')) AS last"
    " FROM sessions s WHERE s.workspace = ?) AS found WHERE last IS NOT NULL ORDER BY updated_at DESC, id"
)


@contextmanager
def lease_transaction(db: Database, number: int | None, session: str) -> Generator[None]:
    """Open a transaction that requires the session's lease `number`, if any. Raises LockLost."""
    with db.transaction():
        if number is not None and db.first(_HELD, (session, number)) is None:
            raise LockLost
        yield


_RUNNING = (
    "SELECT id, title FROM sessions WHERE workspace = ? AND (status = 'running' OR status = 'waiting')"
    " ORDER BY updated_at DESC LIMIT ? OFFSET ?"
)
PAGE = 16
"""Sessions per page."""


def running_sessions(db: Database, workspace: str) -> Iterator[tuple[str, str]]:
    """Yield ids and titles of a folder's running sessions, latest first, page by page."""
    for start in count(0, PAGE):
        page = db.query(_RUNNING, (workspace, PAGE, start))
        yield from page
        if len(page) < PAGE:
            return


def not_found_error(key: str, name: str, hint: str = "journal.list_sessions") -> UsageError:
    """Build the error for an unknown session, run, or plan."""
    return UsageError(Failure(kind="not_found", message=text(key, name=repr(name)), hint=text(hint)))
