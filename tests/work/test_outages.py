"""A worker whose database fails for a while: what it does goes on, and the item is processed afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.items.forge import ForgeRefusal, ItemNews
from daiku.domain.items.item import ItemKey
from daiku.items.hearing import poll_while_running
from daiku.items.items import ItemStore
from daiku.items.parts import WorkerParts
from daiku.items.workers.alive import WorkerStore
from daiku.items.workers.worker import Worker
from daiku.settings.config import Config
from daiku.store.postgres import build_connection_error
from daiku.texts.text import Text
from tests.work.parts import claimed_item, parts_of
from tests.work.test_items import claimed, found, items
from tests.work.test_processing import HELD, failing_once
from tests.work.test_refused_intents import Heard

__all__ = ["items"]

AWAY = build_connection_error("postgresql://host/daiku", OSError("connection refused"))
NO_MODEL = UsageError(Failure(kind="usage", message=Text("no model")))


class Gone(Heard):
    """A source whose items are gone. `requests` counts requests for news; `on_read` is called before an item is read."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0
        self.on_read: Callable[[], object] = bool

    async def read(self, key: ItemKey) -> ForgeRefusal:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.on_read()
        return ForgeRefusal(kind="gone", message=Text("gone"))

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.requests += 1
        return ForgeRefusal(kind="closed", message=Text("closed"))


def make_config() -> Config:
    """Return settings of a worker that polls its sources without a pause."""
    config = Config()
    return config.model_copy(update={"work": config.work.model_copy(update={"poll_seconds": 0})})


def worker_parts(items: ItemStore, source: Gone, home: Path, **more: Any) -> WorkerParts:
    contexts = SimpleNamespace(refresh=lambda: None, show=lambda _: None)
    return parts_of(items, {"files": source}, home=home, contexts=contexts, config=make_config(), **more)


@pytest.mark.parametrize(("method", "requests"), [("claimed", 1), ("signal", 2)])
async def test_comments_are_read_during_an_attempt_after_the_database_failed(
    items: ItemStore, method: str, requests: int
) -> None:
    """B23.4: it fails before the first request to the source, or when the response is stored."""
    source = Gone()
    item = claimed_item(items, source, claimed(items), poll_seconds=0.01)
    with failing_once(ItemStore, method) as failed:
        await asyncio.wait_for(poll_while_running(item), 5)
    assert failed
    assert source.requests == requests
    assert item.record.wanted == "cancel"


@pytest.mark.parametrize("method", ["forget_old", "remove_ended", "beat"])
async def test_a_worker_starts_while_its_database_fails(
    items: ItemStore, tmp_path: Path, method: str
) -> None:
    """B23.4: it warns, and processes what is queued."""
    items.add(found())
    warnings: list[str] = []
    with failing_once(WorkerStore, method) as failed:
        await Worker(worker_parts(items, Gone(), tmp_path, warn=warnings.append)).run_once()
    assert failed
    assert warnings == [HELD.failure.message]
    assert [item.state for item in items.list()] == ["failed"]


@pytest.mark.parametrize("method", ["claimed", "record"])
async def test_an_item_whose_outcome_cannot_be_written_is_processed_again(
    items: ItemStore, tmp_path: Path, method: str
) -> None:
    """B23.4: the worker warns, and does not report success. The database fails before the item is read, or after it."""
    items.add(found())
    source, warnings = Gone(), list[str]()
    parts = worker_parts(items, source, tmp_path, warn=warnings.append)

    def fail(*_: object) -> None:
        raise HELD

    with pytest.MonkeyPatch.context() as outage:
        source.on_read = lambda: outage.setattr(ItemStore, method, fail)
        if method == "claimed":
            source.on_read()
        assert not await Worker(parts).run_once()
    assert warnings == [HELD.failure.message]
    assert [item.state for item in items.list()] == ["processing"]
    source.on_read = bool
    await Worker(parts).run_once()
    assert [item.state for item in items.list()] == ["failed"]


@pytest.mark.parametrize("wrong", [HELD, AWAY], ids=["held", "unreachable"])
async def test_a_worker_that_stays_waits_for_its_database(
    items: ItemStore, tmp_path: Path, wrong: DaikuError
) -> None:
    """B23.4"""
    items.add(found())
    parts = worker_parts(items, Gone(), tmp_path, tell=lambda _: parts.stopping.set())
    with failing_once(ItemStore, "first_queued", wrong) as failed:
        await asyncio.wait_for(Worker(parts).run(), 5)
    assert failed
    assert [item.state for item in items.list()] == ["failed"]


async def test_a_worker_that_stays_ends_without_a_model(items: ItemStore, tmp_path: Path) -> None:
    """B23.4: to wait would not help."""
    items.add(found())

    def check_model() -> None:
        raise NO_MODEL

    with pytest.raises(UsageError, match="no model"):
        await asyncio.wait_for(Worker(worker_parts(items, Gone(), tmp_path, ready=check_model)).run(), 5)
