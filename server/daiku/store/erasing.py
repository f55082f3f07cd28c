"""A SQLite file whose deleted rows are overwritten, for what must be forgotten."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from daiku.store.sqlite import BUSY_SECONDS, DatabaseFault, SqliteDatabase, fault_of

IN_MEMORY = ":memory:"
_SETTINGS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;"


def open_erasing(path: Path | None, schema: str) -> SqliteDatabase:
    """Open the database file `path` (None: in memory) and create the tables of `schema` that it lacks.
    Raises DatabaseFault, OSError."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    try:
        connection = sqlite3.connect(
            IN_MEMORY if path is None else path,
            isolation_level=None,
            timeout=BUSY_SECONDS,
            check_same_thread=False,
        )
    except sqlite3.Error as wrong:
        raise DatabaseFault(fault_of(wrong)) from wrong
    database = SqliteDatabase(connection)
    try:
        database.prepare(f"{_SETTINGS} {schema}")
    except BaseException:
        database.close()
        raise
    return database
