"""Reads what people and checks said of items: a run is told or stopped, a waiting item goes on, a review begins a round."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeAlias

from daiku.domain.chunks import iso_now
from daiku.domain.errors import DaikuError
from daiku.domain.items.forge import ForgeRefusal, ItemNews, RefusalKind, Said
from daiku.domain.items.intents import MarkReady, PostComment, SetState
from daiku.domain.items.item import ItemState
from daiku.items.applying import apply_open
from daiku.items.items import ItemStore
from daiku.items.parts import ClaimedItem, WorkerParts
from daiku.items.prompt import MOST_COMMENT
from daiku.items.record import ClaimLost, Feedback, ItemFacts, ItemRecord, repository_of
from daiku.items.retrying import backoff_seconds, time_after
from daiku.items.rules.assent import only_agrees
from daiku.items.rules.comments import Ending, final_comment
from daiku.items.rules.harmless import code
from daiku.items.source import ItemSource
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, render, text

logger = logging.getLogger(__name__)
Hear: TypeAlias = Callable[[WorkerParts, ItemSource, ItemRecord], Awaitable[ForgeRefusal | None]]
OVER_THERE: frozenset[RefusalKind] = frozenset({"gone", "moved", "closed"})
"""Refusals that say that there is nothing to work any more."""
MOST_LOOKS = 1
MOST_LOOKS_ONCE = 5
"""Requests of one repository that one look reads, where there is a next look and where this is the only one."""
LONGEST_WAIT = 6 * 3600.0
"""Maximum seconds between two looks at a request of which nothing comes."""
LONGEST_WAIT_FOR_ANSWER = 600.0
"""Maximum seconds between two looks at an item that waits for an answer."""
MOST_FEEDBACK = 30
MOST_DELIVERED = 20
"""Items whose open intents one look carries out."""


# -- under way ------------------------------------------------------------------------------------


async def hear_meanwhile(item: ClaimedItem) -> None:
    """Pass on what trusted people say of an item under way, and cancel it when it is not wanted any more."""
    seconds = item.parts.config.work.poll_seconds
    # What is taken up again may have been called off meanwhile; what was just read was not.
    wait = 0.0 if item.record.run else seconds
    while True:
        await asyncio.sleep(wait)
        try:
            heard = await _hear(item)
        except ClaimLost as lost:
            logger.info("%s: %s", item.claim.item, lost.failure.message)
            return
        except DaikuError as away:  # a database that comes back
            logger.warning("%s: %s", item.claim.item, away.failure.message)
            heard = 0.0
        if heard is None:
            return
        wait = max(seconds, heard)


async def _hear(item: ClaimedItem) -> float | None:
    """Look once. Return the seconds to leave the source alone; None if nothing more can come. Raises ClaimLost."""
    record, items = item.record, item.parts.items
    if record.fence != item.claim.fence:
        return None
    news = await item.source.news(record.key, record.facts.news_after, _head_of(record))
    if why := unwanted(news):
        items.change(item.claim, error=why)
        # Alone: whoever works the item notes facts of it at the same time.
        item.note(merged=isinstance(news, ItemNews) and news.merged)
        items.signal(item.claim, "cancel")
        return None
    if isinstance(news, ForgeRefusal):
        return news.retry_after
    _leave(items, record.item, news.said)
    return 0.0


def unwanted(news: ItemNews | ForgeRefusal) -> Text:
    """Return why nobody wants the item processed any more; empty if it is wanted, or that is unknown."""
    if isinstance(news, ForgeRefusal):
        return news.message if news.kind in OVER_THERE else NO_TEXT
    if news.merged:
        return text("work.merged")
    if news.closed:
        return text("work.request_closed")
    return NO_TEXT if news.wanted else news.why


def _head_of(record: ItemRecord) -> str:
    """Return the commit by which the item's request is found, where people may comment, too. Before the first round of an
    order there is none: commits of an earlier order say nothing of this one."""
    return record.facts.pushed if record.facts.rounds else ""


def _leave(items: ItemStore, item: str, said: tuple[Said, ...]) -> None:
    """Leave the words of those who may decide for whoever works the item."""
    for each in said:
        if each.trusted and each.text.strip():
            items.messages.add(item, words_of(each), each.id)


def _only_agrees(said: Said) -> bool:
    return not said.path and only_agrees(said.text)


def words_of(said: Said) -> str:
    """Return the words with the place that they are about."""
    return f"{place_of(said)}\n{said.text}" if said.path else said.text


def place_of(said: Said) -> str:
    """Return the place of a review's comment as `path:line`; empty for any other comment."""
    return f"{said.path}:{said.line}" if said.path and said.line else said.path


# -- waiting, and in review --------------------------------------------------------------------------


async def hear_all(parts: WorkerParts, *, once: bool) -> None:
    """Read what was said of items that nobody works now, less often while nothing comes (`once`: always)."""
    now = datetime.now(UTC)
    poll = 0.0 if once else parts.config.work.poll_seconds

    def is_due(record: ItemRecord) -> bool:
        return looks_seconds(record, now) >= wait_seconds(record, now, poll)

    waiting = filter(is_due, parts.items.records("waiting"))
    reviewed = tuple(filter(is_due, parts.items.in_review()))
    for record in (*waiting, *fairly(reviewed, MOST_LOOKS_ONCE if once else MOST_LOOKS)):
        await _ask(parts, record, hear_waiting if record.shown.state == "waiting" else hear_review)


async def _ask(parts: WorkerParts, record: ItemRecord, hear: Hear) -> None:
    """Ask the item's source, unless that asked to be left alone. A lost claim and a failing database are logged."""
    source = parts.source_of(record.key)
    if source is None or not parts.may_ask(record.key.source):
        return
    try:
        refused = await hear(parts, source, record)
    except ClaimLost as lost:
        logger.info("%s: %s", record.item, lost.failure.message)
    except DaikuError as away:  # a database that comes back; the next look asks again
        logger.warning("%s: %s", record.item, away.failure.message)
    else:
        parts.leave_alone(record.key.source, refused)


def looks_seconds(record: ItemRecord, now: datetime) -> float:
    """Return the seconds since the item or its request was looked at."""
    at = record.facts.looked_at
    return (now - datetime.fromisoformat(at)).total_seconds() if at else LONGEST_WAIT


def wait_seconds(record: ItemRecord, now: datetime, poll: float) -> float:
    """Return the seconds between two looks at the item or its request. They grow while nothing changes."""
    waits = record.shown.state == "waiting"
    if not poll or (waits and record.key.source == "files"):  # a look at a file costs no call
        return 0.0
    age = (now - datetime.fromisoformat(record.shown.updated_at)).total_seconds()
    return max(poll, min(age / 4, LONGEST_WAIT_FOR_ANSWER if waits else LONGEST_WAIT))


def fairly(records: tuple[ItemRecord, ...], most: int) -> tuple[ItemRecord, ...]:
    """Return the first `most` records of each repository."""
    seen: dict[str, int] = {}
    found: list[ItemRecord] = []
    for record in records:
        name = repository_of(record.key)
        seen[name] = seen.get(name, 0) + 1
        if seen[name] <= most:
            found.append(record)
    return tuple(found)


async def hear_waiting(parts: WorkerParts, source: ItemSource, record: ItemRecord) -> ForgeRefusal | None:
    """Resume a waiting item if a trusted person answered, or end it if it is not wanted. Raises ClaimLost."""
    looked = record.facts.model_copy(update={"looked_at": iso_now()})
    news = await source.news(record.key, record.facts.news_after, _head_of(record))
    if why := unwanted(news):
        merged = isinstance(news, ItemNews) and news.merged
        await _end(parts, source, record, "done" if merged else "stopped", why)
        return None
    parts.items.note_unclaimed(record, looked)
    if isinstance(news, ForgeRefusal):
        return news
    _leave(parts.items, record.item, news.said)
    if parts.items.messages.list_after(record.item, "person", record.facts.heard):
        parts.items.requeue(record.item)
    return None


async def _end(
    parts: WorkerParts, source: ItemSource, record: ItemRecord, state: ItemState, why: Text
) -> None:
    """End an item that waits, and say so where it is."""
    claim = parts.items.claim(record.item, parts.name, only=("waiting",))
    if claim is None:
        return
    item = ClaimedItem(parts, source, claim)
    told = Ending(
        "stopped",
        why=why,
        changes="on_branch" if record.has_pushed else "unknown",
        label=parts.config.work.labels.todo,
        asked_by=record.claim.author if record.claim is not None else "",
    )
    comment = PostComment(text=final_comment(told, parts.language))
    item.want(f"stopped-{claim.fence}", comment)
    item.want("state", SetState(state=state))
    await apply_open(item)
    parts.tell(parts.items.change(claim, state=state, error=why).shown)


async def hear_review(parts: WorkerParts, source: ItemSource, record: ItemRecord) -> ForgeRefusal | None:
    """Mark a request as ready when its checks passed, or begin a round if one is red or a trusted person asks for a
    change. Raises ClaimLost."""
    facts = record.facts
    head = facts.pushed or (record.claim.head_commit if record.claim is not None else "")
    news = await source.news(record.key, facts.news_after, head)
    looked = facts.model_copy(update={"looked_at": iso_now()})
    if unwanted(news):
        parts.items.note_unclaimed(record, looked.model_copy(update={"in_review": False}))
        return None
    if isinstance(news, ForgeRefusal):
        parts.items.note_unclaimed(record, looked)
        return news
    news = news.model_copy(update={"said": tuple(each for each in news.said if not _only_agrees(each))})
    _leave(parts.items, record.item, news.said)
    red = news.checks == "failed" and facts.red != head
    asked = parts.items.messages.list_after(record.item, "person", facts.heard)
    if red or asked:
        if facts.rounds >= parts.config.work.review_rounds:
            return await _no_more(parts, source, record)
        said = _feedback(news, parts.items.messages.unheard_ids(record.item, facts.heard), red=red)
        times = [each.time for each in news.said]
        after = facts.model_copy(
            update={
                "in_review": False,
                "rounds": facts.rounds + 1,
                "feedback": said,
                "verified": 0,
                "red": head if red else facts.red,
                "heard": asked[-1][0] if asked else facts.heard,
                "news_after": times[-1] if times else facts.news_after,
                "looked_at": "",
            }
        )
        parts.items.begin_round(record, after)
        return None
    if news.checks == "passed" and record.key.kind == "issue":
        return await _ready(parts, source, record, looked)
    parts.items.note_unclaimed(record, looked)
    return None


async def _ready(
    parts: WorkerParts, source: ItemSource, record: ItemRecord, looked: ItemFacts
) -> ForgeRefusal | None:
    """Have the request be no draft any more: once, whatever people make of it later."""
    operation = f"ready-{record.shown.request_url.rpartition('/')[2]}"
    known = parts.intents.find(record.item, operation)
    if known is not None and known.status in ("done", "refused"):
        parts.items.note_unclaimed(record, looked)
        return None
    return await _do(parts, source, record, operation, MarkReady(branch=record.shown.branch), looked)


async def _no_more(parts: WorkerParts, source: ItemSource, record: ItemRecord) -> ForgeRefusal | None:
    """Say that people have to go on with the request, and leave it to them."""
    label = code(parts.config.work.labels.todo)
    told = text("comment.no_more_rounds", count=record.facts.rounds, label=label)
    comment = PostComment(text=render(told, parts.language))
    left = record.facts.model_copy(update={"in_review": False})
    return await _do(parts, source, record, f"rounds-{record.run}", comment, left)


async def _do(
    parts: WorkerParts,
    source: ItemSource,
    record: ItemRecord,
    operation: str,
    intent: MarkReady | PostComment,
    after: ItemFacts,
) -> ForgeRefusal | None:
    """Carry out one intent for an item that keeps its state, then note `after`. Raises ClaimLost."""
    claim = parts.items.claim_unchanged(record, parts.name)
    if claim is None:
        return None
    parts.intents.want(claim, operation, intent)
    waits = (await apply_open(ClaimedItem(parts, source, claim))).waits
    if waits is None:
        parts.items.change(claim, facts=after)
    return waits


def _feedback(news: ItemNews, unheard: frozenset[str], *, red: bool) -> tuple[Feedback, ...]:
    """What is to be worked: what was said and not heard yet, and what red checks say."""
    found = [
        Feedback(name=_name(said), text=truncate_middle(said.text, MOST_COMMENT), trusted=said.trusted)
        for said in news.said
        if not said.trusted or said.id in unheard
    ]
    checks = [
        Feedback(name=check.name, text=truncate_middle(check.text, MOST_COMMENT))
        for check in (news.failed if red else ())
    ]
    # What somebody may ask for goes before what anybody says.
    return tuple(sorted([*checks, *found], key=lambda each: not each.trusted)[:MOST_FEEDBACK])


def _name(said: Said) -> str:
    place = place_of(said)
    return f"{said.author}, {place}" if place else said.author


# -- left open ------------------------------------------------------------------------------------


async def deliver_open(parts: WorkerParts) -> None:
    """Carry out the open intents of items that nobody works, those of one item after a pause that grows with each try."""
    for item in parts.intents.items_left_open(MOST_DELIVERED):
        if (record := parts.items.record(item)) is not None:
            await _ask(parts, record, _deliver)


async def _deliver(parts: WorkerParts, source: ItemSource, record: ItemRecord) -> ForgeRefusal | None:
    claim = parts.items.claim_unchanged(record, parts.name)
    if claim is None:
        return None
    waits = (await apply_open(ClaimedItem(parts, source, claim))).waits
    with parts.items.under_claim(claim) as now:
        tries = now.facts.tries if waits is not None else 0
        next_at = time_after(backoff_seconds(tries, waits.retry_after)) if waits is not None else ""
        parts.items.note(claim, tries=tries + (waits is not None))
        parts.items.change(claim, next_at=next_at)
    return waits
