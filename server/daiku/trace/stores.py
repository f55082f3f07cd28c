"""The stores of one App: conversations, a person's decisions, and where traces are written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from daiku.dataclass import dataclass
from daiku.store.database import Database
from daiku.store.opening import Place, opened_place, rare_tables
from daiku.trace.consent import ConsentStore
from daiku.trace.grants import GrantStore
from daiku.trace.journal import Journal

if TYPE_CHECKING:
    from daiku.domain.work.documents import Evaluated, KeptEvaluation

_SCHEMA = """
CREATE TABLE IF NOT EXISTS evaluations (
    key TEXT PRIMARY KEY,
    workspace TEXT NOT NULL,
    session TEXT NOT NULL,
    path TEXT NOT NULL,
    evaluation TEXT NOT NULL,
    made TEXT NOT NULL
) WITHOUT ROWID
"""
_KEEP = (
    "INSERT INTO evaluations VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET workspace = excluded.workspace,"
    " session = excluded.session, path = excluded.path, evaluation = excluded.evaluation, made = excluded.made"
)


class EvaluationStore:
    """What was judged already. A connection a question: they are rare, and two servers share the file."""

    def __init__(self, place: Place) -> None:
        self._connected = rare_tables(place, _SCHEMA)

    def lookup(self, key: str) -> Evaluated | None:
        """The judgement that is kept under `key`; None where there is none. Raises DaikuError."""
        with self._connected() as db:
            rows = db.query("SELECT evaluation FROM evaluations WHERE key = ?", (key,))
        return _read(rows[0][0]) if rows else None

    def keep(self, key: str, found: Evaluated, *, workspace: str, session: str, path: str) -> None:
        """Keep a judgement in place of an earlier one under `key`. Raises DaikuError."""
        made = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = (key, workspace, session, path, found.model_dump_json(), made)
        with self._connected() as db, db.durable():
            db.write(_KEEP, row)

    def all(self, workspace: str) -> tuple[KeptEvaluation, ...]:
        """Every judgement of `workspace`, the oldest first. Raises DaikuError."""
        from daiku.domain.work.documents import KeptEvaluation  # when used

        with self._connected() as db:
            rows = db.query(
                "SELECT session, path, evaluation FROM evaluations WHERE workspace = ? ORDER BY made, key",
                (workspace,),
            )
        found = ((session, path, _read(text)) for session, path, text in rows)
        return tuple(KeptEvaluation(session=s, path=p, evaluation=e) for s, p, e in found if e is not None)


def _read(text: str) -> Evaluated | None:
    from daiku.domain.work.documents import Evaluated  # when used

    try:
        return Evaluated.model_validate_json(text)
    except ValidationError:  # written by another version: it is judged again
        return None


BACKUP_SECONDS = 3600
"""Least time in seconds between two backups of the file, and between its first session and the first backup."""


@dataclass(frozen=True, slots=True)
class Stores:
    """What is kept of runs and of a person's decisions, and where traces are written (None: nowhere)."""

    journal: Journal
    grants: GrantStore
    consents: ConsentStore
    evaluations: EvaluationStore
    database: Database
    """The connection of the conversations, for tables that belong to them; closed with the stores."""
    traces: Path | None = None
    lasting: bool = True
    """Whether what is kept is still there after this process."""

    def close(self) -> None:
        """Let go of files and connections."""
        self.journal.close()
        self.grants.close()


def open_stores(place: Path | str | None, redact: Callable[[str], str], traces: Path | None = None) -> Stores:
    """Open the stores in a SQLite file, at a PostgreSQL address, or (None) in memory. Raises UsageError."""
    kept = opened_place(place)
    journal = Journal(kept, redact)
    if isinstance(kept, Path) and journal.is_older_than(BACKUP_SECONDS):
        from daiku.store.backup import back_up_when_due  # when used

        back_up_when_due(kept, BACKUP_SECONDS)
    return Stores(
        journal,
        GrantStore(kept),
        ConsentStore(kept),
        EvaluationStore(kept),
        journal.database,
        traces,
        place is not None,
    )
