"""Rows of the journal: SQL schema, conversion of chunks, and the queries for file changes."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Literal, NamedTuple, TypeAlias

from pydantic import ValidationError

from daiku.domain.chunks import Chunk, decode_event
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import Event
from daiku.domain.messages import Usage
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


class Window(NamedTuple):
    """Rows of a session from `first_seq` on, after its run's start, the last plan, and the last todo list."""

    rows: list[Read]
    first_seq: int
    earlier: int
    usage: Usage


def read_window(db: Database, session: str, *, before_seq: int, last: int) -> Window:
    """Read about the `last` rows below `before_seq` (0: the end), from the start of a run or user message."""
    below = before_seq or 1 << 62
    first_seq = _find_start(db, session, below, last)
    rows: list[Read] = db.query(
        f"{READ} WHERE session = ? AND seq >= ? AND seq < ? ORDER BY seq", (session, first_seq, below)
    )
    before = _referenced_rows(db, session, first_seq, rows)
    earlier, prompt, completion, cached, cost, model = db.first(
        f"SELECT COUNT(*), {_sum('promptTokens')}, {_sum('completionTokens')}, {_sum('cachedTokens')}, {_sum('cost', 'REAL')},"  # noqa: S608  # constants
        " MAX(json_extract(data, '$.model')) FILTER (WHERE type = 'usage') FROM chunks WHERE session = ? AND seq < ?",
        (session, first_seq),
    )
    usage = Usage(
        model=model or "",
        prompt_tokens=prompt or 0,
        completion_tokens=completion or 0,
        cached_tokens=cached or 0,
        cost=cost,
    )
    return Window([*before, *rows], first_seq, earlier, usage)


def _sum(field: str, kind: Literal["INTEGER", "REAL"] = "INTEGER") -> str:
    return (
        f"CAST(SUM(CAST(json_extract(data, '$.{field}') AS {kind})) FILTER (WHERE type = 'usage') AS {kind})"
    )


def _find_start(db: Database, session: str, below: int, last: int) -> int:
    """Return the first seq of the window; 0 if it holds everything."""
    row = db.first(
        "SELECT seq FROM chunks WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT 1 OFFSET ?",
        (session, below, last - 1),
    )
    if row is None:
        return 0
    start = db.first(
        "SELECT MAX(seq) FROM chunks WHERE session = ? AND seq <= ? AND parent IS NULL"
        " AND type IN ('run_started', 'message')",
        (session, row[0]),
    )[0]
    return start or 0


def _referenced_rows(db: Database, session: str, first_seq: int, rows: list[Read]) -> list[Read]:
    """Return earlier rows a window needs: its first run's start, the last plan, and the last todo list."""
    if not first_seq or not rows:
        return []
    by_seq: dict[int, Read] = {}
    queries = (
        ("type = 'run_started' AND run = ?", (rows[0][2],)),
        ("type = 'plan'", ()),
        ("type = 'todo'", ()),
    )
    for condition, values in queries:
        row = db.first(
            f"{READ} WHERE session = ? AND seq < ? AND {condition} ORDER BY seq DESC LIMIT 1",
            (session, first_seq, *values),
        )
        if row is not None:
            by_seq[row[0]] = row
    return [by_seq[seq] for seq in sorted(by_seq)]
