"""Backoff of work items: when one that was given back is tried again, and when it is given up."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from daiku.domain.errors import FailureKind
from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import ItemState
from daiku.domain.runs import RunResult
from daiku.texts.text import Text, text
from daiku.work.items import ItemStore
from daiku.work.record import Claim, ItemFacts, ItemRecord

FIRST_SECONDS = 1.0
FACTOR = 4.0
LONGEST_SECONDS = 3600.0
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
    with items.holding(claim) as record:
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
