"""An item that waits for an answer: how often its source is asked, and what it is asked for."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

from daiku.domain.errors import DaikuError
from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, Said
from daiku.domain.items.item import ItemKey, SourceName
from daiku.items.hearing import LONGEST_WAIT_FOR_ANSWER, compute_poll_interval, poll_idle_items
from daiku.items.items import ItemStore
from daiku.items.record import ClaimLost, ItemRecord
from daiku.items.source import ItemSource
from daiku.store.sqlite import DatabaseFault, connect
from daiku.texts.text import Text
from tests.work.parts import parts_of
from tests.work.test_refused_intents import Heard

KEYS: dict[SourceName, ItemKey] = {
    "github": ItemKey(source="github", kind="issue", repository="o/r", name="1"),
    "files": ItemKey(source="files", kind="file", name="mend"),
}
ANSWER = Said(id="7", author="ann", text="Use tabs.", time="2026-11-27T08:00:00Z", trusted=True)


class Asked(Heard):
    """A source that counts how often it was asked for news."""

    looks = 0
    answer: ItemNews | ForgeRefusal = ItemNews(wanted=True)

    async def news(  # pyright: ignore[reportIncompatibleMethodOverride]  # it may refuse, as every source may
        self, key: ItemKey, after: str, head: str
    ) -> ItemNews | ForgeRefusal:
        self.looks += 1
        return self.answer


class Waiting:
    """An item that waits, and the worker that looks at it."""

    def __init__(self, source: SourceName = "github") -> None:
        self.key = KEYS[source]
        self.items = ItemStore(connect(None, ""))
        self.items.add(FoundItem(key=self.key, title="t", labelled_at="1"))
        claim = self.items.claim(str(self.key), "worker-1")
        assert claim is not None
        self.items.change(claim, state="waiting")
        self.source = Asked()

    @property
    def record(self) -> ItemRecord:
        found = self.items.record(str(self.key))
        assert found is not None
        return found

    async def look(self, *, once: bool = False) -> int:
        """Look as a worker does at each poll. Return how often the source has been asked so far."""
        sources: dict[SourceName, ItemSource] = {self.key.source: self.source}
        hearing = parts_of(self.items, sources)
        await poll_idle_items(hearing, once=once)
        return self.source.looks

    def let_pass(self, **age: float) -> None:
        """Have so much time passed since the item was looked at."""
        at = (datetime.now(UTC) - timedelta(**age)).isoformat()
        record = self.record
        self.items.note_unclaimed(record, record.facts.model_copy(update={"looked_at": at}))


def test_an_item_that_waits_is_looked_at_less_often_but_each_ten_minutes() -> None:
    """B23.7"""
    record = Waiting().record

    def after(**age: float) -> float:
        changed = datetime.fromisoformat(record.shown.updated_at)
        return compute_poll_interval(record, changed.astimezone(UTC) + timedelta(**age), 60.0)

    assert [after(minutes=1), after(minutes=20), after(days=9)] == [60.0, 300.0, LONGEST_WAIT_FOR_ANSWER]


async def test_a_look_that_just_was_is_not_repeated_at_the_next_poll() -> None:
    """B23.7"""
    waiting = Waiting()
    assert [await waiting.look(), await waiting.look()] == [1, 1]
    waiting.let_pass(minutes=2)
    assert await waiting.look() == 2


async def test_a_refused_look_is_not_repeated_at_the_next_poll() -> None:
    """B23.7"""
    waiting = Waiting()
    waiting.source.answer = ForgeRefusal(kind="unreachable", message=Text("away"))
    assert [await waiting.look(), await waiting.look()] == [1, 1]


@pytest.mark.parametrize(("source", "once"), [("files", False), ("github", True)])
async def test_a_file_and_a_start_by_cron_are_looked_at_each_time(source: SourceName, once: bool) -> None:
    """B23.7"""
    waiting = Waiting(source)
    assert [await waiting.look(once=once), await waiting.look(once=once)] == [1, 2]


async def test_an_answer_has_the_item_worked_again() -> None:
    """B23.7"""
    waiting = Waiting()
    waiting.source.answer = ItemNews(wanted=True, said=(ANSWER,))
    await waiting.look()
    assert waiting.record.shown.state == "queued"
    assert [each.text for each in waiting.items.messages.list_after(str(waiting.key), "person")] == [
        "Use tabs."
    ]


@pytest.mark.parametrize(
    ("wrong", "level"),
    [(ClaimLost(str(KEYS["github"])), logging.INFO), (DatabaseFault("held"), logging.WARNING)],
    ids=["claim", "database"],
)
async def test_a_database_that_fails_is_a_warning_and_a_lost_claim_is_none(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wrong: DaikuError, level: int
) -> None:
    """A23.1: a failure is not logged like a normal event."""
    item = Waiting()

    def fail(*_: object) -> None:
        raise wrong

    monkeypatch.setattr(ItemStore, "note_unclaimed", fail)
    with caplog.at_level(logging.INFO, "daiku.items"):
        assert await item.look() == 1
    assert [record.levelno for record in caplog.records] == [level]
