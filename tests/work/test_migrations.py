"""A database of an earlier version, on SQLite and on PostgreSQL: its items go on, with nothing sent twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from daiku.domain.items.forge import FoundItem
from daiku.domain.items.item import ItemKey, Outcome, PostComment, SetState
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.retrying import format_time_after
from daiku.store.database import Database
from daiku.store.opening import open_place, open_tables

OLD = """
CREATE TABLE IF NOT EXISTS work_items(
  item TEXT PRIMARY KEY, repository TEXT NOT NULL, state TEXT NOT NULL, data TEXT NOT NULL, item_key TEXT NOT NULL,
  run TEXT NOT NULL, labelled_at TEXT NOT NULL, wanted TEXT NOT NULL, worker TEXT NOT NULL,
  fence INTEGER NOT NULL, claim TEXT NOT NULL, facts TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS work_items_by_state ON work_items(state, updated_at);
CREATE INDEX IF NOT EXISTS work_items_in_turn ON work_items(state, repository, updated_at, item);
CREATE TABLE IF NOT EXISTS work_told(
  item TEXT NOT NULL, n INTEGER NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL,
  PRIMARY KEY(item, n));
CREATE TABLE IF NOT EXISTS work_intents(
  item TEXT NOT NULL, operation TEXT NOT NULL, n INTEGER NOT NULL, intent TEXT NOT NULL,
  status TEXT NOT NULL, reference TEXT NOT NULL, error TEXT NOT NULL,
  PRIMARY KEY(item, operation))
"""
"""Schema of a version without pauses between tries, authors of words, and calls without an answer."""
TIME = "2026-11-20T08:00:00.000Z"
Open = Callable[[], Database]


@pytest.fixture
def reopen(database_place: Path | str) -> Iterator[Open]:
    """Open a database of the earlier version, each time on a connection of its own."""
    opened: list[Database] = []

    def open_again() -> Database:
        opened.append(open_tables(open_place(database_place), ""))
        return opened[-1]

    old = open_again()
    old.prepare(OLD)
    for name, state in (("mend", "queued"), ("over", "done")):
        key = ItemKey(source="files", kind="file", name=name)
        data = f'{{"item":"{key}","title":"t","state":"{state}","createdAt":"{TIME}","updatedAt":"{TIME}"}}'
        facts = '{"uuid":"u","pushed":"1","heard":1,"rounds":2}'
        row = (str(key), "files:", state, data, key.model_dump_json(), "r", "1", "", "w", 3, "", facts, TIME)
        old.write(f"INSERT INTO work_items VALUES({','.join('?' * len(row))})", row)
    for n, (said_id, words) in enumerate((("lost-3", "The tree was lost."), ("77", "Use tabs.")), 1):
        old.write("INSERT INTO work_told VALUES(?,?,?,?)", ("files:mend", n, said_id, words))
    wanted = (("final", PostComment(text="Done."), "sent"), ("state", SetState(state="done"), "wanted"))
    for n, (operation, intent, status) in enumerate(wanted, 1):
        row = ("files:over", operation, n, intent.model_dump_json(), status, "", "")
        old.write("INSERT INTO work_intents VALUES(?,?,?,?,?,?,?)", row)
    yield open_again
    for each in opened:
        each.close()


def test_a_queued_item_of_an_earlier_version_is_claimed_with_all_that_was_known(reopen: Open) -> None:
    """B23.4"""
    items = ItemStore(reopen())
    assert [each.item for each in items.first_queued(1)] == ["files:mend"]
    claim = items.claim("files:mend", "worker-1")
    assert claim is not None
    assert claim.fence == 4
    items.change(claim, state="queued", next_at=format_time_after(60))
    record = ItemStore(reopen()).record("files:mend")
    assert record is not None
    assert (record.facts.pushed, record.facts.rounds, record.facts.tries) == ("1", 2, 0)
    assert items.first_queued(1) == ()
    assert items.add(FoundItem(key=ItemKey(source="files", kind="file", name="new"), title="n"))


def test_words_of_an_earlier_version_get_their_author(reopen: Open) -> None:
    """B23.3: the notes that Daiku left are no person's."""
    for _ in range(2):
        messages = ItemStore(reopen()).messages
        assert [each.text for each in messages.list_after("files:mend", "person")] == ["Use tabs."]
        assert [each.text for each in messages.list_after("files:mend", "system")] == ["The tree was lost."]
        assert messages.unheard_ids("files:mend", 0) == {"77"}


def test_a_call_of_an_earlier_version_without_an_answer_is_looked_for_first(reopen: Open) -> None:
    """B23.4"""
    database = reopen()
    items = ItemStore(database)
    intents = IntentStore(database, items)
    assert intents.list_items_left_open(9) == ("files:over",)
    left = intents.list_open("files:over")
    assert [(each.operation, each.sent) for each in left] == [("final", True), ("state", False)]
    record = items.record("files:over")
    assert record is not None
    claim = items.claim_unchanged(record, "worker-1")
    assert claim is not None
    for each in left:
        intents.end(claim, each, Outcome())
    again = reopen()
    assert IntentStore(again, ItemStore(again)).list_items_left_open(9) == ()


def test_of_several_that_open_an_earlier_version_at_once_each_can_work(reopen: Open) -> None:
    """B23.4"""
    databases = [reopen() for _ in range(4)]
    together, wrong = threading.Barrier(len(databases)), list[Exception]()

    def start(database: Database) -> None:
        together.wait()
        try:
            IntentStore(database, ItemStore(database)).list_open("files:over")
        except Exception as error:  # noqa: BLE001  # whatever it is, the test fails with it
            wrong.append(error)

    threads = [threading.Thread(target=start, args=(each,)) for each in databases]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
    assert [each.text for each in ItemStore(databases[0]).messages.list_after("files:mend", "system")] != []
