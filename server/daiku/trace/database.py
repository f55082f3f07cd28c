"""One SQLite file per user: opened safely, WAL, private, the same for two servers at once."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

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
"""


SQLITE, SQLITE_NEEDED = sqlite3.sqlite_version_info, (3, 37, 0)
"""The library here, and the oldest one that knows STRICT tables."""


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode. Creates file and folder readable by their owner only,
    whatever the umask. Raises sqlite3.Error, OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, timeout=10, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.executescript(SCHEMA)
    return connection
