"""A SQLite file whose deleted rows are overwritten, for what must be forgotten."""

from __future__ import annotations

import os
import sqlite3
import time
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
        try:
            _prepare(connection, schema)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as wrong:
        raise DatabaseFault(fault_of(wrong)) from wrong
    return SqliteDatabase(connection)


def _prepare(connection: sqlite3.Connection, schema: str) -> None:
    """Set up the connection and create the tables. SQLite ignores its timeout while another process creates the same
    tables, so retry for as long."""
    ends = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.executescript(f"{_SETTINGS} {schema}")
            return
        except sqlite3.Error as wrong:
            if fault_of(wrong) != "held" or time.monotonic() > ends:
                raise
        time.sleep(0.02)
