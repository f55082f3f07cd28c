"""Leases: one holder at a time over machines, taken over from a dead one, and never written under by two."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from time import monotonic

import pytest

from daiku.domain.events import Notice, RunStarted
from daiku.store.lease import LEASE_SECONDS, Leases
from daiku.store.lock import LockLost
from daiku.store.postgres import PostgresDatabase
from daiku.texts.text import Text
from daiku.trace.journal import Journal
from tests.postgres import NewDatabase

pytestmark = pytest.mark.slow

Opens = Callable[[], PostgresDatabase]
NOTE = Notice(level="info", text=Text("x"))


@pytest.fixture
def url(postgres: NewDatabase) -> str:
    return postgres()


@pytest.fixture
def open_database(url: str) -> Iterator[Opens]:
    opened: list[PostgresDatabase] = []

    def open_one() -> PostgresDatabase:
        opened.append(PostgresDatabase(url))
        return opened[-1]

    yield open_one
    for database in opened:
        database.close()


def run_out(database: PostgresDatabase, session: str) -> None:
    """Let the time of a lease pass."""
    database.write("UPDATE leases SET expires = 1 WHERE session = ?", (session,))


def left(database: PostgresDatabase, session: str) -> float:
    """The seconds that a lease has left."""
    asked = "SELECT expires - extract(epoch FROM clock_timestamp())::float8 FROM leases WHERE session = ?"
    return database.first(asked, (session,))[0]


def test_one_holds_it_and_giving_it_back_frees_it_at_once(open_database: Opens) -> None:
    one, two = Leases(open_database()), Leases(open_database())
    first, second = one.of("s"), two.of("s")
    assert second.is_free()
    assert first.acquire()
    assert not first.acquire(), "once in a process too"
    assert not second.acquire()
    assert not second.is_free()
    first.release()
    first.release()
    assert second.is_free()
    assert second.acquire()
    second.release()


def test_a_lease_that_ran_out_is_taken_over_under_a_higher_number(open_database: Opens) -> None:
    database = open_database()
    one, two = Leases(database), Leases(open_database())
    assert one.of("s").acquire()
    before = one.number("s")
    run_out(database, "s")
    assert two.of("s").acquire()
    assert two.number("s") > before
    one.release_lease("s")  # what it holds no more it does not free
    assert not one.is_free("s")
    two.release_lease("s")


def test_numbers_rise_also_when_every_lease_is_given_back(open_database: Opens) -> None:
    leases = Leases(open_database())
    numbers: list[int] = []
    for _ in range(3):
        leases.acquire_lease("s")
        numbers.append(leases.number("s"))
        leases.release_lease("s")
    assert numbers == [1, 2, 3]


def test_of_many_that_try_at_once_one_gets_it(open_database: Opens) -> None:
    all_leases = [Leases(open_database()) for _ in range(8)]
    together = threading.Barrier(len(all_leases))
    got: list[Leases] = []

    def attempt(leases: Leases) -> None:
        together.wait()
        if leases.acquire_lease("s"):
            got.append(leases)

    threads = [threading.Thread(target=attempt, args=(leases,)) for leases in all_leases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1
    got[0].close()


def until(holds: Callable[[], bool]) -> None:
    ends = monotonic() + 10
    while not holds():
        assert monotonic() < ends, "it did not come to be"


def test_a_lease_is_renewed_in_the_background_also_after_the_server_went_away(open_database: Opens) -> None:
    database, other = open_database(), open_database()
    leases = Leases(database, renew_seconds=0.02)
    assert leases.acquire_lease("s")
    for _ in range(2):
        other.write("UPDATE leases SET expires = expires - 10 WHERE session = 's'")
        until(lambda: left(other, "s") > LEASE_SECONDS - 5)
        other.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND datname = current_database()"
        )
    leases.close()
    assert other.first("SELECT expires FROM leases WHERE session = 's'") == (0.0,)


def test_whoever_lost_it_learns_so_from_the_renewal(open_database: Opens) -> None:
    database = open_database()
    one, two = Leases(database, renew_seconds=0.02), Leases(open_database())
    assert one.acquire_lease("s")
    while not two.acquire_lease("s"):
        run_out(database, "s")  # until the one that renews it comes too late
    until(lambda: is_lost(one, "s"))
    one.close()
    two.close()


def is_lost(leases: Leases, session: str) -> bool:
    try:
        leases.number(session)
    except LockLost:
        return True
    return False


def test_the_thread_that_renews_ends_with_the_last_lease(open_database: Opens) -> None:
    leases = Leases(open_database())
    leases.acquire_lease("a")
    leases.acquire_lease("b")
    thread = leases._thread
    assert thread is not None
    leases.release_lease("a")
    assert thread.is_alive()
    leases.release_lease("b")
    thread.join(10)
    assert not thread.is_alive()


def test_after_another_took_over_nothing_more_is_written(open_database: Opens) -> None:
    """Not by one event, not by several, not the status, and nothing is deleted."""
    database = open_database()
    one, two = Journal(database), Journal(open_database())
    session = one.add_session()
    first = one.lock(session)
    writer = one.writer(session)
    writer.write("r", None, "c", [RunStarted(prompt="x")])
    one.note_status(session, "running")
    run_out(database, session)
    second = two.lock(session)
    two.writer(session).write("r", None, "c", [NOTE])
    for events in ([NOTE], [NOTE, NOTE]):
        with pytest.raises(LockLost):
            writer.write("r", None, "c", events)
    with pytest.raises(LockLost):
        one.note_status(session, "completed")
    first.release()
    with pytest.raises(LockLost):
        writer.write("r", None, "c", [NOTE])
    assert [c.type for c in two.chunks(session)] == ["run_started", "notice"]
    assert two.get_session(session).status == "running"
    second.release()
    assert one.get_session(session).status == "interrupted"


def test_who_takes_over_finds_what_was_being_written(open_database: Opens) -> None:
    """It waits for the transaction of the one before, so what it reads then is all there will be."""
    database = open_database()
    one, two = Journal(database), Journal(open_database())
    session = one.add_session()
    one.lock(session)
    run_out(database, session)
    found: list[int] = []

    def take_over() -> None:
        two.lock(session)
        found.append(len(two.chunks(session)))

    thread = threading.Thread(target=take_over)
    watch = open_database()
    with one.as_holder(session):
        one.writer(session).write("r", None, "c", [NOTE])
        thread.start()
        until(lambda: watch.first("SELECT COUNT(*) FROM pg_locks WHERE NOT granted")[0] > 0)
    thread.join(10)
    assert found == [1]
    two.close()


_HOLD = """
import sys, time
from daiku.domain.events import Notice
from daiku.store.lock import LockLost
from daiku.store.opening import open_place
from daiku.texts.text import Text
from daiku.trace.journal import Journal
journal = Journal(open_place(sys.argv[1]))
journal.lock(sys.argv[2])
print("held", flush=True)
for line in sys.stdin:
    try:
        journal.writer(sys.argv[2]).write("r", None, "c", [Notice(level="info", text=Text(line))])
        print("written", flush=True)
    except LockLost:
        print("lost", flush=True)
"""


def holder(url: str, session: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, url, session],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert said(process) == "held"
    return process


def said(process: subprocess.Popen[str], line: str = "") -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    if line:
        print(line, file=process.stdin, flush=True)
    return process.stdout.readline().strip()


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_process_that_is_stopped_and_goes_on_later_writes_nothing_more(
    url: str, open_database: Opens
) -> None:
    database = open_database()
    journal = Journal(database)
    session = journal.add_session()
    process = holder(url, session)
    try:
        assert said(process, "one") == "written"
        journal.note_status(session, "running")
        assert journal.get_session(session).status == "running"
        process.send_signal(signal.SIGSTOP)
        run_out(database, session)
        assert journal.get_session(session).status == "interrupted"
        lock = journal.lock(session)
        process.send_signal(signal.SIGCONT)
        assert said(process, "two") == "lost"
        assert len(journal.chunks(session)) == 1
        lock.release()
    finally:
        ended(process)


def test_a_killed_process_is_taken_over_from_when_its_time_is_up(url: str, open_database: Opens) -> None:
    database = open_database()
    journal = Journal(database)
    session = journal.add_session()
    process = holder(url, session)
    ended(process)
    assert 0 < left(database, session) <= LEASE_SECONDS < 30
    assert not Leases(database).is_free(session)
    run_out(database, session)
    journal.lock(session).release()
