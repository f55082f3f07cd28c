"""The stores of one App: conversations, a person's decisions, and where traces are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.trace.consent import ConsentStore
from daiku.trace.grants import GrantStore
from daiku.trace.journal import Journal


@dataclass(frozen=True, slots=True)
class Stores:
    """What is kept of runs and of a person's decisions, and where traces are written (None: nowhere)."""

    journal: Journal
    grants: GrantStore
    consents: ConsentStore
    traces: Path | None = None

    def close(self) -> None:
        """Let go of the files."""
        self.journal.close()
        self.grants.close()


def open_stores(file: Path | None, redact: Callable[[str], str], traces: Path | None = None) -> Stores:
    """The stores in one SQLite file; None keeps them in memory. Raises UsageError where it cannot be used."""
    return Stores(Journal(file, redact), GrantStore(file), ConsentStore(file), traces)
