"""Retries of work items: backoff, giving up, and the circuit breaker for a model provider that is away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError, FailureKind
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import ItemState
from daiku.domain.runs import RunResult
from daiku.items.items import ItemStore
from daiku.items.record import Claim, ClaimLost, ItemFacts, ItemRecord
from daiku.texts.text import Text, text

logger = logging.getLogger(__name__)
FIRST_SECONDS = 1.0
"""Seconds before the first retry."""
FACTOR = 4.0
"""Factor by which the backoff grows with each retry."""
LONGEST_SECONDS = 3600.0
"""Maximum seconds between two tries."""
FIRST_PROBE_SECONDS = 15.0
"""Seconds after the first failure until the circuit breaker's probe."""
LONGEST_PROBE_SECONDS = 600.0
"""Maximum seconds between two probes."""
MOST_TRIES = 10
"""Number of consecutive times that an unfinished item is given back before it is given up: about four hours."""

SUSPECT_TAKEOVERS = 3
"""Number of consecutive takeovers after which an item may be what crashes its workers."""
MOST_TAKEOVERS = 100
"""Number of consecutive takeovers after which an item is given up."""

OUTAGES: frozenset[FailureKind] = frozenset(
    {"no_provider", "auth", "rate_limit", "timeout", "connection", "overloaded", "stream_cut"}
)
"""Failures of a model provider, which say nothing about the item."""


def compute_backoff(tries: int, requested: float = 0.0) -> float:
    """Return the seconds until the next try after `tries` earlier ones, at least `requested`."""
    return max(requested, min(FIRST_SECONDS * FACTOR ** min(tries, 20), LONGEST_SECONDS))


def format_time_after(seconds: float) -> str:
    """Return the time in `seconds` from now, in the format of `iso_now`."""
    later = datetime.now(UTC) + timedelta(seconds=seconds)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def compute_seconds_to_next(records: Iterable[ItemRecord]) -> float | None:
    """Return the seconds until the first queued item is retried; None if none waits for a retry."""
    times = [record.next_at for record in records if record.shown.state == "queued" and record.next_at]
    if not times:
        return None
    return max((datetime.fromisoformat(min(times)) - datetime.now(UTC)).total_seconds(), 0.05)


def is_outage(result: RunResult) -> bool:
    """Return True if the model provider was unavailable, out of credit, or rejected the key."""
    return result.status == "failed" and result.error is not None and result.error.kind in OUTAGES


def is_given_up(facts: ItemFacts) -> bool:
    """Return True if the item is not retried. Finished work is never given up: only reporting it failed."""
    return facts.ended is None and facts.tries >= MOST_TRIES


def give_back(
    items: ItemStore, claim: Claim, why: Text, *, requested: float = 0.0, counts: bool = True
) -> ItemState:
    """Queue the item for a later try. `counts`: the try counts toward the limit. Raises ClaimLost."""
    with items.under_claim(claim) as record:
        tries = record.facts.tries
        items.note(claim, tries=tries + counts)
        next_at = format_time_after(compute_backoff(tries, requested))
        items.change(claim, state="queued", error=why, next_at=next_at)
    return "queued"


def give_back_refused(items: ItemStore, claim: Claim, why: ForgeRefusal) -> ItemState:
    """Queue an item that a forge refused for now. A pause that the forge requested does not count as a try."""
    return give_back(items, claim, why.message, requested=why.retry_after, counts=why.kind != "limited")


def explain_given_up(why: Text, count: int = MOST_TRIES) -> Text:
    """Return the reason why an item was given up after `count` tries."""
    return text("work.given_up", count=count, why=why)


@contextmanager
def log_outage(item: str) -> Generator[None]:
    """Log a failure of the database as a warning and end the block: a later try may succeed. Raises ClaimLost."""
    try:
        yield
    except ClaimLost:
        raise
    except DaikuError as wrong:
        logger.warning("%s: %s", item, wrong.failure.message)


@dataclass(slots=True)
class ModelBreaker:
    """A circuit breaker.

    A run that fails because of the provider opens it. After a pause, which doubles each time, one item is a
    probe. A run that ends in any other way closes it.
    """

    clock: Callable[[], float] = time.monotonic
    _failures: int = field(default=0, init=False)
    _until: float = field(default=0.0, init=False)
    _successes: int = field(default=0, init=False)
    _seen: dict[str, int] = field(default_factory=dict[str, int], init=False)
    """Number of successes at each item's last failure."""

    @property
    def is_open(self) -> bool:
        """Whether the provider failed and has not answered since."""
        return self._failures > 0

    @property
    def seconds(self) -> float:
        """Seconds until the next probe; 0 if one may start."""
        return max(0.0, self._until - self.clock()) if self._failures else 0.0

    def limit_room(self, room: int, under_way: int) -> int:
        """Return how many of `room` more items may start while `under_way` are being processed."""
        if not self._failures:
            return room
        return 0 if self.seconds else min(room, max(0, 1 - under_way))

    def trip(self, item: str) -> bool:
        """Record that the provider failed a run.

        Return True if the item may be the cause: others succeeded since.
        """
        is_suspect = self._successes > self._seen.get(item, self._successes)
        self._seen[item] = self._successes
        self._until = self.clock() + min(
            FIRST_PROBE_SECONDS * 2.0 ** min(self._failures, 20), LONGEST_PROBE_SECONDS
        )
        self._failures += 1
        return is_suspect

    def close(self, item: str) -> None:
        """Record that the provider worked for the item's run."""
        self._failures = 0
        self._successes += 1
        self._seen.pop(item, None)
