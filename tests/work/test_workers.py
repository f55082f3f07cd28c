"""The table of workers: who is alive, on SQLite and PostgreSQL, and what becomes of the items of one that is gone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.domain.items.forge import FoundItem
from daiku.domain.items.item import ItemKey
from daiku.items.items import ItemStore
from daiku.items.workers.alive import (
    BEAT_SECONDS,
    GONE_SECONDS,
    WorkerStore,
    get_lock_path,
    register_worker,
    release_worker,
)
from daiku.store.database import Database
from daiku.store.lease import LEASE_SECONDS
from daiku.store.opening import open_place, open_tables


@pytest.fixture
def database(database_place: Path | str) -> Iterator[Database]:
    opened = open_tables(open_place(database_place), "")
    yield opened
    opened.close()


def stay_away(database: Database, worker: str, seconds: float) -> None:
    """Let so many seconds pass since the worker's last beat."""
    database.write("UPDATE work_workers SET beaten = beaten - ? WHERE worker = ?", (seconds, worker))


def test_a_worker_is_alive_until_it_has_not_beaten_for_long(database: Database) -> None:
    workers = WorkerStore(database)
    workers.beat("one")
    workers.beat("two")
    assert workers.list_alive() == {"one", "two"}
    stay_away(database, "one", GONE_SECONDS - 5)
    assert workers.list_alive() == {"one", "two"}
    stay_away(database, "one", 6)
    assert workers.list_alive() == {"two"}
    workers.beat("one")
    assert workers.list_alive() == {"one", "two"}


def test_a_beat_from_the_future_does_not_count(database: Database) -> None:
    workers = WorkerStore(database)
    workers.beat("one")
    stay_away(database, "one", -3600)
    assert workers.list_alive() == frozenset()


def test_who_leaves_is_gone_at_once_and_rows_that_are_a_day_old_are_dropped(database: Database) -> None:
    workers = WorkerStore(database)
    for name in ("one", "two", "three"):
        workers.beat(name)
    workers.remove("one")
    assert workers.list_alive() == {"two", "three"}
    stay_away(database, "two", 86_401)
    workers.forget_old()
    assert database.query("SELECT worker FROM work_workers") == [("three",)]


def test_a_worker_of_this_home_whose_process_has_ended_is_gone_at_once(
    database: Database, tmp_path: Path
) -> None:
    workers = WorkerStore(database)
    name, lock = register_worker(tmp_path)
    workers.beat(name)
    workers.beat("of another home")
    workers.remove_ended(tmp_path)
    assert workers.list_alive() == {name, "of another home"}
    lock.release()  # what the end of its process does
    workers.remove_ended(tmp_path)
    assert workers.list_alive() == {"of another home"}
    assert not get_lock_path(tmp_path, name).exists()


def test_the_lock_goes_with_a_process_that_is_killed(tmp_path: Path) -> None:
    program = f"from pathlib import Path; from daiku.items.workers.alive import register_worker; print(register_worker(Path({str(tmp_path)!r}))[0], flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    workers = WorkerStore(open_tables(None, ""))
    workers.beat(name)
    workers.remove_ended(tmp_path)
    assert workers.list_alive() == {name}
    process.kill()
    process.communicate()
    workers.remove_ended(tmp_path)
    assert workers.list_alive() == frozenset()


def test_a_worker_that_ends_leaves_no_file(tmp_path: Path) -> None:
    """B23.17: cron starts one every few minutes."""
    for _ in range(3):
        release_worker(tmp_path, *register_worker(tmp_path))
    assert list((tmp_path / "workers").iterdir()) == []


def test_the_files_of_a_worker_that_was_killed_are_removed(database: Database, tmp_path: Path) -> None:
    """B23.17"""
    name, lock = register_worker(tmp_path)
    alive, _held = register_worker(tmp_path)
    for each in (name, alive):
        get_lock_path(tmp_path, each).with_suffix(".json").touch()
    lock.release()
    WorkerStore(database).remove_ended(tmp_path)
    assert sorted(each.stem for each in (tmp_path / "workers").iterdir()) == [alive, alive]


def test_no_two_workers_have_one_name(tmp_path: Path) -> None:
    names = {register_worker(tmp_path / home)[0] for home in ("a", "a", "b")}
    assert len(names) == 3


def test_of_two_that_find_an_item_of_a_worker_that_is_gone_one_gets_it(database: Database) -> None:
    items = ItemStore(database)
    items.add(FoundItem(key=ItemKey(source="files", kind="file", name="mend"), title="t", labelled_at="1"))
    first = items.claim("files:mend", "gone")
    assert first is not None
    claims = [
        items.claim("files:mend", name, only=("processing",), expected_fence=first.fence)
        for name in ("one", "two")
    ]
    assert claims[0] is not None
    assert claims[1] is None


def test_an_item_is_taken_over_within_half_a_minute_of_the_end_of_its_worker() -> None:
    """The last beat came up to one beat before the end at best; the look that sees it, up to one beat later."""
    assert GONE_SECONDS + BEAT_SECONDS < 30
    assert GONE_SECONDS >= LEASE_SECONDS + BEAT_SECONDS
