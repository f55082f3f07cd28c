"""A PostgreSQL server as a database: made once, found again after it went away, shared by threads, silent on passwords."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from daiku.domain.errors import DaikuError, UsageError
from daiku.store.postgres import NO_NUL, PostgresDatabase, find_passwords
from tests.postgres import NewDatabase

pytestmark = pytest.mark.slow

SCHEMA = "CREATE TABLE IF NOT EXISTS notes(name TEXT PRIMARY KEY, size INTEGER); CREATE INDEX IF NOT EXISTS sizes ON notes(size)"


@pytest.fixture
def url(postgres: NewDatabase) -> str:
    return postgres()


@pytest.fixture
def database(url: str) -> Iterator[PostgresDatabase]:
    opened = PostgresDatabase(url)
    opened.prepare(SCHEMA)
    yield opened
    opened.close()


def test_of_many_that_start_at_once_each_finds_the_tables(url: str) -> None:
    wrong: list[DaikuError] = []
    together = threading.Barrier(8)

    def start(number: int) -> None:
        database = PostgresDatabase(url)
        try:
            database.first("SELECT 1")
            together.wait()
            database.prepare(SCHEMA)
            database.write("INSERT INTO notes VALUES(?, ?)", (f"n{number}", number))
        except DaikuError as error:
            wrong.append(error)
        finally:
            database.close()

    threads = [threading.Thread(target=start, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    last = PostgresDatabase(url)
    assert last.first("SELECT COUNT(*) FROM notes") == (8,)
    last.close()


def test_tables_that_are_there_are_left_alone_also_where_none_may_be_made(
    url: str, database: PostgresDatabase
) -> None:
    """Whoever writes is not held up by one that starts, and a login without more rights will do."""
    other = PostgresDatabase(url)
    with database.transaction():
        database.write("INSERT INTO notes VALUES('a', 1)")
        other.prepare(SCHEMA)  # a lock on the table would wait for the transaction
    other.close()


def test_a_text_with_a_nul_is_kept_with_a_sign_for_it(database: PostgresDatabase) -> None:
    database.write("INSERT INTO notes VALUES(?, 1)", ("a\0b",))
    database.write_all("INSERT INTO notes VALUES(?, 2)", [("c\0",)])
    assert database.first("SELECT name FROM notes WHERE name = ?", ("a\0b",)) == (f"a{NO_NUL}b",)
    assert database.query("SELECT size FROM notes WHERE name = ?", ("c\0",)) == [(2,)]


def cut(url: str, database: PostgresDatabase) -> None:
    """Have the server end the connection."""
    other = PostgresDatabase(url)
    pid = database._connection.info.backend_pid
    assert other.first("SELECT pg_terminate_backend(?, 5000)", (pid,)) == (True,)
    other.close()


def test_a_connection_that_was_lost_is_opened_anew(url: str, database: PostgresDatabase) -> None:
    cut(url, database)
    database.write("INSERT INTO notes VALUES('after', 1)")
    assert database.query("SELECT name FROM notes") == [("after",)]


def test_a_transaction_whose_connection_is_lost_leaves_nothing(url: str, database: PostgresDatabase) -> None:
    def write() -> None:
        with database.transaction():
            database.write("INSERT INTO notes VALUES('one', 1)")
            cut(url, database)
            database.write("INSERT INTO notes VALUES('two', 2)")

    with pytest.raises(DaikuError, match="failed"):
        write()
    assert database.query("SELECT name FROM notes") == []


def test_what_must_be_on_the_disk_is_where_the_server_is_set_not_to_wait_for_it(url: str) -> None:
    first = PostgresDatabase(url)
    name = first.first("SELECT current_database()")[0]
    first.write(f"ALTER DATABASE {name} SET synchronous_commit TO off")
    first.close()
    database = PostgresDatabase(url)
    assert database.first("SHOW synchronous_commit") == ("off",)
    with database.durable():
        assert database.first("SHOW synchronous_commit") == ("on",)
        cut(url, database)
        assert database.first("SHOW synchronous_commit") == ("on",)
    assert database.first("SHOW synchronous_commit") == ("off",)
    database.close()


def test_the_server_ends_a_transaction_that_stands_still(database: PostgresDatabase) -> None:
    assert database.first("SHOW idle_in_transaction_session_timeout") == ("5s",)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:canary-word@127.0.0.1:1/notes",
        "postgresql://127.0.0.1:1/notes?user=ann&password=canary-word",
        "postgresql://ann:canary-word@127.0.0.1:notaport/notes",
        "postgresql://ann:canary-word@127.0.0.1:1/notes?canary-word=1",
        "postgresql://ann:can%61ry-word@127.0.0.1:1/notes",
        "postgresql://ann:x@canary-word@127.0.0.1:1/notes",
        "postgresql://ann:x/canary-word@127.0.0.1:1/notes",
        "postgresql://ann:x#canary-word@127.0.0.1:1/notes",
        "postgresql://ann:x[canary-word@127.0.0.1:1/notes",
    ],
)
def test_a_server_that_cannot_be_reached_is_told_without_the_password(address: str) -> None:
    with pytest.raises(UsageError) as raised:
        PostgresDatabase(address).first("SELECT 1")
    assert "canary" not in raised.value.failure.model_dump_json()
    assert raised.value.failure.hint


def test_the_passwords_of_an_address_are_known_as_they_are_written_and_meant() -> None:
    assert set(find_passwords("postgresql://a:x%40y@h/d?password=z&sslmode=require")) == {"x%40y", "x@y", "z"}
