"""Many items over many repositories: each has its turn, none is worked twice, and their number costs neither memory nor calls."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, ItemText
from daiku.domain.items.item import ForgeIntent, ItemKey, Outcome, SourceName, WorkItem
from daiku.domain.runs import RunResult
from daiku.items.contexts.files import ContextFiles
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.parts import WorkerParts
from daiku.items.record import Claim
from daiku.items.source import Check, CloneAccess, no_check
from daiku.items.workers.alive import register_worker
from daiku.items.workers.worker import Worker
from daiku.settings.config import Config
from daiku.team.rules.proof.evidence import Evidence
from daiku.texts.text import text
from daiku.trace.stores import open_stores
from tests.work.test_processing import failing_once

REPOSITORIES = tuple(f"g/r{number}" for number in range(20))
GONE = ForgeRefusal(kind="gone", message=text("git.gone"))
Worked = list[WorkItem]


def found(repository: str, number: int) -> FoundItem:
    key = ItemKey(source="gitlab", kind="issue", repository=repository, name=str(number))
    return FoundItem(key=key, title=f"Item {number}", labelled_at="2026-01-01T00:00:00Z")


@dataclass
class Forge:
    """A source whose items are deleted when they are read, which is the shortest way of an item through a worker;
    `calls` counts what it is asked, a look once for each repository."""

    queue: dict[str, FoundItem]
    calls: Counter[str] = field(default_factory=Counter[str])
    read_items: list[str] = field(default_factory=list[str])
    """The names of the items that were read, in this order."""

    @property
    def name(self) -> SourceName:
        return "gitlab"

    def takes(self, key: ItemKey) -> bool:
        return True

    async def find(self) -> tuple[FoundItem, ...] | ForgeRefusal:
        self.calls.update(f"find {repository}" for repository in REPOSITORIES)
        return tuple(self.queue.values())

    async def read(self, key: ItemKey) -> ItemText | ForgeRefusal:
        self.calls["read"] += 1
        self.read_items.append(str(key))
        del self.queue[str(key)]
        return GONE

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        self.calls["news"] += 1
        return ItemNews(wanted=True)

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = no_check
    ) -> Outcome | ForgeRefusal:
        self.calls["apply"] += 1
        return GONE

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess | ForgeRefusal:
        return GONE

    async def aclose(self) -> None:
        self.calls["aclose"] += 1


def forge_of(counts: dict[str, int]) -> Forge:
    """A forge whose items were labelled one repository after the other."""
    items = [found(name, number) for name, count in counts.items() for number in range(1, count + 1)]
    return Forge({str(item.key): item for item in items})


@dataclass(frozen=True)
class Place:
    """A database, and workers on it."""

    home: Path
    database: str | Path
    open: ExitStack

    def worker(self, forge: Forge, told: Callable[[WorkItem], None], concurrency: int = 1) -> Worker:
        stores = open_stores(self.database, str)
        self.open.callback(stores.close)
        name, lock = register_worker(self.home)
        self.open.callback(lock.release)
        items = ItemStore(stores.database)
        config = Config.model_validate({"work": {"poll_seconds": 1}})
        intents = IntentStore(stores.database, items)
        contexts = ContextFiles(self.home, items, intents, stores.journal)
        return Worker(
            WorkerParts(
                config=config,
                home=self.home,
                items=items,
                intents=intents,
                sources={"gitlab": forge},
                start=_never,
                tell=told,
                name=name,
                evidence=lambda _: Evidence(),
                concurrency=concurrency,
                allowed=lambda _: frozenset(),
                contexts=contexts,
            )
        )


async def _never(claim: Claim, place: Path) -> RunResult | None:
    raise AssertionError("what is deleted is not begun")


@pytest.fixture(autouse=True)
def no_lines_kept(caplog: pytest.LogCaptureFixture) -> None:
    """pytest keeps every line of the log, which is memory too."""
    caplog.set_level("CRITICAL", "daiku")


@pytest.fixture
def place(database_place: Path | str, tmp_path: Path) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(tmp_path / "home", database_place, opened)


@pytest.mark.slow(seconds=30)  # a thousand items
async def test_a_thousand_items_over_twenty_repositories_are_each_worked_once_in_flat_memory(
    place: Place,
) -> None:
    forge = forge_of(dict.fromkeys(REPOSITORIES, 50))
    told: Counter[str] = Counter()
    first = list(forge.queue.values())[::10]  # what is loaded and kept once is no growth
    forge.queue, rest = {str(item.key): item for item in first}, forge.queue
    worker = place.worker(forge, lambda item: told.update([item.item]), concurrency=4)
    await worker.run_once()
    forge.queue = {name: item for name, item in rest.items() if name not in told}
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        await worker.run_once()
        gc.collect()
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert set(told.values()) == {1}
    assert len(told) == 1_000
    assert forge.calls["read"] == 1_000
    # The test itself keeps the name of each item, and pydantic up to 16,384 short texts that it has read.
    assert after - before < 600_000, "memory grew with the items that were worked"
    assert peak - before < 2_000_000, "the queue was held in memory"


async def test_a_small_repository_does_not_wait_for_a_large_one(place: Place) -> None:
    """Each has its turn before another one has its second, also where one item is worked at a time."""
    counts = {"g/big": 40, **dict.fromkeys(REPOSITORIES[:4], 3)}
    forge = forge_of(counts)
    await place.worker(forge, lambda _: None).run_once()
    turns = [name.partition("#")[0] for name in forge.read_items]
    for turn in range(3):
        assert len(set(turns[turn * 5 : turn * 5 + 5])) == 5
    assert Counter(turns) == {f"gitlab:{name}": count for name, count in counts.items()}


async def test_new_items_of_a_repository_that_had_none_wait_for_one_turn_of_each_other(place: Place) -> None:
    forge = forge_of({"g/big": 10, "g/other": 10})
    told: Worked = []
    worker = place.worker(forge, told.append)
    late = [found("g/late", number) for number in range(1, 9)]

    def tell(item: WorkItem) -> None:
        told.append(item)
        if len(told) == 6:
            for each in late:
                forge.queue[str(each.key)] = each
                worker.parts.items.add(each)

    worker = place.worker(forge, tell)
    await worker.run_once()
    turns = [name.partition("#")[0] for name in forge.read_items][6:24]
    assert all(len(set(turns[at : at + 3])) == 3 for at in range(0, 12, 3))


async def test_two_workers_that_start_together_work_each_item_once(place: Place) -> None:
    forge = forge_of(dict.fromkeys(REPOSITORIES, 3))
    told: Worked = []
    both = [place.worker(forge, told.append, 2) for _ in range(2)]
    await asyncio.gather(*(worker.run_once() for worker in both))
    assert Counter(forge.read_items) == Counter(item.item for item in told)
    assert {item.attempts for item in told} == {1}
    assert len(told) == 60


async def test_a_worker_that_stays_goes_on_after_the_database_failed(place: Place) -> None:
    """B23.4"""
    forge = forge_of({"g/one": 2})
    told: Worked = []

    def tell(item: WorkItem) -> None:
        told.append(item)
        if len(told) == 2:
            worker.parts.stopping.set()

    worker = place.worker(forge, tell)
    with failing_once(ItemStore, "first_queued") as failed:
        await worker.run()
    assert failed
    assert {item.state for item in told} == {"failed"}
    assert len(told) == 2


async def test_an_idle_look_is_one_call_a_repository(place: Place) -> None:
    forge = forge_of(dict.fromkeys(REPOSITORIES, 1))
    worker = place.worker(forge, lambda _: None, 4)
    await worker.run_once()
    forge.calls.clear()
    await worker.run_once()
    assert forge.calls == Counter(f"find {repository}" for repository in REPOSITORIES)


async def test_items_that_changed_since_a_time_are_read_a_few_at_a_time(place: Place) -> None:
    items = place.worker(forge_of({}), lambda _: None).parts.items
    for number in range(1, 121):
        items.add(found("g/one", number))
    before = items.records("queued")
    assert tuple(items.since("", "queued")) == before
    assert tuple(items.since("9", "queued")) == tuple(items.since("", "done")) == ()


async def test_an_item_that_ends_its_workers_is_begun_alone_and_last(place: Place) -> None:
    """B23.5: whatever ends a worker with it, the others have been worked before."""
    forge = forge_of({"g/one": 3, "g/two": 2})
    worker = place.worker(forge, lambda _: None, concurrency=4)
    items = worker.parts.items
    for each in forge.queue.values():
        items.add(each)
    for name, takeovers in (("gitlab:g/one#1", 5), ("gitlab:g/one#2", 3), ("gitlab:g/two#1", 2)):
        for _ in range(takeovers + 1):
            assert items.claim(name, "gone", only=("queued", "processing")) is not None
    await worker.run_once()
    assert set(forge.read_items[:3]) == {"gitlab:g/two#1", "gitlab:g/two#2", "gitlab:g/one#3"}
    assert forge.read_items[3:] == ["gitlab:g/one#2", "gitlab:g/one#1"]


async def test_the_next_items_are_found_without_reading_all_that_wait(place: Place) -> None:
    worker = place.worker(forge_of({}), lambda _: None)
    items = worker.parts.items
    for name, count in (("g/big", 30), ("g/small", 1)):
        for number in range(1, count + 1):
            items.add(found(name, number))
    assert [each.key.repository for each in items.first_queued(2)] == ["g/big", "g/big", "g/small"]
    assert items.first_queued(2)[0].item == "gitlab:g/big#1"
