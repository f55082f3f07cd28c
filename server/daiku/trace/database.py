"""One SQLite file per user: opened safely, WAL, private, the same for two servers at once."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from daiku.domain.errors import Failure, UsageError

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions(
  id TEXT PRIMARY KEY, title TEXT NOT NULL, workspace TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  model TEXT, status TEXT NOT NULL, reserved INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX IF NOT EXISTS sessions_by_time ON sessions(workspace, updated_at DESC);
CREATE TABLE IF NOT EXISTS chunks(
  session TEXT NOT NULL, seq INTEGER NOT NULL, time TEXT NOT NULL, run TEXT NOT NULL,
  parent TEXT, agent TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  PRIMARY KEY(session, seq)) STRICT, WITHOUT ROWID;
DROP INDEX IF EXISTS chunks_by_run;
CREATE INDEX IF NOT EXISTS runs ON chunks(run) WHERE type IN ('run_started', 'agent_start');
CREATE INDEX IF NOT EXISTS changes ON chunks(session, seq)
  WHERE type IN ('checkpoint', 'edit', 'review', 'restored');
"""


SQLITE, SQLITE_NEEDED = sqlite3.sqlite_version_info, (3, 37, 0)
"""The library here, and the oldest one that knows STRICT tables."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode. Creates file and folder readable by their owner only,
    whatever the umask. Raises UsageError where the file cannot be used."""
    try:
        return _opened(path)
    except (sqlite3.Error, OSError) as wrong:
        raise UsageError(_unusable(path, wrong)) from wrong


def why(wrong: sqlite3.Error | OSError) -> str:
    """What is wrong in words for a person; the library's own say nothing to them."""
    code = getattr(wrong, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return "its contents are damaged"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "another program holds it"
    if code == sqlite3.SQLITE_FULL or getattr(wrong, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return "the disk is full"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or isinstance(wrong, PermissionError):
        return "it may not be written"
    return (
        "it can be neither read nor written"
        if code == sqlite3.SQLITE_CANTOPEN
        else "the disk answers with an error"
    )


def _unusable(path: Path, wrong: sqlite3.Error | OSError) -> Failure:
    reason = why(wrong)
    hint = {
        "its contents are damaged": "Move it away (a new one is made), or bring back a copy.",
        "another program holds it": "Another program holds it: close that, and try again.",
        "the disk is full": "Make room on the disk.",
    }.get(reason, "Check the disk and the file's permissions, or set DAIKU_HOME to another folder.")
    return Failure(kind="usage", message=f"The database {path} cannot be used: {reason}.", hint=hint)


def _opened(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.executescript(SCHEMA)
    return connection
