"""Permanent approvals and rejections of calls, and consent to MCP servers, per workspace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from daiku.dataclass import dataclass
from daiku.guard.rules.policy import describe_grant
from daiku.store.database import Database
from daiku.store.opening import Place, build_table_opener, open_tables
from daiku.texts.text import Text, text

if TYPE_CHECKING:
    from daiku.domain.servers import Consent


_CONSENT_SCHEMA = """
CREATE TABLE IF NOT EXISTS mcp_consents (
    workspace TEXT NOT NULL,
    server TEXT NOT NULL,
    consent TEXT NOT NULL,
    PRIMARY KEY (workspace, server)
) WITHOUT ROWID
"""
_CONSENT_UPSERT = (
    "INSERT INTO mcp_consents VALUES (?, ?, ?)"
    " ON CONFLICT (workspace, server) DO UPDATE SET consent = excluded.consent"
)


class ConsentStore:
    """Implementation of the `Consents` port. In a memory database, consents last as long as the store."""

    def __init__(self, place: Place) -> None:
        self._connect = build_table_opener(place, _CONSENT_SCHEMA)

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
        self._write(_CONSENT_UPSERT, workspace, server, text)

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


_SCHEMA = """
CREATE TABLE IF NOT EXISTS grants (
    workspace TEXT NOT NULL,
    key TEXT NOT NULL,
    answer TEXT NOT NULL CHECK (answer IN ('allow', 'reject')),
    PRIMARY KEY (workspace, key)
) WITHOUT ROWID
"""
_ANSWER = "SELECT answer FROM grants WHERE workspace = ? AND key = ?"
_UPSERT = (
    "INSERT INTO grants VALUES (?, ?, ?) ON CONFLICT (workspace, key) DO UPDATE SET answer = excluded.answer"
)
_ALL = "SELECT key, answer FROM grants WHERE workspace = ? ORDER BY key"


class GrantStore:
    """Implementation of the `Grants` port. Not cached: several servers may share the database."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._db: Database | None = None

    def lookup(self, workspace: str, key: str) -> Literal["allow", "reject"] | None:
        """Return the stored answer to `key`, None if there is none. Raises DaikuError."""
        rows = self._open_db().query(_ANSWER, (workspace, key))
        match rows:
            case [("allow",)]:
                return "allow"
            case [("reject",)]:
                return "reject"
            case _:
                return None

    def remember(self, workspace: str, key: str, answer: Literal["allow", "reject"]) -> None:
        """Store `answer`, replacing an earlier one. Raises DaikuError."""
        self._write(_UPSERT, workspace, key, answer)

    def revoke(self, workspace: str, key: str) -> None:
        """Delete the answer to `key`; the next call asks again. Raises DaikuError."""
        self._write("DELETE FROM grants WHERE workspace = ? AND key = ?", workspace, key)

    def all(self, workspace: str) -> tuple[tuple[str, str], ...]:
        """Return every (key, answer) of `workspace`, sorted. Raises DaikuError."""
        rows = self._open_db().query(_ALL, (workspace,))
        return tuple((str(key), str(answer)) for key, answer in rows)

    def _open_db(self) -> Database:
        if self._db is None:
            self._db = open_tables(self._place, _SCHEMA)
        return self._db

    def _write(self, sql: str, *values: str) -> None:
        db = self._open_db()
        with db.durable():
            db.write(sql, values)

    def close(self) -> None:
        """Close the database file; the next query opens it again."""
        if self._db is not None and self._db is not self._place:
            self._db.close()
        self._db = None


# ---- grants and consents together

SERVER = "server:"
"""Key prefix for consents to MCP servers."""


@dataclass(frozen=True, slots=True)
class RememberedAnswer:
    """A stored answer with its `key`; `what` describes it."""

    key: str
    answer: Literal["allow", "reject"]
    what: Text


def all_answers(grants: GrantStore, consents: ConsentStore, workspace: str) -> tuple[RememberedAnswer, ...]:
    """Return every active answer of `workspace`. Raises DaikuError."""
    answers = [
        RememberedAnswer(key, "allow" if answer == "allow" else "reject", describe_grant(key) or Text(key))
        for key, answer in grants.all(workspace)
    ]
    servers = [
        RememberedAnswer(f"{SERVER}{name}", consent.answer, text("guard.remember_server", name=name))
        for name, consent in consents.all(workspace)
    ]
    return (*answers, *servers)


def revoke_answer(grants: GrantStore, consents: ConsentStore, workspace: str, key: str) -> bool:
    """Delete the answer to `key`, so that it is asked again; False if there is none. Raises DaikuError."""
    if all(one.key != key for one in all_answers(grants, consents, workspace)):
        return False
    if key.startswith(SERVER):
        consents.forget(workspace, key.removeprefix(SERVER))
    else:
        grants.revoke(workspace, key)
    return True
