"""What every database promises: transactions, nested ones and those of other threads; which tables there are."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daiku.store.database import Database
from daiku.store.opening import open_place, open_tables
from daiku.store.sqlite import DatabaseFault, SqliteDatabase

SCHEMA = "CREATE TABLE IF NOT EXISTS notes(name TEXT PRIMARY KEY, size INTEGER)"


@pytest.fixture(params=["sqlite", "memory", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    place: Path | str | None = tmp_path / "daiku.db" if request.param == "sqlite" else None
    if request.param == "postgresql":
        new_database: Callable[[], str] = request.getfixturevalue("postgres")
        place = new_database()
    opened = open_tables(open_place(place), SCHEMA)
    yield opened
    opened.close()


def test_a_transaction_within_another_falls_and_stands_with_it(database: Database) -> None:
    with database.transaction():
        database.write("INSERT INTO notes VALUES('outer', 1)")
        with database.transaction():
            database.write("INSERT INTO notes VALUES('inner', 2)")

    def fail() -> None:
        with database.transaction():
            with database.transaction():
                database.write("INSERT INTO notes VALUES('inner again', 3)")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert database.query("SELECT name FROM notes ORDER BY size") == [("outer",), ("inner",)]


def test_threads_do_not_write_into_each_others_transactions(database: Database) -> None:
    begun, tried = threading.Event(), threading.Event()

    def other() -> None:
        begun.wait()
        tried.set()
        database.write("INSERT INTO notes VALUES('other', 2)")

    thread = threading.Thread(target=other)
    thread.start()

    def fail() -> None:
        with database.transaction():
            database.write("INSERT INTO notes VALUES('mine', 1)")
            begun.set()
            tried.wait()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    thread.join()
    assert database.query("SELECT name FROM notes") == [("other",)]


def test_what_must_be_on_the_disk_may_be_written_within_a_transaction(database: Database) -> None:
    with database.durable(), database.transaction(), database.durable():
        database.write("INSERT INTO notes VALUES('a', 1)")
    assert database.query("SELECT name FROM notes") == [("a",)]


def test_a_table_is_there_or_it_is_not(database: Database) -> None:
    assert database.has("notes")
    assert not database.has("others")
    database.prepare("CREATE TABLE IF NOT EXISTS others(name TEXT)")
    assert database.has("others")
    database.write("INSERT INTO others VALUES(?)", ("x",))


class _Contended(sqlite3.Connection):
    """Refuses scripts at once, as SQLite does while other processes create the same tables."""

    refusals = 2

    def executescript(self, sql_script: str, /) -> sqlite3.Cursor:
        if self.refusals:
            self.refusals -= 1
            wrong = sqlite3.OperationalError("database is locked")
            wrong.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise wrong
        return super().executescript(sql_script)


def test_tables_that_other_processes_create_too_are_created_a_moment_later(tmp_path: Path) -> None:
    """A23.D"""
    connection = sqlite3.connect(tmp_path / "daiku.db", factory=_Contended, isolation_level=None)
    database = SqliteDatabase(connection)
    database.prepare(SCHEMA)
    assert database.has("notes")
    database.close()


def test_a_file_that_stays_held_is_refused_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.D"""
    monkeypatch.setattr("daiku.store.sqlite.BUSY_SECONDS", 0.05)
    monkeypatch.setattr(_Contended, "refusals", 1_000_000)
    connection = sqlite3.connect(tmp_path / "daiku.db", factory=_Contended, isolation_level=None)
    database = SqliteDatabase(connection)
    with pytest.raises(DatabaseFault, match="another program"):
        database.prepare(SCHEMA)
    database.close()
