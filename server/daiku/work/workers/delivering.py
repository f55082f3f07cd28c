"""Carries out what is left open of items that nobody works: a last comment or label that the forge refused for a while."""

from __future__ import annotations

import logging

from daiku.domain.errors import DaikuError
from daiku.work.applying import Outside, apply_open
from daiku.work.hearing import Hearing
from daiku.work.record import ItemRecord
from daiku.work.retrying import backoff_seconds, time_after
from daiku.work.source import Source

logger = logging.getLogger(__name__)
MOST = 20
"""Items of one sweep."""


async def deliver_open(hearing: Hearing) -> None:
    """Carry out the open intents of items that nobody works, those of one item after a pause that grows with each try."""
    for item in hearing.intents.items_left_open(MOST):
        record = hearing.items.record(item)
        source = hearing.sources.get(record.key.source) if record is not None else None
        if record is None or source is None or not source.takes(record.key):
            continue
        if hearing.may_ask(record.key.source):
            try:
                await _deliver(hearing, source, record)
            except DaikuError as lost:
                logger.info("%s: %s", item, lost.failure.message)


async def _deliver(hearing: Hearing, source: Source, record: ItemRecord) -> None:
    claim = hearing.items.hold(record, hearing.name)
    if claim is None:
        return
    waits = (await apply_open(Outside(hearing.items, hearing.intents, source, claim))).waits
    hearing.leave_alone(record.key.source, waits)
    with hearing.items.holding(claim) as now:
        tries = now.facts.tries if waits is not None else 0
        next_at = time_after(backoff_seconds(tries, waits.retry_after)) if waits is not None else ""
        hearing.items.note(claim, tries=tries + (waits is not None))
        hearing.items.change(claim, next_at=next_at)
