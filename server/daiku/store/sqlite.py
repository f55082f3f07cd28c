"""A SQLite file as a `Database`: write-ahead log, private to its owner, failures as DaikuError."""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.store.database import Values
from daiku.store.lock import get_locks_folder
from daiku.texts.text import Text, text

if TYPE_CHECKING:
    from daiku.store.salvage import Recovery

log = logging.getLogger(__name__)

SQLITE, SQLITE_NEEDED = sqlite3.sqlite_version_info, (3, 37, 0)
"""Version of the SQLite library, and the first one with STRICT tables."""
SMALLEST_BYTES = 512
"""Minimum size in bytes of a page of a SQLite file."""
BUSY_SECONDS = 10.0
"""Timeout in seconds of a statement while another process holds the file."""
IN_MEMORY = ":memory:"
_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of a failing file; the second one is a text that is not UTF-8."""


class SqliteDatabase:
    """The `Database` of one SQLite file."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        path: Path | None = None,
        recovery: Recovery | None = None,
        read_only: bool = False,
    ) -> None:
        """Wrap a connection.

        `path` is marked as suspect when SQLite finds damage, so that the next process repairs it. `recovery`:
        the repair on opening. `read_only`: only missing tables are created.
        """
        self.recovery, self._read_only, self._path, self.checked = recovery, read_only, path, False
        self._inode = 0 if path is None else path.stat().st_ino
        self._connection = connection
        self._execute = connection.execute  # bound once for speed: every step of a run writes
        self._alone = threading.RLock()

    def prepare(self, schema: str) -> None:
        if self._read_only:
            schema = f"PRAGMA query_only=OFF; {schema}; PRAGMA query_only=ON"
        deadline = time.monotonic() + BUSY_SECONDS
        while True:
            with self._alone:
                try:
                    self._connection.executescript(schema)
                    return
                except _ERRORS as wrong:
                    # SQLite does not wait where several processes create the same tables.
                    if classify_fault(wrong) != "held" or time.monotonic() > deadline:
                        raise self._fault(wrong) from wrong
            time.sleep(0.02)

    def has(self, table: str) -> bool:
        return (
            self.first("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)) is not None
        )

    def has_column(self, table: str, column: str) -> bool:
        return self.first("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", (table, column)) is not None

    def query(self, sql: str, values: Values = ()) -> list[Any]:
        with self._alone:
            try:
                return self._execute(sql, values).fetchall()
            except _ERRORS as wrong:
                raise self._fault(wrong) from wrong

    def first(self, sql: str, values: Values = ()) -> Any:
        with self._alone:
            try:
                return self._execute(sql, values).fetchone()
            except _ERRORS as wrong:
                raise self._fault(wrong) from wrong

    def write(self, sql: str, values: Values = ()) -> None:
        with self._alone:
            try:
                self._execute(sql, values)
            except _ERRORS as wrong:
                raise self._fault(wrong) from wrong

    def write_all(self, sql: str, rows: Iterable[Values]) -> None:
        with self._alone:
            try:
                self._connection.executemany(sql, rows)
            except _ERRORS as wrong:
                raise self._fault(wrong) from wrong

    def transaction(self) -> AbstractContextManager[None]:
        return _Transaction(self, self._connection, self._alone)

    @contextmanager
    def durable(self) -> Generator[None]:
        with self._alone:
            if self._connection.in_transaction:  # the outer transaction decides durability
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

    def was_replaced(self) -> bool:
        """Return True if another process replaced the open file by a repaired one."""
        if self._path is None or self._inode == 0:
            return False
        try:
            return self._path.stat().st_ino != self._inode
        except OSError:
            return False

    def report_damage(self) -> DatabaseFault:
        """Mark the file for repair by the next process, and return the error."""
        if self._path is not None:
            with suppress(OSError):
                get_suspect_mark(self._path).touch(0o600)
        return DatabaseFault("damaged")

    def _fault(self, wrong: Exception) -> DatabaseFault:
        fault = classify_fault(wrong)
        if fault == "damaged":
            return self.report_damage()
        if fault == "broken" and self._path is not None and _is_disk_full(self._path.parent):
            fault = "full"  # SQLite reports a failed write of its shared memory as a general I/O error
        return DatabaseFault(fault)


class _Transaction:
    """A transaction as a class, which is faster than a generator: every step of a run uses one."""

    __slots__ = ("_alone", "_connection", "_database", "_end", "_rollback")

    def __init__(
        self, database: SqliteDatabase, connection: sqlite3.Connection, alone: threading.RLock
    ) -> None:
        self._database, self._connection, self._alone = database, connection, alone

    def __enter__(self) -> None:
        self._alone.acquire()
        try:
            begin, self._end, self._rollback = _NESTED if self._connection.in_transaction else _OUTER
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
                    self._roll_back()
                    raise
            else:
                self._roll_back()
        finally:
            self._alone.release()

    def _roll_back(self) -> None:
        if self._connection.in_transaction:  # some failures have ended it already
            for statement in self._rollback:
                self._database.write(statement)


_OUTER = ("BEGIN IMMEDIATE", "COMMIT", ("ROLLBACK",))
_NESTED = ("SAVEPOINT inner", "RELEASE inner", ("ROLLBACK TO inner", "RELEASE inner"))


Fault = Literal["damaged", "held", "full", "forbidden", "unreachable", "broken"]
_CAUSES: dict[Fault, Text] = {
    "damaged": text("store.damaged"),
    "held": text("store.held"),
    "full": text("store.full"),
    "forbidden": text("store.forbidden"),
    "unreachable": text("store.unreachable"),
    "broken": text("store.broken"),
}
_CHECK = text("store.check_disk")
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_HINTS: dict[Fault, Text] = {
    "damaged": text("store.move_away"),
    "held": text("store.close_other"),
    "full": text("store.make_room"),
    "forbidden": _CHECK,
    "unreachable": _CHECK,
    "broken": _CHECK,
}


def connect(path: Path | None, schema: str) -> SqliteDatabase:
    """Open the database file `path` and create missing tables of `schema`; None is a database in memory.

    The file and its folder are readable by their owner only, whatever the umask. A read-only file is copied
    into memory, and writing to it fails. Raises UsageError if the file cannot be used.
    """
    if path is None:
        return _connect(IN_MEMORY, schema)
    try:
        return _open(path, schema)
    except DatabaseFault as wrong:
        fault = wrong.fault
    except OSError as wrong:
        fault = classify_fault(wrong)
    if fault in ("forbidden", "unreachable"):
        with suppress(OSError, sqlite3.Error, DaikuError):
            copy = SqliteDatabase(_copy_to_memory(path), read_only=True)
            copy.prepare(schema)
            return copy
    message = text("store.unusable", path=str(path), why=_CAUSES[fault])
    raise UsageError(Failure(kind="usage", message=message, hint=_HINTS[fault]))


def explain(fault: Fault) -> tuple[Text, Text]:
    """Return why a file cannot be used, as the end of a sentence, and what to do."""
    return _CAUSES[fault], _HINTS[fault]


def classify_fault(wrong: Exception) -> Fault:
    """Return the kind of failure of the file."""
    code = getattr(wrong, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return "damaged"
    if isinstance(wrong, sqlite3.OperationalError | UnicodeDecodeError) and not code:
        return "damaged"  # a text that is not UTF-8
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) or isinstance(wrong, BlockingIOError):
        return "held"
    if code == sqlite3.SQLITE_FULL or getattr(wrong, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return "full"
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or getattr(wrong, "errno", None) in _FORBIDDEN:
        return "forbidden"
    return "unreachable" if code == sqlite3.SQLITE_CANTOPEN else "broken"


class DatabaseFault(DaikuError):
    """A failure of the file during use."""

    def __init__(self, fault: Fault) -> None:
        message = text("store.cannot_record", why=_CAUSES[fault])
        if fault == "damaged":
            message = text("store.conversations_damaged")
        elif fault == "held":
            message = text("store.conversations_held")
        hint = text("store.restart_to_repair") if fault == "damaged" else _HINTS[fault]
        super().__init__(Failure(kind="internal", message=message, hint=hint))
        self.fault: Fault = fault


def get_suspect_mark(path: Path) -> Path:
    """Return the file that marks a database as damaged for the next process that opens it."""
    return Path(f"{path}.suspect")


def _open(path: Path, schema: str) -> SqliteDatabase:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    recovery, suspect = None, False
    if not _create_private(path) and (suspect := get_suspect_mark(path).exists() or _was_cut(path)):
        recovery = _repair(path)
    try:
        return _connect(path, schema, marked=path, recovery=recovery, checked=suspect)
    except DatabaseFault as wrong:
        if wrong.fault != "damaged" or recovery is not None:
            raise
    return _connect(path, schema, marked=path, recovery=_repair(path), checked=True)


def _repair(path: Path) -> Recovery | None:
    """Repair a damaged file. Raises UsageError if nothing is left and there is no backup; OSError."""
    from daiku.store.salvage import list_backups, repair  # when used

    if not list_backups(path):
        if path.stat().st_size == 0:
            message = text("store.emptied", path=str(path))
            raise UsageError(Failure(kind="usage", message=message, hint=text("store.bring_back")))
        if path.stat().st_size < SMALLEST_BYTES or not _has_header(path):  # nothing can be read, or not ours
            raise DatabaseFault("damaged")
    recovery = repair(path)
    get_suspect_mark(path).unlink(missing_ok=True)
    if recovery is not None:
        details = (path, recovery.rows, recovery.complete, recovery.backup, recovery.damaged)
        log.warning("repaired %s: %d rows, complete=%s, backup used=%s; the damaged file is %s", *details)
    return recovery


def open_erasing(path: Path | None, schema: str) -> SqliteDatabase:
    """Open a database file that overwrites deleted rows, or one in memory.

    Raises DatabaseFault, OSError.
    """
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _create_private(path)
    return _connect(path or IN_MEMORY, f"PRAGMA secure_delete=ON; {schema}")


def _connect(
    file: Path | str,
    schema: str,
    *,
    marked: Path | None = None,
    recovery: Recovery | None = None,
    checked: bool = False,
) -> SqliteDatabase:
    database = SqliteDatabase(_open_connection(file), path=marked, recovery=recovery)
    database.checked = checked
    try:
        database.prepare(f"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; {schema}")
    except BaseException:
        database.close()
        raise
    return database


def _open_connection(file: Path | str) -> sqlite3.Connection:
    try:
        return sqlite3.connect(file, isolation_level=None, timeout=BUSY_SECONDS, check_same_thread=False)
    except sqlite3.Error as wrong:
        raise DatabaseFault(classify_fault(wrong)) from wrong


def _copy_to_memory(path: Path) -> sqlite3.Connection:
    """Return a copy of a database file with its write-ahead log; a missing file is empty.

    SQLite cannot open a write-ahead log in a read-only folder. Raises OSError, sqlite3.Error.
    """
    import tempfile  # when used

    names = {entry.name for entry in path.parent.iterdir()}  # a folder that cannot be read is not empty
    connection = _open_connection(IN_MEMORY)
    with tempfile.TemporaryDirectory(prefix="daiku-") as folder:
        for name in {path.name, f"{path.name}-wal"} & names:
            shutil.copyfile(path.with_name(name), Path(folder, name))
        with closing(sqlite3.connect(Path(folder, path.name))) as source:
            source.backup(connection)
    return connection


def _create_private(path: Path) -> bool:
    """Create a file that only its owner can read; False if it exists."""
    if path.exists():
        return False
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return True


def _was_cut(path: Path) -> bool:
    """Return True if the file is shorter than any database although it was used before."""
    size = path.stat().st_size
    if size:
        return size < SMALLEST_BYTES
    return next(get_locks_folder(path).glob("*.lock"), None) is not None


def _has_header(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _is_disk_full(folder: Path) -> bool:
    with suppress(OSError):
        return shutil.disk_usage(folder).free < SMALLEST_BYTES
    return False
