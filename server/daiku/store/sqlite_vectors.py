"""A SQLite database with the functions of sqlite-vec where they can be loaded, and without them where not."""

from __future__ import annotations

import importlib
import os
import sqlite3
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

from daiku.store.sqlite import BUSY_SECONDS, DatabaseFault, SqliteDatabase, fault_of

MEMORY = ":memory:"
_SETTINGS = "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=ON;"


class Opened(NamedTuple):
    """A database, and whether it has sqlite-vec's functions (`vec_distance_cosine`, …)."""

    database: SqliteDatabase
    vectors: bool


@cache
def vector_library() -> tuple[ModuleType, ModuleType] | None:
    """The SQLite module that can load extensions, and sqlite-vec; None where either is missing. Python's own SQLite
    often cannot: pysqlite3 has one that can."""
    with suppress(ImportError):
        vectors = importlib.import_module("sqlite_vec")
        if hasattr(sqlite3.Connection, "enable_load_extension"):
            return sqlite3, vectors
        return importlib.import_module("pysqlite3"), vectors
    return None


def open_with_vectors(path: Path | None, schema: str, *, plain: bool = False) -> Opened:
    """Open the database file `path` (None: in memory) and make the tables of `schema` that it lacks; what is deleted
    is overwritten. `plain`: without extensions, even where there are some. Raises DatabaseFault, OSError.

    A process must use one file with one SQLite library only: two do not see each other's locks. That is why memories
    are not kept in the file of the conversations."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    library = None if plain else vector_library()
    sqlite: Any = sqlite3 if library is None else library[0]
    errors = cast("tuple[type[Exception], ...]", tuple({sqlite3.Error, sqlite.Error}))
    try:
        connection = sqlite.connect(
            MEMORY if path is None else path,
            isolation_level=None,
            timeout=BUSY_SECONDS,
            check_same_thread=False,
        )
        try:
            loaded = library is not None and _load(connection, library[1], errors)
            _prepare(connection, schema, errors)
        except BaseException:
            connection.close()
            raise
    except errors as wrong:
        raise DatabaseFault(fault_of(wrong)) from wrong
    return Opened(SqliteDatabase(connection, errors), loaded)


def _prepare(connection: Any, schema: str, errors: tuple[type[Exception], ...]) -> None:
    """Set the connection up and make the tables. While another process does the same, SQLite refuses some of it at
    once, whatever time-out it was given: so it is tried again for as long."""
    ends = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.executescript(f"{_SETTINGS} {schema}")
            return
        except errors as wrong:
            if fault_of(wrong) != "held" or time.monotonic() > ends:
                raise
        time.sleep(0.02)


def _load(connection: Any, vectors: Any, errors: tuple[type[Exception], ...]) -> bool:
    """Load sqlite-vec into a connection, which then loads no other extension."""
    try:
        connection.enable_load_extension(True)
        vectors.load(connection)
        connection.enable_load_extension(False)
    except (*errors, AttributeError):
        return False
    return True
