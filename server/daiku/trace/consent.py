"""What a person agreed to of each MCP server, per workspace, in SQLite beside the journal."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

from pydantic import ValidationError

from daiku.domain.servers import Consent

_SCHEMA = """
CREATE TABLE IF NOT EXISTS mcp_consents (
    workspace TEXT NOT NULL,
    server TEXT NOT NULL,
    consent TEXT NOT NULL,
    PRIMARY KEY (workspace, server)
) WITHOUT ROWID
"""
BUSY_SECONDS = 10.0


class ConsentStore:
    """The `Consents` port. A connection a question: they are rare, and two servers share the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._made = False

    def lookup(self, workspace: str, server: str) -> Consent | None:
        """What was said last; None where nothing was. Raises sqlite3.Error."""
        rows = self._run(
            "SELECT consent FROM mcp_consents WHERE workspace = ? AND server = ?", (workspace, server)
        )
        try:
            return Consent.model_validate_json(str(rows[0][0])) if rows else None
        except ValidationError:  # written by another version: ask again
            return None

    def remember(self, workspace: str, server: str, consent: Consent) -> None:
        """Keep `consent` in place of an earlier one. Raises sqlite3.Error."""
        text = json.dumps(consent.model_dump(), sort_keys=True)
        self._run("INSERT OR REPLACE INTO mcp_consents VALUES (?, ?, ?)", (workspace, server, text))

    def all(self, workspace: str) -> tuple[tuple[str, Consent], ...]:
        """Every (server, what was said) of `workspace`, by name. Raises sqlite3.Error."""
        rows = self._run("SELECT server FROM mcp_consents WHERE workspace = ? ORDER BY server", (workspace,))
        found = ((str(name), self.lookup(workspace, str(name))) for (name,) in rows)
        return tuple((name, consent) for name, consent in found if consent is not None)

    def forget(self, workspace: str, server: str) -> None:
        """The next run asks again. Raises sqlite3.Error."""
        self._run("DELETE FROM mcp_consents WHERE workspace = ? AND server = ?", (workspace, server))

    def _run(self, sql: str, values: tuple[str, ...]) -> list[tuple[object, ...]]:
        with closing(self._connect()) as db, db:
            return db.execute(sql, values).fetchall()

    def _connect(self) -> sqlite3.Connection:
        if not self._path.exists():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            self._made = False
        db = sqlite3.connect(self._path, timeout=BUSY_SECONDS)
        try:
            if not self._made:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute(_SCHEMA)
                self._made = True
        except BaseException:
            db.close()
            raise
        return db
