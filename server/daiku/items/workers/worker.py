"""The worker: polls for items, processes several at a time, round-robin by repository, and gives back the rest."""

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
from daiku.items.hearing import apply_left_open, poll_idle_items
from daiku.items.kept.clearing import remove_old_trees
from daiku.items.parts import ClaimedItem, WorkerParts
from daiku.items.processing import process_item, retry_broken
from daiku.items.record import Claim, ClaimLost, ItemRecord, get_repository_name
from daiku.items.retrying import SUSPECT_TAKEOVERS, compute_seconds_to_next
from daiku.items.workers.alive import BEAT_SECONDS, WorkerHealth, WorkerStore, drop_health, write_health
from daiku.texts.text import NO_TEXT, Text, text

logger = logging.getLogger(__name__)
PATIENCE_SECONDS = 5.0
"""Maximum seconds that a worker that must end waits for an item's next try."""


@dataclass(slots=True)
class Worker:
    """The items that this process is processing."""

    parts: WorkerParts
    failed: bool = False
    _under_way: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, "asyncio.Task[None]"])
    _looked_at: float = 0.0
    _error: Text = NO_TEXT
    """Problem of the last poll."""
    _warned: Text = NO_TEXT
    """The last reported problem, so that it is not reported at every poll."""
    _tried: set[str] = field(default_factory=set[str])
    """Items started since the last poll, which are not started again before the next one."""
    _served: dict[str, None] = field(default_factory=dict[str, None])
    """Repositories of which an item was started, the latest last."""
    _ready: bool = False
    _given_back: set[str] = field(default_factory=set[str])
    """Items that this worker gave back."""
    _away: set[SourceName] = field(default_factory=set[SourceName])
    """Sources whose poll failed: their items are not started until it succeeds."""

    async def run_once(self) -> bool:
        """Process the current items and end. Return True if all are done or wait for a person."""
        async with self._send_heartbeats() as beating:
            await self._poll_sources(once=True)
            await self._process_queue(beating)
            while (seconds := self._seconds_to_retry()) is not None and not self.parts.stopping.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.parts.stopping.wait(), seconds)
                await self._process_queue(beating)
        return not self.failed and (self.parts.stopping.is_set() or not self._has_left_over())

    def _seconds_to_retry(self) -> float | None:
        """Return the seconds until the first item given back is retried; None if that is not soon."""
        records = tuple(filter(None, map(self.parts.items.record, self._given_back)))
        seconds = (
            None if self.parts.breaker.is_open or self._is_paused() else compute_seconds_to_next(records)
        )
        return seconds if seconds is not None and seconds <= PATIENCE_SECONDS else None

    def _is_paused(self) -> bool:
        return is_pause_wanted(self.parts.home)

    def _has_left_over(self) -> bool:
        """Return True if an item for this worker is queued and the pause file does not exist."""
        return not self._is_paused() and any(map(self.parts.source_of, self.parts.items.queued_keys()))

    async def run(self) -> None:
        """Poll and process items until `stopping` is set."""
        async with self._send_heartbeats() as beating:
            while not self.parts.stopping.is_set():
                try:
                    await self._poll_sources(once=False)
                except DaikuError as error:  # the server may recover
                    self._note(error.failure.message)
                self._tried.clear()
                await self._process_queue(beating, seconds=self.parts.config.work.poll_seconds)
            await self._drain()

    @asynccontextmanager
    async def _send_heartbeats(self) -> AsyncGenerator[asyncio.Task[None]]:
        """Send heartbeats to the other workers during the block."""
        workers = WorkerStore(self.parts.items.database)
        try:
            workers.forget_old()
            workers.remove_ended(self.parts.home)
            workers.beat(self.parts.name)
        except DaikuError as error:  # the database may recover; the next poll uses it again
            self._note(error.failure.message)
        beating = asyncio.create_task(self._beat(workers, time.time()))
        try:
            yield beating
        finally:
            beating.cancel()
            drop_health(self.parts.home, self.parts.name)
            with suppress(DaikuError):
                workers.remove(self.parts.name)

    async def _beat(self, workers: WorkerStore, started: float) -> None:
        """Send heartbeats, and start items of dead workers, as a poll of the sources may take long."""
        while True:
            self._write_health(started)
            await asyncio.sleep(BEAT_SECONDS)
            try:
                workers.beat(self.parts.name)
                self._start_items()
            except DaikuError as error:
                self._note(error.failure.message)

    def _write_health(self, started: float) -> None:
        health = WorkerHealth(
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

    async def _poll_sources(self, *, once: bool) -> None:
        """Poll the sources for items and for comments on waiting ones."""
        self._error = NO_TEXT
        self._away.clear()
        await asyncio.to_thread(self.parts.contexts.refresh)
        for source in self.parts.sources.values():
            result = await source.find()
            if isinstance(result, ForgeRefusal):
                self._note(result.message)
                self.failed = True
                if result.kind in PASSING:
                    self._away.add(source.name)
                continue
            self._add_items(result)
        await poll_idle_items(self.parts, once=once)
        await apply_left_open(self.parts)
        await remove_old_trees(self.parts.home, self.parts.items, time.time())
        self._warned = self._error
        self._looked_at = time.time()

    def _add_items(self, items: tuple[FoundItem, ...]) -> None:
        """Record the items, except a file with the name of an item in another place."""
        name_conflicts: list[str] = []
        for item in items:
            record = self.parts.items.record(str(item.key)) if item.key.place else None
            if record is not None and record.key != item.key:
                name_conflicts.append(f"{item.key.name} ({record.key.place})")
            else:
                self.parts.items.add(item)
        if name_conflicts:
            self._note(text("worker.name_taken", names="; ".join(name_conflicts)))
            self.failed = True

    async def _process_queue(self, beating: asyncio.Task[None], seconds: float | None = None) -> None:
        """Process queued items until none is left, `seconds` have passed, or the worker must stop.

        With `seconds`, wait for a database that fails.
        """
        loop = asyncio.get_running_loop()
        until = None if seconds is None else loop.time() + seconds
        while not self.parts.stopping.is_set():
            try:
                self._start_items()
            except DaikuError as error:
                has_no_model = isinstance(error, UsageError) and not error.failure.retryable
                if until is None or has_no_model:
                    raise
                self._note(error.failure.message)
            remaining = None if until is None else until - loop.time()
            if (until is None and not self._under_way) or (remaining is not None and remaining <= 0):
                return
            await self._wait(beating, remaining)
        if until is None:
            await self._drain()

    def _start_items(self) -> None:
        """Start as many items as there is room for, unless everything is paused."""
        if self._is_paused():
            return
        while not self.parts.stopping.is_set() and (room := self._count_room()) > 0:
            abandoned, busy = self._split_processing()
            queued = self.parts.items.first_queued(self.parts.concurrency)
            calm, suspects = split_suspects(filter(self._is_ours, abandoned))
            free = (*calm, *filter(self._is_ours, queued))
            if not free and not self._under_way:
                free = suspects[:1]
            if not free:
                return
            if not self._ready:
                self.parts.ready()
                self._ready = True
            for record in order_round_robin(free, busy, tuple(self._served))[:room]:
                self._tried.add(record.item)
                self._start_item(record)

    def _count_room(self) -> int:
        room = self.parts.concurrency - len(self._under_way)
        return self.parts.breaker.limit_room(room, len(self._under_way))

    def _is_ours(self, record: ItemRecord) -> bool:
        """Return True if this worker may start the item, and did not do so since the last poll."""
        was_tried = record.item in self._under_way or record.item in self._tried
        return (
            not was_tried
            and record.key.source not in self._away
            and self.parts.source_of(record.key) is not None
        )

    def _start_item(self, record: ItemRecord) -> None:
        """Claim the item and start processing it, unless another worker has claimed it."""
        claim = self.parts.items.claim(
            record.item, self.parts.name, only=(record.shown.state,), expected_fence=record.fence
        )
        if claim is not None:
            served = get_repository_name(record.key)
            self._served.pop(served, None)
            self._served[served] = None
            self._under_way[record.item] = asyncio.create_task(self._work(claim))

    def _split_processing(self) -> tuple[tuple[ItemRecord, ...], tuple[str, ...]]:
        """Return the items of dead workers, and the repositories of the others that are being processed."""
        records = self.parts.items.records("processing")
        others = frozenset[str]()
        if records:
            workers = WorkerStore(self.parts.items.database)
            workers.remove_ended(self.parts.home)
            others = workers.list_alive() - {self.parts.name}
        busy = [r for r in records if r.item in self._under_way or r.worker in others]
        abandoned = tuple(record for record in records if record not in busy)
        return abandoned, tuple(get_repository_name(record.key) for record in busy)

    async def _work(self, claim: Claim) -> None:
        try:
            await self._process(claim)
        except DaikuError as error:  # the database may recover; then the item is started again
            self._note(error.failure.message)
            self.failed = True

    async def _process(self, claim: Claim) -> None:
        """Process the item and report its state. Raises DaikuError if the database fails."""
        parts = self.parts
        record = parts.items.claimed(claim)
        item = ClaimedItem(parts, parts.sources[record.key.source], claim)
        try:
            state = await process_item(item)
        except ClaimLost as error:
            logger.warning("%s: %s", claim.item, error.failure.message)
            return
        except Exception as error:
            logger.exception("work on %s broke off", claim.item)
            state = retry_broken(item, error)
        self.failed = self.failed or state in ("failed", "dead", "processing")
        after = parts.items.record(claim.item)
        if after is not None:
            self._note_given_back(after)
            await asyncio.to_thread(parts.contexts.show, after)
            parts.tell(after.shown)

    def _note_given_back(self, record: ItemRecord) -> None:
        """Record an item that was given back, and warn if the model provider is unavailable."""
        if record.shown.state != "queued":
            return
        self._given_back.add(record.item)
        if record.next_at:
            self._tried.discard(record.item)
        if self.parts.breaker.is_open:
            seconds = round(self.parts.breaker.seconds)
            self._note(text("worker.model_away", why=record.shown.error, seconds=seconds))

    async def _wait(self, beating: asyncio.Task[None], seconds: float | None) -> None:
        """Wait until an item has ended, the worker must stop, or `seconds` have passed."""
        stop = asyncio.ensure_future(self.parts.stopping.wait())
        # At most one heartbeat, which may start an item.
        until = BEAT_SECONDS if seconds is None else min(seconds, BEAT_SECONDS)
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
    """Return the items to take over now, and the suspects, which may crash workers and are started alone."""
    by_takeovers = sorted(records, key=lambda record: record.facts.takeovers)
    calm = tuple(r for r in by_takeovers if r.facts.takeovers < SUSPECT_TAKEOVERS)
    return calm, tuple(by_takeovers[len(calm) :])


def order_round_robin(
    records: tuple[ItemRecord, ...], busy: tuple[str, ...], served: tuple[str, ...] = ()
) -> tuple[ItemRecord, ...]:
    """Order the records round-robin by repository.

    First comes the repository with the fewest running items (`busy`), then the one `served` longest ago.
    """
    rows: dict[str, deque[ItemRecord]] = {}
    for record in records:
        rows.setdefault(get_repository_name(record.key), deque()).append(record)
    counts = {name: busy.count(name) for name in rows}
    turns = {name: turn for turn, name in enumerate(served, 1)}
    ordered: list[ItemRecord] = []
    while rows:
        name = min(rows, key=lambda row: (counts[row], turns.get(row, 0)))
        ordered.append(rows[name].popleft())
        counts[name] += 1
        if not rows[name]:
            del rows[name]
    return tuple(ordered)
