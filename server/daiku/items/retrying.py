"""Retries of work items: backoff, giving up, and the circuit breaker for a model provider that is away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta

from daiku.dataclass import dataclass, field
from daiku.domain.errors import FailureKind
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import ItemState
from daiku.domain.runs import RunResult
from daiku.items.items import ItemStore
from daiku.items.record import Claim, ItemFacts, ItemRecord
from daiku.texts.text import Text, text

FIRST_SECONDS = 1.0
FACTOR = 4.0
LONGEST_SECONDS = 3600.0
FIRST_PROBE_SECONDS = 15.0
LONGEST_PROBE_SECONDS = 600.0
MOST_TRIES = 10
"""Times in a row that an unfinished item is given back before it is given up: about four hours."""

SUSPECT_TAKEOVERS = 3
"""Takeovers in a row after which an item may be what ends its workers."""
MOST_TAKEOVERS = 100
"""Takeovers in a row after which an item is given up."""

OUTAGES: frozenset[FailureKind] = frozenset(
    {"no_provider", "auth", "rate_limit", "timeout", "connection", "overloaded", "stream_cut"}
)
"""Failures of a model's provider, which say nothing about the item."""


def backoff_seconds(tries: int, asked: float = 0.0) -> float:
    """Return the seconds until the next try, after `tries` earlier ones; at least as many as were `asked` for."""
    return max(asked, min(FIRST_SECONDS * FACTOR ** min(tries, 20), LONGEST_SECONDS))


def time_after(seconds: float) -> str:
    """Return the time in so many seconds, in the form of `iso_now`."""
    later = datetime.now(UTC) + timedelta(seconds=seconds)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_to_next(records: Iterable[ItemRecord]) -> float | None:
    """Return the seconds until the first of the queued items is tried again; None if none of them waits for that."""
    due = [record.next_at for record in records if record.shown.state == "queued" and record.next_at]
    if not due:
        return None
    return max((datetime.fromisoformat(min(due)) - datetime.now(UTC)).total_seconds(), 0.05)


def is_outage(result: RunResult) -> bool:
    """Return True if a run ended because the model's provider was away, out of credit, or did not accept the key."""
    return result.status == "failed" and result.error is not None and result.error.kind in OUTAGES


def is_given_up(facts: ItemFacts) -> bool:
    """Return True if the item is not tried again. Finished work is never given up: only telling it failed so far."""
    return facts.ended is None and facts.tries >= MOST_TRIES


def give_back(
    items: ItemStore, claim: Claim, why: Text, *, asked: float = 0.0, counts: bool = True
) -> ItemState:
    """Queue the item for a later try. `counts`: the try counts towards the limit. Raises ClaimLost."""
    with items.under_claim(claim) as record:
        tries = record.facts.tries
        items.note(claim, tries=tries + counts)
        next_at = time_after(backoff_seconds(tries, asked))
        items.change(claim, state="queued", error=why, next_at=next_at)
    return "queued"


def give_back_refused(items: ItemStore, claim: Claim, why: ForgeRefusal) -> ItemState:
    """Queue an item again that a forge refused for now; a pause that the forge asks for counts as no try."""
    return give_back(items, claim, why.message, asked=why.retry_after, counts=why.kind != "limited")


def given_up_text(why: Text, count: int = MOST_TRIES) -> Text:
    """Return why an item was given up after `count` tries."""
    return text("work.given_up", count=count, why=why)


@dataclass(slots=True)
class ModelBreaker:
    """Circuit breaker. A run that fails because of the provider opens it; after a pause, which doubles each time, one
    item is a probe, and a run that ends in any other way closes it."""

    clock: Callable[[], float] = time.monotonic
    _failures: int = field(default=0, init=False)
    _until: float = field(default=0.0, init=False)
    _successes: int = field(default=0, init=False)
    _seen: dict[str, int] = field(default_factory=dict[str, int], init=False)
    """The number of successes when each item failed last."""

    @property
    def is_open(self) -> bool:
        """Whether the provider failed and has not answered since."""
        return self._failures > 0

    @property
    def seconds(self) -> float:
        """The seconds until the next probe; 0 if one may begin."""
        return max(0.0, self._until - self.clock()) if self._failures else 0.0

    def limit_room(self, room: int, under_way: int) -> int:
        """Return how many of `room` more items may begin while `under_way` are worked."""
        if not self._failures:
            return room
        return 0 if self.seconds else min(room, max(0, 1 - under_way))

    def trip(self, item: str) -> bool:
        """Note that the provider failed a run. Return True if the item may be the cause: others succeeded since."""
        is_suspect = self._successes > self._seen.get(item, self._successes)
        self._seen[item] = self._successes
        self._until = self.clock() + min(
            FIRST_PROBE_SECONDS * 2.0 ** min(self._failures, 20), LONGEST_PROBE_SECONDS
        )
        self._failures += 1
        return is_suspect

    def close(self, item: str) -> None:
        """Note that the provider has worked for the item's run."""
        self._failures = 0
        self._successes += 1
        self._seen.pop(item, None)
