"""Stored consent to MCP servers, per workspace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pydantic import ValidationError

from daiku.store.opening import Place, build_table_opener

if TYPE_CHECKING:
    from daiku.domain.servers import Consent

_SCHEMA = """
CREATE TABLE IF NOT EXISTS mcp_consents (
    workspace TEXT NOT NULL,
    server TEXT NOT NULL,
    consent TEXT NOT NULL,
    PRIMARY KEY (workspace, server)
) WITHOUT ROWID
"""
_UPSERT = (
    "INSERT INTO mcp_consents VALUES (?, ?, ?)"
    " ON CONFLICT (workspace, server) DO UPDATE SET consent = excluded.consent"
)


class ConsentStore:
    """Implementation of the `Consents` port. In a memory database, consents last as long as the store."""

    def __init__(self, place: Place) -> None:
        self._connect = build_table_opener(place, _SCHEMA)

    def lookup(self, workspace: str, server: str) -> Consent | None:
        """Return the stored consent for a server; None if there is none. Raises DaikuError."""
        from daiku.domain.servers import Consent  # when used

        rows = self._query(
            "SELECT consent FROM mcp_consents WHERE workspace = ? AND server = ?", workspace, server
        )
        try:
            return Consent.model_validate_json(rows[0][0]) if rows else None
        except ValidationError:  # written by another version: ask again
            return None

    def remember(self, workspace: str, server: str, consent: Consent) -> None:
        """Store `consent`, replacing an earlier one. Raises DaikuError."""
        text = json.dumps(consent.model_dump(), sort_keys=True)
        self._write(_UPSERT, workspace, server, text)

    def all(self, workspace: str) -> tuple[tuple[str, Consent], ...]:
        """Return every (server, consent) of `workspace`, by name. Raises DaikuError."""
        rows = self._query("SELECT server FROM mcp_consents WHERE workspace = ? ORDER BY server", workspace)
        consents = ((name, self.lookup(workspace, name)) for (name,) in rows)
        return tuple((name, consent) for name, consent in consents if consent is not None)

    def forget(self, workspace: str, server: str) -> None:
        """Delete the stored consent, so that the next run asks again. Raises DaikuError."""
        self._write("DELETE FROM mcp_consents WHERE workspace = ? AND server = ?", workspace, server)

    def _query(self, sql: str, *values: str) -> list[tuple[str]]:
        with self._connect() as db:
            return db.query(sql, values)

    def _write(self, sql: str, *values: str) -> None:
        with self._connect() as db, db.durable():
            db.write(sql, values)
