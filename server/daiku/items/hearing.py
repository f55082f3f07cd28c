"""Comments, reviews and checks of items: they steer or stop a run, resume an item, or start a review round."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeAlias

from daiku.domain.chunks import iso_now
from daiku.domain.items.forge import ForgeRefusal, ItemNews, RefusalKind, Said
from daiku.domain.items.item import ItemState, MarkReady, PostComment, SetState
from daiku.items.applying import apply_open
from daiku.items.items import ItemStore
from daiku.items.parts import ClaimedItem, WorkerParts
from daiku.items.prompt import MOST_COMMENT
from daiku.items.record import ClaimLost, Feedback, ItemFacts, ItemRecord, get_repository_name
from daiku.items.retrying import compute_backoff, format_time_after, log_outage
from daiku.items.rules.assent import is_only_agreement
from daiku.items.rules.comments import Ending, render_ending
from daiku.items.rules.harmless import to_inline_code
from daiku.items.source import ItemSource
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import NO_TEXT, Text, render, text

logger = logging.getLogger(__name__)
Hear: TypeAlias = Callable[[WorkerParts, ItemSource, ItemRecord], Awaitable[ForgeRefusal | None]]
OVER_THERE: frozenset[RefusalKind] = frozenset({"gone", "moved", "closed"})
"""Refusals that mean that there is nothing to process any more."""
MOST_REVIEW_POLLS = 1
MOST_REVIEW_POLLS_ONCE = 5
"""Maximum number of requests per repository that one poll reads: with a next poll, and without one."""
LONGEST_WAIT = 6 * 3600.0
"""Maximum seconds between two polls of a request without changes."""
LONGEST_WAIT_FOR_ANSWER = 600.0
"""Maximum seconds between two polls of an item that waits for an answer."""
MOST_FEEDBACK = 30
MOST_DELIVERED = 20
"""Maximum number of items whose open intents one poll applies."""


# -- while an attempt runs ------------------------------------------------------------------------


async def poll_while_running(item: ClaimedItem) -> None:
    """Pass trusted comments on to the running item, and cancel it when it is no longer wanted."""
    seconds = item.parts.config.work.poll_seconds
    wait = 0.0
    try:
        with log_outage(item.claim.item):
            # A resumed item may have been canceled meanwhile; one that was just read was not.
            wait = 0.0 if item.record.run else seconds
        while True:
            await asyncio.sleep(wait)
            pause: float | None = 0.0
            with log_outage(item.claim.item):
                pause = await _poll_once(item)
            if pause is None:
                return
            wait = max(seconds, pause)
    except ClaimLost as error:
        logger.info("%s: %s", item.claim.item, error.failure.message)


async def _poll_once(item: ClaimedItem) -> float | None:
    """Poll once.

    Return the seconds to wait before the next poll; None if nothing more can come. Raises ClaimLost.
    """
    record, items = item.record, item.parts.items
    if record.fence != item.claim.fence:
        return None
    news = await item.source.news(record.key, record.facts.news_after, _get_pushed_head(record))
    if why := explain_unwanted(news):
        items.change(item.claim, error=why)
        # A separate write: the attempt changes facts of the item at the same time.
        item.note(merged=isinstance(news, ItemNews) and news.merged)
        items.signal(item.claim, "cancel")
        return None
    if isinstance(news, ForgeRefusal):
        return news.retry_after
    _record_comments(items, record.item, news.said)
    return 0.0


def explain_unwanted(news: ItemNews | ForgeRefusal) -> Text:
    """Return why the item need not be processed any more; empty if it is wanted, or that is unknown."""
    if isinstance(news, ForgeRefusal):
        return news.message if news.kind in OVER_THERE else NO_TEXT
    if news.merged:
        return text("work.merged")
    if news.closed:
        return text("work.request_closed")
    return NO_TEXT if news.wanted else news.why


def _get_pushed_head(record: ItemRecord) -> str:
    """Return the commit that identifies the item's request, where people may also comment.

    It is empty before the first round of an order: commits of an earlier order say nothing about this one.
    """
    return record.facts.pushed if record.facts.rounds else ""


def _record_comments(items: ItemStore, item: str, comments: tuple[Said, ...]) -> None:
    """Record the comments of trusted people for the item's agent."""
    for comment in comments:
        if comment.trusted and comment.text.strip():
            items.messages.add(item, format_comment(comment), comment.id)


def _is_agreement(comment: Said) -> bool:
    return not comment.path and is_only_agreement(comment.text)


def format_comment(comment: Said) -> str:
    """Return the comment's text, after its place if it has one."""
    return f"{format_place(comment)}\n{comment.text}" if comment.path else comment.text


def format_place(comment: Said) -> str:
    """Return the place of a review's comment as `path:line`; empty for any other comment."""
    return f"{comment.path}:{comment.line}" if comment.path and comment.line else comment.path


# -- waiting, and in review --------------------------------------------------------------------------


async def poll_idle_items(parts: WorkerParts, *, once: bool) -> None:
    """Poll items without a worker, less often while nothing changes (`once`: always)."""
    now = datetime.now(UTC)
    poll = 0.0 if once else parts.config.work.poll_seconds

    def is_due(record: ItemRecord) -> bool:
        return get_seconds_since_poll(record, now) >= compute_poll_interval(record, now, poll)

    waiting = filter(is_due, parts.items.records("waiting"))
    reviewed = tuple(filter(is_due, parts.items.in_review()))
    for record in (
        *waiting,
        *limit_per_repository(reviewed, MOST_REVIEW_POLLS_ONCE if once else MOST_REVIEW_POLLS),
    ):
        await _poll(parts, record, poll_waiting if record.shown.state == "waiting" else poll_review)


async def _poll(parts: WorkerParts, record: ItemRecord, poll: Hear) -> None:
    """Poll the item's source, unless it requested a pause. Log a lost claim or a database error."""
    source = parts.source_of(record.key)
    if source is None or not parts.may_ask(record.key.source):
        return
    try:
        with log_outage(record.item):  # the next poll retries
            parts.pause_source(record.key.source, await poll(parts, source, record))
    except ClaimLost as error:
        logger.info("%s: %s", record.item, error.failure.message)


def get_seconds_since_poll(record: ItemRecord, now: datetime) -> float:
    """Return the seconds since the item or its request was polled."""
    at = record.facts.looked_at
    return (now - datetime.fromisoformat(at)).total_seconds() if at else LONGEST_WAIT


def compute_poll_interval(record: ItemRecord, now: datetime, poll: float) -> float:
    """Return the seconds between two polls of the item or its request. They grow while nothing changes."""
    is_waiting = record.shown.state == "waiting"
    if not poll or (is_waiting and record.key.source == "files"):  # reading a file costs no API call
        return 0.0
    age = (now - datetime.fromisoformat(record.shown.updated_at)).total_seconds()
    return max(poll, min(age / 4, LONGEST_WAIT_FOR_ANSWER if is_waiting else LONGEST_WAIT))


def limit_per_repository(records: tuple[ItemRecord, ...], most: int) -> tuple[ItemRecord, ...]:
    """Return the first `most` records of each repository."""
    counts: dict[str, int] = {}
    limited: list[ItemRecord] = []
    for record in records:
        name = get_repository_name(record.key)
        counts[name] = counts.get(name, 0) + 1
        if counts[name] <= most:
            limited.append(record)
    return tuple(limited)


async def poll_waiting(parts: WorkerParts, source: ItemSource, record: ItemRecord) -> ForgeRefusal | None:
    """Resume a waiting item if a trusted person answered, or end it if it is not wanted. Raises ClaimLost."""
    facts_polled = record.facts.model_copy(update={"looked_at": iso_now()})
    news = await source.news(record.key, record.facts.news_after, _get_pushed_head(record))
    if why := explain_unwanted(news):
        merged = isinstance(news, ItemNews) and news.merged
        await _end_waiting(parts, source, record, "done" if merged else "stopped", why)
        return None
    parts.items.note_unclaimed(record, facts_polled)
    if isinstance(news, ForgeRefusal):
        return news
    _record_comments(parts.items, record.item, news.said)
    if parts.items.messages.list_after(record.item, "person", record.facts.heard):
        parts.items.requeue(record.item)
    return None


async def _end_waiting(
    parts: WorkerParts, source: ItemSource, record: ItemRecord, state: ItemState, why: Text
) -> None:
    """End a waiting item, and say so in a comment."""
    claim = parts.items.claim(record.item, parts.name, only=("waiting",))
    if claim is None:
        return
    item = ClaimedItem(parts, source, claim)
    ending = Ending(
        "stopped",
        why=why,
        changes="on_branch" if record.has_pushed else "unknown",
        label=parts.config.work.labels.todo,
        asked_by=record.claim.author if record.claim is not None else "",
    )
    comment = PostComment(text=render_ending(ending, parts.language))
    item.want(f"stopped-{claim.fence}", comment)
    item.want("state", SetState(state=state))
    await apply_open(item)
    parts.tell(parts.items.change(claim, state=state, error=why).shown)


async def poll_review(parts: WorkerParts, source: ItemSource, record: ItemRecord) -> ForgeRefusal | None:
    """Mark a request as ready, or start a round for failed checks or a change request.

    Raises ClaimLost.
    """
    facts = record.facts
    head = facts.pushed or (record.claim.head_commit if record.claim is not None else "")
    news = await source.news(record.key, facts.news_after, head)
    facts_polled = facts.model_copy(update={"looked_at": iso_now()})
    if explain_unwanted(news):
        parts.items.note_unclaimed(record, facts_polled.model_copy(update={"in_review": False}))
        return None
    if isinstance(news, ForgeRefusal):
        parts.items.note_unclaimed(record, facts_polled)
        return news
    news = news.model_copy(
        update={"said": tuple(comment for comment in news.said if not _is_agreement(comment))}
    )
    _record_comments(parts.items, record.item, news.said)
    red = news.checks == "failed" and facts.red != head
    messages = parts.items.messages.list_after(record.item, "person", facts.heard)
    if red or messages:
        if facts.rounds >= parts.config.work.review_rounds:
            return await _end_reviews(parts, source, record)
        feedback = _collect_feedback(
            news, parts.items.messages.unheard_ids(record.item, facts.heard), red=red
        )
        comment_times = [comment.time for comment in news.said]
        after = facts.model_copy(
            update={
                "in_review": False,
                "rounds": facts.rounds + 1,
                "feedback": feedback,
                "verified": 0,
                "red": head if red else facts.red,
                "heard": messages[-1][0] if messages else facts.heard,
                "news_after": comment_times[-1] if comment_times else facts.news_after,
                "looked_at": "",
            }
        )
        parts.items.begin_round(record, after)
        return None
    if news.checks == "passed" and record.key.kind == "issue":
        return await _mark_ready(parts, source, record, facts_polled)
    parts.items.note_unclaimed(record, facts_polled)
    return None


async def _mark_ready(
    parts: WorkerParts, source: ItemSource, record: ItemRecord, facts_polled: ItemFacts
) -> ForgeRefusal | None:
    """Mark the request as ready for review, at most once, whatever people make of it later."""
    operation = f"ready-{record.shown.request_url.rpartition('/')[2]}"
    intent_record = parts.intents.find(record.item, operation)
    if intent_record is not None and intent_record.status in ("done", "refused"):
        parts.items.note_unclaimed(record, facts_polled)
        return None
    return await _apply_one(
        parts, source, record, operation, MarkReady(branch=record.shown.branch), facts_polled
    )


async def _end_reviews(parts: WorkerParts, source: ItemSource, record: ItemRecord) -> ForgeRefusal | None:
    """Comment that people must continue with the request, and stop polling it."""
    label = to_inline_code(parts.config.work.labels.todo)
    comment_body = text("comment.no_more_rounds", count=record.facts.rounds, label=label)
    comment = PostComment(text=render(comment_body, parts.language))
    ended = record.facts.model_copy(update={"in_review": False})
    return await _apply_one(parts, source, record, f"rounds-{record.run}", comment, ended)


async def _apply_one(
    parts: WorkerParts,
    source: ItemSource,
    record: ItemRecord,
    operation: str,
    intent: MarkReady | PostComment,
    after: ItemFacts,
) -> ForgeRefusal | None:
    """Apply one intent for an item that keeps its state, then set its facts to `after`. Raises ClaimLost."""
    claim = parts.items.claim_unchanged(record, parts.name)
    if claim is None:
        return None
    parts.intents.want(claim, operation, intent)
    transient = (await apply_open(ClaimedItem(parts, source, claim))).transient
    if transient is None:
        parts.items.change(claim, facts=after)
    return transient


def _collect_feedback(news: ItemNews, unheard: frozenset[str], *, red: bool) -> tuple[Feedback, ...]:
    """Return the feedback for the next round: unheard comments, and failed checks if `red`."""
    comments = [
        Feedback(
            name=_name_comment(comment),
            text=truncate_middle(comment.text, MOST_COMMENT),
            trusted=comment.trusted,
        )
        for comment in news.said
        if not comment.trusted or comment.id in unheard
    ]
    checks = [
        Feedback(name=check.name, text=truncate_middle(check.text, MOST_COMMENT))
        for check in (news.failed if red else ())
    ]
    # Trusted feedback comes first.
    return tuple(sorted([*checks, *comments], key=lambda feedback: not feedback.trusted)[:MOST_FEEDBACK])


def _name_comment(comment: Said) -> str:
    place = format_place(comment)
    return f"{comment.author}, {place}" if place else comment.author


# -- open intents ---------------------------------------------------------------------------------


async def apply_left_open(parts: WorkerParts) -> None:
    """Apply the open intents of items without a worker; each item has its own backoff."""
    for item in parts.intents.list_items_left_open(MOST_DELIVERED):
        if (record := parts.items.record(item)) is not None:
            await _poll(parts, record, _apply_left_open)


async def _apply_left_open(parts: WorkerParts, source: ItemSource, record: ItemRecord) -> ForgeRefusal | None:
    claim = parts.items.claim_unchanged(record, parts.name)
    if claim is None:
        return None
    transient = (await apply_open(ClaimedItem(parts, source, claim))).transient
    with parts.items.under_claim(claim) as now:
        tries = now.facts.tries if transient is not None else 0
        next_at = (
            format_time_after(compute_backoff(tries, transient.retry_after)) if transient is not None else ""
        )
        parts.items.note(claim, tries=tries + (transient is not None))
        parts.items.change(claim, next_at=next_at)
    return transient
