"""What a person allowed or rejected for always, per workspace, in SQLite beside the journal."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Literal

_SCHEMA = """
CREATE TABLE IF NOT EXISTS grants (
    workspace TEXT NOT NULL,
    key TEXT NOT NULL,
    answer TEXT NOT NULL CHECK (answer IN ('allow', 'reject')),
    PRIMARY KEY (workspace, key)
) WITHOUT ROWID
"""
BUSY_SECONDS = 10.0


class GrantStore:
    """The `Grants` port. Asked anew at every call of a tool: two servers share the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._db: sqlite3.Connection | None = None

    def lookup(self, workspace: str, key: str) -> Literal["allow", "reject"] | None:
        """The remembered answer to `key`, None where there is none. Raises sqlite3.Error."""
        rows = self._run("SELECT answer FROM grants WHERE workspace = ? AND key = ?", (workspace, key))
        match rows:
            case [("allow",)]:
                return "allow"
            case [("reject",)]:
                return "reject"
            case _:
                return None

    def remember(self, workspace: str, key: str, answer: Literal["allow", "reject"]) -> None:
        """Keep `answer`, in place of an earlier one. Raises sqlite3.Error."""
        self._run("INSERT OR REPLACE INTO grants VALUES (?, ?, ?)", (workspace, key, answer))

    def revoke(self, workspace: str, key: str) -> None:
        """Forget the answer to `key`; the next call asks again. Raises sqlite3.Error."""
        self._run("DELETE FROM grants WHERE workspace = ? AND key = ?", (workspace, key))

    def all(self, workspace: str) -> tuple[tuple[str, str], ...]:
        """Every (key, answer) of `workspace`, sorted. Raises sqlite3.Error."""
        rows = self._run("SELECT key, answer FROM grants WHERE workspace = ? ORDER BY key", (workspace,))
        return tuple((str(key), str(answer)) for key, answer in rows)

    def _run(self, sql: str, values: tuple[str, ...]) -> list[tuple[object, ...]]:
        if self._db is None:
            self._db = self._connect()
        with self._db as db:
            return db.execute(sql, values).fetchall()

    def close(self) -> None:
        """Let go of the file; the next question opens it again."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _connect(self) -> sqlite3.Connection:
        if not self._path.exists():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
        db = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute(_SCHEMA)
        except BaseException:
            db.close()
            raise
        return db
