"""Opening of the database at a path or a URL, with its session locks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.store.database import Database
from daiku.store.lock import FileLocks, Lock, Locks, MemoryLocks, get_locks_folder
from daiku.store.sqlite import DatabaseFault, SqliteDatabase, classify_fault, connect
from daiku.texts.text import NO_TEXT, Text, text

if TYPE_CHECKING:
    from daiku.store.postgres import PostgresDatabase

SERVER = ("postgresql", "postgres")
"""URL schemes of a server; `sqlite` is the scheme of a file."""

Place: TypeAlias = "Path | PostgresDatabase | None"
"""Location of tables: a file, a server, or in memory."""


def parse_place(address: str, default: Path) -> Path | str:
    """Return the file or the server in `storage.database_url`; `default` if it is empty.

    Raises UsageError.
    """
    if not address:
        return default
    scheme, is_url, rest = address.partition("://")
    if is_url and scheme in SERVER:
        from daiku.store.postgres import check_address  # when used

        check_address(address)
        return address
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return Path(rest[1:]).expanduser().absolute()
    raise UsageError(Failure(kind="usage", message=text("store.no_such_url"), hint=text("store.urls")))


def open_place(place: Path | str | None) -> Place:
    """Connect to a server, once for all tables; leave a file unopened. Raises UsageError."""
    if not isinstance(place, str):
        return place
    from daiku.store.postgres import PostgresDatabase  # when used

    return PostgresDatabase(place)


def open_tables(place: Place, schema: str) -> Database:
    """Create missing tables of `schema`; a file gets its own connection. Raises UsageError."""
    if place is None or isinstance(place, Path):
        return connect(place, schema)
    place.prepare(schema)
    return place


def get_recovery_notice(db: Database) -> Text:
    """Return the notice that a damaged file was repaired on opening; empty if it was not."""
    recovery = db.recovery if isinstance(db, SqliteDatabase) else None
    if recovery is None:
        return NO_TEXT
    file = str(recovery.damaged)
    if recovery.complete:
        return text("store.recovered_all", file=file)
    if recovery.backup:
        return text("store.recovered_backup", file=file)
    return text("store.recovered_part", file=file)


def report_damage(db: Database) -> DaikuError | None:
    """Return the error for an invalid row, and mark its file for repair. None if it was just repaired."""
    if isinstance(db, SqliteDatabase):
        return None if db.checked else db.report_damage()
    return DaikuError(Failure(kind="internal", message=text("store.conversations_damaged")))


def check_in_place(db: Database) -> None:
    """Raise DaikuError if the open file was replaced, since writes to it would be lost."""
    if isinstance(db, SqliteDatabase) and db.was_replaced():
        message, hint = text("store.replaced"), text("store.restart")
        raise DaikuError(Failure(kind="internal", message=message, hint=hint))


def acquire(lock: Lock) -> bool:
    """Acquire the lock of a session and return True on success. Raises DaikuError."""
    try:
        return lock.acquire()
    except OSError as wrong:
        raise DatabaseFault(classify_fault(wrong)) from wrong


def build_table_opener(place: Place, schema: str) -> Callable[[], AbstractContextManager[Database]]:
    """Return an opener of the tables of `schema` for rare use: a file is open only meanwhile."""
    if isinstance(place, Path):
        return lambda: closing(connect(place, schema))
    open_once = cache(partial(open_tables, place, schema))
    return lambda: nullcontext(open_once())


def open_locks(place: Place) -> Locks:
    """Return the locks of the sessions in this place."""
    if place is None:
        return MemoryLocks()
    if isinstance(place, Path):
        return FileLocks(get_locks_folder(place))
    from daiku.store.lease import Leases  # when used

    return Leases(place)
