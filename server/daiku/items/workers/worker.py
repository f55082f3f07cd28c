"""The worker: looks for items, works several at a time, fair to each repository, and gives back what it may not end."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, suppress

from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError, UsageError
from daiku.domain.items.forge import PASSING, ForgeRefusal, FoundItem
from daiku.domain.items.item import SourceName
from daiku.items.contexts.files import is_pause_wanted
from daiku.items.hearing import deliver_open, hear_all
from daiku.items.kept.clearing import clear_old
from daiku.items.parts import ClaimedItem, WorkerParts
from daiku.items.processing import retry_broken, work_item
from daiku.items.record import Claim, ClaimLost, ItemRecord, repository_of
from daiku.items.retrying import SUSPECT_TAKEOVERS, seconds_to_next
from daiku.items.workers.alive import BEAT_SECONDS, Health, WorkerStore, drop_health, write_health
from daiku.texts.text import NO_TEXT, Text, text

logger = logging.getLogger(__name__)
PATIENCE_SECONDS = 5.0
"""Maximum time that a worker that is to end waits for the next try of an item."""


@dataclass(slots=True)
class Worker:
    """The items that are under way in this process."""

    parts: WorkerParts
    failed: bool = False
    _under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    _looked_at: float = 0.0
    _error: Text = NO_TEXT
    """What the last look met."""
    _warned: Text = NO_TEXT
    """What was told of it: the same is not told again at every look."""
    _tried: set[str] = field(default_factory=set[str])
    """What was begun since the last look: it is not begun again before the next one."""
    _served: dict[str, None] = field(default_factory=dict[str, None])
    """The repositories of which something was begun, the latest last."""
    _ready: bool = False
    _given_back: set[str] = field(default_factory=set[str])
    """Items that this worker gave back."""
    _away: set[SourceName] = field(default_factory=set[SourceName])
    """Sources that could not be looked through: their items are not begun until they can."""

    async def once(self) -> bool:
        """Process what is there and end. Return True if all of it is done, or waits for a person."""
        async with self._beating() as beating:
            await self._look(once=True)
            await self._work_all(beating)
            while (seconds := self._seconds_to_retry()) is not None and not self.parts.stopping.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.parts.stopping.wait(), seconds)
                await self._work_all(beating)
        return not self.failed and (self.parts.stopping.is_set() or not self._has_left_over())

    def _seconds_to_retry(self) -> float | None:
        """Return the seconds until the first item that was given back is tried again; None if that is not soon."""
        records = tuple(filter(None, map(self.parts.items.record, self._given_back)))
        seconds = None if self.parts.breaker.is_open or self._is_paused() else seconds_to_next(records)
        return seconds if seconds is not None and seconds <= PATIENCE_SECONDS else None

    def _is_paused(self) -> bool:
        return is_pause_wanted(self.parts.home)

    def _has_left_over(self) -> bool:
        """Return True if an item that this worker may work is queued, unless a person paused everything."""
        return not self._is_paused() and any(map(self.parts.source_of, self.parts.items.queued_keys()))

    async def keep_on(self) -> None:
        """Look and work until `stopping`."""
        async with self._beating() as beating:
            while not self.parts.stopping.is_set():
                try:
                    await self._look(once=False)
                except DaikuError as wrong:  # a server that comes back
                    self._note(wrong.failure.message)
                self._tried.clear()
                await self._work_all(beating, seconds=self.parts.config.work.poll_seconds)
            await self._drain()

    @asynccontextmanager
    async def _beating(self) -> AsyncGenerator[asyncio.Task[None]]:
        """Tell the other workers all the while that this one is alive."""
        workers = WorkerStore(self.parts.items.database)
        try:
            workers.forget_old()
            workers.leave_ended(self.parts.home)
            workers.beat(self.parts.name)
        except DaikuError as wrong:  # a database that comes back; a look that needs it tells more
            self._note(wrong.failure.message)
        beating = asyncio.create_task(self._beat(workers, time.time()))
        try:
            yield beating
        finally:
            beating.cancel()
            drop_health(self.parts.home, self.parts.name)
            with suppress(DaikuError):
                workers.leave(self.parts.name)

    async def _beat(self, workers: WorkerStore, started: float) -> None:
        """Beat, and begin what a worker that is gone has left: a look at the sources may take long."""
        while True:
            self._write_health(started)
            await asyncio.sleep(BEAT_SECONDS)
            try:
                workers.beat(self.parts.name)
                self._fill()
            except DaikuError as wrong:
                self._note(wrong.failure.message)

    def _write_health(self, started: float) -> None:
        health = Health(
            worker=self.parts.name,
            started_at=started,
            at=time.time(),
            looked_at=self._looked_at,
            poll_seconds=self.parts.config.work.poll_seconds,
            under_way=tuple(self._under_way),
            error=self._error,
        )
        write_health(self.parts.home, health)

    def _note(self, error: Text) -> None:
        self._error = error
        logger.warning("%s", error)
        if error != self._warned:
            self._warned = error
            self.parts.warn(error)

    async def _look(self, *, once: bool) -> None:
        """Note what the sources have, and what people said of items that wait."""
        self._error = NO_TEXT
        self._away.clear()
        await asyncio.to_thread(self.parts.contexts.refresh)
        for source in self.parts.sources.values():
            found = await source.find()
            if isinstance(found, ForgeRefusal):
                self._note(found.message)
                self.failed = True
                if found.kind in PASSING:
                    self._away.add(source.name)
                continue
            self._add(found)
        await hear_all(self.parts, once=once)
        await deliver_open(self.parts)
        await clear_old(self.parts.home, self.parts.items, time.time())
        self._warned = self._error
        self._looked_at = time.time()

    def _add(self, found: tuple[FoundItem, ...]) -> None:
        """Note the items, except a file with the name of an item in another place."""
        taken: list[str] = []
        for item in found:
            known = self.parts.items.record(str(item.key)) if item.key.place else None
            if known is not None and known.key != item.key:
                taken.append(f"{item.key.name} ({known.key.place})")
            else:
                self.parts.items.add(item)
        if taken:
            self._note(text("worker.name_taken", names="; ".join(taken)))
            self.failed = True

    async def _work_all(self, beating: asyncio.Task[None], seconds: float | None = None) -> None:
        """Process what is queued, until nothing is left, `seconds` have passed, or it is time to stop. With `seconds` a
        database that fails is waited for."""
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        while not self.parts.stopping.is_set():
            try:
                self._fill()
            except DaikuError as wrong:
                if until is None or isinstance(wrong, UsageError):
                    raise
                self._note(wrong.failure.message)
            left = None if until is None else until - loop.time()
            if (until is None and not self._under_way) or (left is not None and left <= 0):
                return
            await self._wait(beating, left)
        if until is None:
            await self._drain()

    def _fill(self) -> None:
        """Begin what there is room for, unless everything is paused."""
        if self._is_paused():
            return
        while not self.parts.stopping.is_set() and (room := self._room()) > 0:
            gone, busy = self._processing()
            queued = self.parts.items.first_queued(self.parts.concurrency)
            calm, suspects = split_suspects(filter(self._is_ours, gone))
            free = (*calm, *filter(self._is_ours, queued))
            if not free and not self._under_way:
                free = suspects[:1]
            if not free:
                return
            if not self._ready:
                self.parts.ready()
                self._ready = True
            for record in in_turn(free, busy, tuple(self._served))[:room]:
                self._tried.add(record.item)
                self._begin(record)

    def _room(self) -> int:
        room = self.parts.concurrency - len(self._under_way)
        return self.parts.breaker.limit_room(room, len(self._under_way))

    def _is_ours(self, record: ItemRecord) -> bool:
        """Return True if this worker may begin the item, and did not do so since the last look."""
        was_tried = record.item in self._under_way or record.item in self._tried
        return (
            not was_tried
            and record.key.source not in self._away
            and self.parts.source_of(record.key) is not None
        )

    def _begin(self, record: ItemRecord) -> None:
        """Work the item, unless somebody else has taken it."""
        claim = self.parts.items.claim(
            record.item, self.parts.name, only=(record.shown.state,), seen=record.fence
        )
        if claim is not None:
            served = repository_of(record.key)
            self._served.pop(served, None)
            self._served[served] = None
            self._under_way[record.item] = asyncio.create_task(self._work(claim))

    def _processing(self) -> tuple[tuple[ItemRecord, ...], tuple[str, ...]]:
        """Return what is under way at a worker that is gone, and the repositories of the rest."""
        all_of = self.parts.items.records("processing")
        others = frozenset[str]()
        if all_of:
            workers = WorkerStore(self.parts.items.database)
            workers.leave_ended(self.parts.home)
            others = workers.alive() - {self.parts.name}
        busy = [each for each in all_of if each.item in self._under_way or each.worker in others]
        gone = tuple(each for each in all_of if each not in busy)
        return gone, tuple(repository_of(each.key) for each in busy)

    async def _work(self, claim: Claim) -> None:
        try:
            await self._process(claim)
        except DaikuError as away:  # a database that comes back; the item is begun again then
            self._note(away.failure.message)
            self.failed = True

    async def _process(self, claim: Claim) -> None:
        """Process the item and tell how it stands. Raises DaikuError if the database fails."""
        parts = self.parts
        record = parts.items.claimed(claim)
        item = ClaimedItem(parts, parts.sources[record.key.source], claim)
        try:
            state = await work_item(item)
        except ClaimLost as lost:
            logger.warning("%s: %s", claim.item, lost.failure.message)
            return
        except Exception as wrong:
            logger.exception("work on %s broke off", claim.item)
            state = retry_broken(item, wrong)
        self.failed = self.failed or state in ("failed", "dead", "processing")
        after = parts.items.record(claim.item)
        if after is not None:
            self._note_given_back(after)
            await asyncio.to_thread(parts.contexts.show, after)
            parts.tell(after.shown)

    def _note_given_back(self, record: ItemRecord) -> None:
        """Note an item that was given back, and warn of a provider that is away. Ignore any other item."""
        if record.shown.state != "queued":
            return
        self._given_back.add(record.item)
        if record.next_at:
            self._tried.discard(record.item)
        if self.parts.breaker.is_open:
            seconds = round(self.parts.breaker.seconds)
            self._note(text("worker.model_away", why=record.shown.error, seconds=seconds))

    async def _wait(self, beating: asyncio.Task[None], seconds: float | None) -> None:
        """Until an item has ended, it is time to stop, or `seconds` have passed."""
        stop = asyncio.ensure_future(self.parts.stopping.wait())
        until = BEAT_SECONDS if seconds is None else min(seconds, BEAT_SECONDS)  # a beat may begin an item
        try:
            await asyncio.wait(
                {stop, beating, *self._under_way.values()}, timeout=until, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            stop.cancel()
        if beating.done():
            beating.result()
        self._under_way = {item: task for item, task in self._under_way.items() if not task.done()}

    async def _drain(self) -> None:
        if self._under_way:
            await asyncio.wait(set(self._under_way.values()))
        self._under_way.clear()


def split_suspects(records: Iterable[ItemRecord]) -> tuple[tuple[ItemRecord, ...], tuple[ItemRecord, ...]]:
    """Return the items to take over now, and the suspects, which may crash their workers and are begun alone."""
    by_takeovers = sorted(records, key=lambda each: each.facts.takeovers)
    calm = tuple(each for each in by_takeovers if each.facts.takeovers < SUSPECT_TAKEOVERS)
    return calm, tuple(by_takeovers[len(calm) :])


def in_turn(
    records: tuple[ItemRecord, ...], busy: tuple[str, ...], served: tuple[str, ...] = ()
) -> tuple[ItemRecord, ...]:
    """Order the records round-robin by repository: first the one with the fewest items under way (`busy`), then the one
    that was `served` longest ago."""
    rows: dict[str, deque[ItemRecord]] = {}
    for record in records:
        rows.setdefault(repository_of(record.key), deque()).append(record)
    taken = {name: busy.count(name) for name in rows}
    turns = {name: turn for turn, name in enumerate(served, 1)}
    found: list[ItemRecord] = []
    while rows:
        name = min(rows, key=lambda each: (taken[each], turns.get(each, 0)))
        found.append(rows[name].popleft())
        taken[name] += 1
        if not rows[name]:
            del rows[name]
    return tuple(found)
