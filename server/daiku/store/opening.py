"""Opens the database that a path or an address names, with the locks that belong to it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.store.database import Database
from daiku.store.lock import FileLocks, Lock, Locks, MemoryLocks, locks_beside
from daiku.store.sqlite import DatabaseFault, SqliteDatabase, connect, fault_of
from daiku.texts.text import NO_TEXT, Text, text

if TYPE_CHECKING:
    from daiku.store.postgres import PostgresDatabase

SERVER = ("postgresql", "postgres")
"""The schemes of an address that names a server; `sqlite` names a file."""

Place: TypeAlias = "Path | PostgresDatabase | None"
"""Where tables are: in a file, on a server, or in memory."""


def place_of(address: str, usual: Path) -> Path | str:
    """The file or the server that `storage.database_url` names; `usual` where it is empty. Raises UsageError."""
    if not address:
        return usual
    scheme, is_url, rest = address.partition("://")
    if is_url and scheme in SERVER:
        from daiku.store.postgres_faults import check_address  # when used

        check_address(address)
        return address
    if scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        return Path(rest[1:]).expanduser().absolute()
    raise UsageError(Failure(kind="usage", message=text("store.no_such_url"), hint=text("store.urls")))


def opened_place(place: Path | str | None) -> Place:
    """A server is connected to, once for all tables; a file is opened by whoever has tables there. Raises UsageError."""
    if not isinstance(place, str):
        return place
    from daiku.store.postgres import PostgresDatabase  # when used

    return PostgresDatabase(place)


def open_tables(place: Place, schema: str) -> Database:
    """Create missing tables of `schema`; a file gets a connection of its own. Raises UsageError."""
    if place is None or isinstance(place, Path):
        return connect(place, schema)
    place.prepare(schema)
    return place


def recovery_notice(db: Database) -> Text:
    """Return the notice that a damaged file was repaired when `db` was opened; empty if it was not."""
    found = db.recovery if isinstance(db, SqliteDatabase) else None
    if found is None:
        return NO_TEXT
    file = str(found.damaged)
    if found.complete:
        return text("store.recovered_all", file=file)
    if found.backup:
        return text("store.recovered_backup", file=file)
    return text("store.recovered_part", file=file)


def report_damage(db: Database) -> DaikuError | None:
    """Return the error for an invalid row, and mark its file for repair. None if the file was repaired already."""
    if isinstance(db, SqliteDatabase):
        return None if db.checked else db.report_damage()
    return DaikuError(Failure(kind="internal", message=text("store.conversations_damaged")))


def check_in_place(db: Database) -> None:
    """Raise DaikuError if the open file was replaced: what is written to it would be lost."""
    if isinstance(db, SqliteDatabase) and db.was_replaced():
        message, hint = text("store.replaced"), text("store.restart")
        raise DaikuError(Failure(kind="internal", message=message, hint=hint))


def acquire(lock: Lock) -> bool:
    """Acquire the lock of a session and return True if it is ours now. Raises DaikuError where it cannot be stored."""
    try:
        return lock.acquire()
    except OSError as wrong:
        raise DatabaseFault(fault_of(wrong)) from wrong


def rare_tables(place: Place, schema: str) -> Callable[[], AbstractContextManager[Database]]:
    """Gives the tables of `schema`, for those who seldom ask: a file is open only meanwhile."""
    if isinstance(place, Path):
        return lambda: closing(connect(place, schema))
    opened = cache(partial(open_tables, place, schema))
    return lambda: nullcontext(opened())


def locks_of(place: Place) -> Locks:
    """The locks of the sessions that are kept there."""
    if place is None:
        return MemoryLocks()
    if isinstance(place, Path):
        return FileLocks(locks_beside(place))
    from daiku.store.lease import Leases  # when used

    return Leases(place)
