"""The stores of one App: conversations, a person's decisions, and where traces are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.store.database import Database
from daiku.store.opening import opened_place
from daiku.trace.consent import ConsentStore
from daiku.trace.evaluations import EvaluationStore
from daiku.trace.grants import GrantStore
from daiku.trace.journal import Journal

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
