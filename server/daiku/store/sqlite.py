"""One SQLite file per user: opened safely, WAL, private, the same for two servers at once; its faults in plain words."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

from daiku.domain.errors import DaikuError, Failure, UsageError

SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions(
  id TEXT PRIMARY KEY, title TEXT NOT NULL, workspace TEXT NOT NULL,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
  model TEXT, status TEXT NOT NULL, reserved INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX IF NOT EXISTS sessions_by_time ON sessions(workspace, updated_at DESC);
CREATE TABLE IF NOT EXISTS chunks(
  session TEXT NOT NULL, seq INTEGER NOT NULL, time TEXT NOT NULL, run TEXT NOT NULL,
  parent TEXT, agent TEXT NOT NULL, type TEXT NOT NULL, data TEXT NOT NULL,
  PRIMARY KEY(session, seq)) STRICT, WITHOUT ROWID;
DROP INDEX IF EXISTS chunks_by_run;
DROP INDEX IF EXISTS changes;
CREATE INDEX IF NOT EXISTS runs ON chunks(run) WHERE type IN ('run_started', 'agent_start');
CREATE INDEX IF NOT EXISTS file_changes ON chunks(session, seq)
  WHERE type = 'checkpoint' OR type = 'edit' OR type = 'review' OR type = 'restored';
"""


SQLITE, SQLITE_NEEDED = sqlite3.sqlite_version_info, (3, 37, 0)
"""The library here, and the oldest one that knows STRICT tables."""


class _Cursor(sqlite3.Cursor):
    """Rows; what goes wrong while they are read is a DaikuError, as everywhere in `Database`."""

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        with _plain_words():
            return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> Self:
        with _plain_words():
            return super().executemany(sql, parameters)

    def fetchone(self) -> Any:
        with _plain_words():
            return super().fetchone()

    def fetchall(self) -> list[Any]:
        with _plain_words():
            return super().fetchall()

    def __next__(self) -> Any:
        with _plain_words():
            return super().__next__()


class Database(sqlite3.Connection):
    """A connection whose failures (full disk, damaged page, locked file) are DaikuErrors that say what
    is wrong with the file and what to do."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return self.cursor(_Cursor).execute(sql, parameters)

    def write(self, sql: str, parameters: Any) -> None:
        """Carry out a statement that gives no rows, without the cost of a cursor that looks after them: the
        journal's most frequent one. Raises DaikuError."""
        try:
            super().execute(sql, parameters)
        except sqlite3.Error as wrong:
            raise _Faulty(fault_of(wrong)) from wrong

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        return self.cursor(_Cursor).executemany(sql, parameters)

    def executescript(self, sql_script: str, /) -> sqlite3.Cursor:
        with _plain_words():
            return super().executescript(sql_script)

    @contextmanager
    def transaction(self) -> Generator[None]:
        """All that is written inside, or nothing of it. Raises DaikuError."""
        self.write("BEGIN IMMEDIATE", ())
        try:
            yield
            self.write("COMMIT", ())
        except BaseException:
            if self.in_transaction:
                self.write("ROLLBACK", ())
            raise

    @contextmanager
    def surely(self) -> Generator[None]:
        """What is written inside survives a power cut, and with it all that was written before; the rest
        survives the end of the process. Raises DaikuError."""
        self.write("PRAGMA synchronous=FULL", ())
        try:
            yield
        finally:
            self.write("PRAGMA synchronous=NORMAL", ())


Fault = Literal["damaged", "held", "full", "forbidden", "unreachable", "broken"]
_WHY: dict[Fault, str] = {
    "damaged": "its contents are damaged",
    "held": "another program holds it",
    "full": "the disk is full",
    "forbidden": "it may not be written",
    "unreachable": "it can be neither read nor written",
    "broken": "the disk answers with an error",
}
_CHECK = "Check the disk and the file's permissions, or set DAIKU_HOME to another folder."
_HINTS: dict[Fault, str] = {
    "damaged": "Close Daiku everywhere. Move it away (a new one is made), or bring back a copy.",
    "held": "Another program holds it: close that, and try again.",
    "full": "Make room on the disk; what was recorded is kept, and `daiku resume` goes on.",
    "forbidden": _CHECK,
    "unreachable": _CHECK,
    "broken": _CHECK,
}


def connect(path: Path) -> Database:
    """A connection in autocommit mode. Creates file and folder readable by their owner only,
    whatever the umask. Raises UsageError where the file cannot be used."""
    try:
        return _opened(path)
    except _Faulty as wrong:
        fault = wrong.fault
    except OSError as wrong:
        fault = fault_of(wrong)
    message = f"The database {path} cannot be used: {_WHY[fault]}."
    raise UsageError(Failure(kind="usage", message=message, hint=_HINTS[fault]))


def fault_of(wrong: sqlite3.Error | OSError) -> Fault:
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


class _Faulty(DaikuError):
    """The file failed while it was used."""

    def __init__(self, fault: Fault) -> None:
        message = f"The conversation cannot be recorded: {_WHY[fault]}."
        if fault == "damaged":
            message = "The file of your conversations (daiku.db) is damaged."
        elif fault == "held":
            message = "The file of your conversations (daiku.db) is in use by another program."
        super().__init__(Failure(kind="internal", message=message, hint=_HINTS[fault]))
        self.fault: Fault = fault


@contextmanager
def _plain_words() -> Generator[None]:
    try:
        yield
    except sqlite3.Error as wrong:
        raise _Faulty(fault_of(wrong)) from wrong


def _opened(path: Path) -> Database:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    elif _emptied(path):
        raise UsageError(
            Failure(
                kind="usage",
                message=f"The database {path} is empty, although conversations were kept in it.",
                hint="Bring back a copy of it, or remove it: a new one is made.",
            )
        )
    with _plain_words():
        connection = sqlite3.connect(
            path, isolation_level=None, timeout=10, check_same_thread=False, factory=Database
        )
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.executescript(SCHEMA)
    return connection


def _emptied(path: Path) -> bool:
    """Whether something took the contents away: runs have left their locks beside it."""
    return path.stat().st_size == 0 and next((path.parent / "locks").glob("*.lock"), None) is not None
