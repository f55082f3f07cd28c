"""What a person allowed or rejected for always, per workspace, beside the journal."""

from __future__ import annotations

from typing import Literal

from daiku.store.database import Database
from daiku.store.opening import Place, open_tables

_SCHEMA = """
CREATE TABLE IF NOT EXISTS grants (
    workspace TEXT NOT NULL,
    key TEXT NOT NULL,
    answer TEXT NOT NULL CHECK (answer IN ('allow', 'reject')),
    PRIMARY KEY (workspace, key)
) WITHOUT ROWID
"""
_ANSWER = "SELECT answer FROM grants WHERE workspace = ? AND key = ?"
_KEEP = (
    "INSERT INTO grants VALUES (?, ?, ?) ON CONFLICT (workspace, key) DO UPDATE SET answer = excluded.answer"
)
_ALL = "SELECT key, answer FROM grants WHERE workspace = ? ORDER BY key"


class GrantStore:
    """The `Grants` port. Asked anew at every call of a tool: two servers share the place."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._db: Database | None = None

    def lookup(self, workspace: str, key: str) -> Literal["allow", "reject"] | None:
        """The remembered answer to `key`, None where there is none. Raises DaikuError."""
        rows = self._opened().query(_ANSWER, (workspace, key))
        match rows:
            case [("allow",)]:
                return "allow"
            case [("reject",)]:
                return "reject"
            case _:
                return None

    def remember(self, workspace: str, key: str, answer: Literal["allow", "reject"]) -> None:
        """Keep `answer`, in place of an earlier one. Raises DaikuError."""
        self._write(_KEEP, workspace, key, answer)

    def revoke(self, workspace: str, key: str) -> None:
        """Forget the answer to `key`; the next call asks again. Raises DaikuError."""
        self._write("DELETE FROM grants WHERE workspace = ? AND key = ?", workspace, key)

    def all(self, workspace: str) -> tuple[tuple[str, str], ...]:
        """Every (key, answer) of `workspace`, sorted. Raises DaikuError."""
        rows = self._opened().query(_ALL, (workspace,))
        return tuple((str(key), str(answer)) for key, answer in rows)

    def _opened(self) -> Database:
        if self._db is None:
            self._db = open_tables(self._place, _SCHEMA)
        return self._db

    def _write(self, sql: str, *values: str) -> None:
        db = self._opened()
        with db.durable():
            db.write(sql, values)

    def close(self) -> None:
        """Let go of a file; the next question opens it again."""
        if self._db is not None and self._db is not self._place:
            self._db.close()
        self._db = None
