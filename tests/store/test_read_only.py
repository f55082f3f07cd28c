"""A home that may only be read: conversations are shown, and what writes fails with one sentence."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.errors import DaikuError, UsageError
from daiku.domain.events import RunStarted
from daiku.store.opening import open_tables
from daiku.store.sqlite import classify_fault, connect
from daiku.trace.journal import Journal

OTHER = "CREATE TABLE IF NOT EXISTS notes(name TEXT PRIMARY KEY)"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Journal]:
    """A journal of one session that stays open, so that its write-ahead log is not empty."""
    journal = Journal(tmp_path / "home" / "daiku.db")
    session = journal.new_session("kept", "/w").session_id
    journal.writer(session).write("run", None, "agent", [RunStarted(prompt="go")])
    journal.note_status(session, "running")
    yield journal
    journal.close()


@pytest.fixture
def read_only(opened: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The journal on a disk that is mounted to be read only; a test may run as root, whom no permission stops."""
    path, home = tmp_path / "home" / "daiku.db", str(tmp_path / "home")
    assert path.with_name("daiku.db-wal").stat().st_size
    open_file, connect_file = os.open, sqlite3.connect

    def refuse_open(name: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(name).startswith(home) and flags & (os.O_RDWR | os.O_WRONLY | os.O_CREAT):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(name))
        return open_file(name, flags, mode, dir_fd=dir_fd)

    def refuse_connect(name: str | Path, **options: Any) -> sqlite3.Connection:
        if str(name).startswith(home):
            wrong = sqlite3.OperationalError("unable to open database file")
            wrong.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise wrong
        return connect_file(name, **options)

    monkeypatch.setattr(os, "open", refuse_open)
    monkeypatch.setattr(sqlite3, "connect", refuse_connect)
    return path


def test_sessions_of_a_home_that_may_only_be_read_are_shown(read_only: Path) -> None:
    """A23.9."""
    journal = Journal(read_only)
    (session,) = journal.list_sessions()
    assert (session.title, session.status) == ("kept", "interrupted")
    assert [chunk.type for chunk in journal.chunks(session.session_id)] == ["run_started"]
    assert journal.recovered == ""
    journal.close()


def test_writing_in_a_home_that_may_only_be_read_says_so(read_only: Path) -> None:
    """A23.9."""
    journal = Journal(read_only)
    session = journal.list_sessions()[0].session_id
    for write in (
        lambda: journal.add_session("/w"),
        lambda: journal.lock(session),
        lambda: journal.note_status(session, "failed"),
    ):
        with pytest.raises(DaikuError, match="it may not be written"):
            write()
    assert journal.list_sessions()[0].status == "interrupted"
    journal.close()


def test_tables_that_a_read_only_file_lacks_are_empty(read_only: Path) -> None:
    """A23.9."""
    database = connect(read_only, "")
    database.prepare(OTHER)
    assert database.query("SELECT * FROM notes") == []
    with pytest.raises(DaikuError, match="it may not be written"):
        database.write("INSERT INTO notes VALUES('a')")
    database.close()


def test_a_missing_file_in_a_folder_that_may_only_be_read_is_empty(read_only: Path) -> None:
    """A23.9."""
    database = open_tables(read_only.with_name("memory.db"), OTHER)
    assert database.query("SELECT * FROM notes") == []
    database.close()


def test_a_folder_that_cannot_be_read_is_not_taken_as_empty(read_only: Path) -> None:
    """A23.9."""
    with pytest.raises(UsageError, match="cannot be used"):
        connect(read_only / "none" / "daiku.db", OTHER)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_file_that_may_not_be_written_is_forbidden(number: int) -> None:
    """A23.9."""
    assert classify_fault(OSError(number, "no")) == "forbidden"
