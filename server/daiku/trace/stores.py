"""Stores of one App: sessions, the user's decisions, and the folder for traces."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from daiku.dataclass import dataclass
from daiku.store.database import Database
from daiku.store.opening import Place, build_table_opener, open_place
from daiku.trace.grants import ConsentStore, GrantStore
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
_UPSERT = (
    "INSERT INTO evaluations VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET workspace = excluded.workspace,"
    " session = excluded.session, path = excluded.path, evaluation = excluded.evaluation, made = excluded.made"
)


class EvaluationStore:
    """Cache of evaluations. Opens a connection per query: queries are rare, and servers may share the file."""

    def __init__(self, place: Place) -> None:
        self._connect = build_table_opener(place, _SCHEMA)

    def lookup(self, key: str) -> Evaluated | None:
        """Return the evaluation stored under `key`, or None. Raises DaikuError."""
        with self._connect() as db:
            rows = db.query("SELECT evaluation FROM evaluations WHERE key = ?", (key,))
        return _parse(rows[0][0]) if rows else None

    def keep(self, key: str, evaluation: Evaluated, *, workspace: str, session: str, path: str) -> None:
        """Store an evaluation, replacing an earlier one under `key`. Raises DaikuError."""
        created = datetime.now(UTC).isoformat(timespec="milliseconds")
        row = (key, workspace, session, path, evaluation.model_dump_json(), created)
        with self._connect() as db, db.durable():
            db.write(_UPSERT, row)

    def all(self, workspace: str) -> tuple[KeptEvaluation, ...]:
        """Return every evaluation of `workspace`, oldest first. Raises DaikuError."""
        from daiku.domain.work.documents import KeptEvaluation  # when used

        with self._connect() as db:
            rows = db.query(
                "SELECT session, path, evaluation FROM evaluations WHERE workspace = ? ORDER BY made, key",
                (workspace,),
            )
        evaluations = ((session, path, _parse(text)) for session, path, text in rows)
        return tuple(
            KeptEvaluation(session=s, path=p, evaluation=e) for s, p, e in evaluations if e is not None
        )


def _parse(text: str) -> Evaluated | None:
    from daiku.domain.work.documents import Evaluated  # when used

    try:
        return Evaluated.model_validate_json(text)
    except ValidationError:  # written by another version: evaluate again
        return None


BACKUP_SECONDS = 3600
"""Seconds between backups, at least, and between the first session and the first backup."""


@dataclass(frozen=True, slots=True)
class Stores:
    """Stores of runs and of the user's decisions, and the folder for traces (None: no traces)."""

    journal: Journal
    grants: GrantStore
    consents: ConsentStore
    evaluations: EvaluationStore
    database: Database
    """Connection of the session tables, also for related tables; closed with the stores."""
    traces: Path | None = None
    lasting: bool = True
    """False: the stores are in memory and lost when the process ends."""

    def close(self) -> None:
        """Close files and connections."""
        self.journal.close()
        self.grants.close()


def open_stores(place: Path | str | None, redact: Callable[[str], str], traces: Path | None = None) -> Stores:
    """Open the stores in a SQLite file, at a PostgreSQL address, or (None) in memory. Raises UsageError."""
    opened = open_place(place)
    journal = Journal(opened, redact)
    if isinstance(opened, Path) and journal.is_older_than(BACKUP_SECONDS):
        from daiku.store.salvage import back_up_when_due  # when used

        back_up_when_due(opened, BACKUP_SECONDS)
    return Stores(
        journal,
        GrantStore(opened),
        ConsentStore(opened),
        EvaluationStore(opened),
        journal.database,
        traces,
        place is not None,
    )
