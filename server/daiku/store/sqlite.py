"""A SQLite file as a `Database`: write-ahead log, private to its owner, shared by processes, failures as DaikuError."""

from __future__ import annotations

import errno
import os
import sqlite3
import threading
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.store.database import Values
from daiku.store.lock import locks_beside
from daiku.texts.text import Text, text

SQLITE, SQLITE_NEEDED = sqlite3.sqlite_version_info, (3, 37, 0)
"""The library here, and the oldest one that knows STRICT tables."""
BUSY_SECONDS = 10.0
"""How long a statement waits for another program that holds the file."""


class SqliteDatabase:
    """The `Database` of one SQLite file."""

    def __init__(
        self, connection: sqlite3.Connection, errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    ) -> None:
        self._connection = connection
        self._errors = errors
        self._execute = connection.execute  # bound once: every step of a run writes
        self._alone = threading.RLock()

    def prepare(self, schema: str) -> None:
        with self._alone:
            try:
                self._connection.executescript(schema)
            except self._errors as wrong:
                raise DatabaseFault(fault_of(wrong)) from wrong

    def has(self, table: str) -> bool:
        return (
            self.first("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)) is not None
        )

    def query(self, sql: str, values: Values = ()) -> list[Any]:
        with self._alone:
            try:
                return self._execute(sql, values).fetchall()
            except self._errors as wrong:
                raise DatabaseFault(fault_of(wrong)) from wrong

    def first(self, sql: str, values: Values = ()) -> Any:
        with self._alone:
            try:
                return self._execute(sql, values).fetchone()
            except self._errors as wrong:
                raise DatabaseFault(fault_of(wrong)) from wrong

    def write(self, sql: str, values: Values = ()) -> None:
        with self._alone:
            try:
                self._execute(sql, values)
            except self._errors as wrong:
                raise DatabaseFault(fault_of(wrong)) from wrong

    def write_all(self, sql: str, rows: Iterable[Values]) -> None:
        with self._alone:
            try:
                self._connection.executemany(sql, rows)
            except self._errors as wrong:
                raise DatabaseFault(fault_of(wrong)) from wrong

    def transaction(self) -> AbstractContextManager[None]:
        return _Transaction(self, self._connection, self._alone)

    @contextmanager
    def durable(self) -> Generator[None]:
        with self._alone:
            if self._connection.in_transaction:  # how it ends was said as it began
                yield
                return
            self.write("PRAGMA synchronous=FULL")
            try:
                yield
            finally:
                self.write("PRAGMA synchronous=NORMAL")

    def close(self) -> None:
        with self._alone:
            self._connection.close()


class _Transaction:
    """A class and no generator: every step of a run and every change of a playbook begins and ends one."""

    __slots__ = ("_alone", "_connection", "_database", "_end", "_undo")

    def __init__(
        self, database: SqliteDatabase, connection: sqlite3.Connection, alone: threading.RLock
    ) -> None:
        self._database, self._connection, self._alone = database, connection, alone

    def __enter__(self) -> None:
        self._alone.acquire()
        try:
            begin, self._end, self._undo = _WITHIN if self._connection.in_transaction else _OUTER
            self._database.write(begin)
        except BaseException:
            self._alone.release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, wrong: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                try:
                    self._database.write(self._end)
                except BaseException:
                    self._take_back()
                    raise
            else:
                self._take_back()
        finally:
            self._alone.release()

    def _take_back(self) -> None:
        if self._connection.in_transaction:  # some failures have ended it already
            for statement in self._undo:
                self._database.write(statement)


_OUTER = ("BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",))
_WITHIN = ("SAVEPOINT inner", "RELEASE inner", ("ROLLBACK TO inner", "RELEASE inner"))


Fault = Literal["damaged", "held", "full", "forbidden", "unreachable", "broken"]
_WHY: dict[Fault, Text] = {
    "damaged": text("store.damaged"),
    "held": text("store.held"),
    "full": text("store.full"),
    "forbidden": text("store.forbidden"),
    "unreachable": text("store.unreachable"),
    "broken": text("store.broken"),
}
_CHECK = text("store.check_disk")
_HINTS: dict[Fault, Text] = {
    "damaged": text("store.move_away"),
    "held": text("store.close_other"),
    "full": text("store.make_room"),
    "forbidden": _CHECK,
    "unreachable": _CHECK,
    "broken": _CHECK,
}


def connect(path: Path | None, schema: str) -> SqliteDatabase:
    """Open the database file `path` and make the tables of `schema` that it lacks; None is a database in memory.
    Creates file and folder readable by their owner only, whatever the umask. Raises UsageError where the file
    cannot be used."""
    if path is None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        database = SqliteDatabase(connection)
        database.prepare(schema)
        return database
    try:
        return _open(path, schema)
    except DatabaseFault as wrong:
        fault = wrong.fault
    except OSError as wrong:
        fault = fault_of(wrong)
    message = text("store.unusable", path=str(path), why=_WHY[fault])
    raise UsageError(Failure(kind="usage", message=message, hint=_HINTS[fault]))


def explain(fault: Fault) -> tuple[Text, Text]:
    """Why a file cannot be used, as the end of a sentence, and what to do."""
    return _WHY[fault], _HINTS[fault]


def fault_of(wrong: Exception) -> Fault:
    """What is wrong with the file."""
    code = getattr(wrong, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return "damaged"
    if isinstance(wrong, sqlite3.OperationalError) and not code:  # a text that is no UTF-8
        return "damaged"
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "held"
    if code == sqlite3.SQLITE_FULL or getattr(wrong, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return "full"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or isinstance(wrong, PermissionError):
        return "forbidden"
    return "unreachable" if code == sqlite3.SQLITE_CANTOPEN else "broken"


class DatabaseFault(DaikuError):
    """The file failed while it was used."""

    def __init__(self, fault: Fault) -> None:
        message = text("store.cannot_record", why=_WHY[fault])
        if fault == "damaged":
            message = text("store.conversations_damaged")
        elif fault == "held":
            message = text("store.conversations_held")
        super().__init__(Failure(kind="internal", message=message, hint=_HINTS[fault]))
        self.fault: Fault = fault


def _open(path: Path, schema: str) -> SqliteDatabase:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    elif _was_emptied(path):
        raise UsageError(
            Failure(
                kind="usage", message=text("store.emptied", path=str(path)), hint=text("store.bring_back")
            )
        )
    try:
        connection = sqlite3.connect(
            path, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False
        )
    except sqlite3.Error as wrong:
        raise DatabaseFault(fault_of(wrong)) from wrong
    database = SqliteDatabase(connection)
    try:
        database.prepare(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {schema}")
    except BaseException:
        database.close()
        raise
    return database


def _was_emptied(path: Path) -> bool:
    """Whether something took the contents away: runs have left their locks beside it."""
    return path.stat().st_size == 0 and next(locks_beside(path).glob("*.lock"), None) is not None
