"""The dependencies of a worker whose items are in memory: what a test does not name is never used."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from daiku.domain.items.item import SourceName
from daiku.domain.runs import RunResult
from daiku.items.contexts.files import ContextFiles
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.parts import ClaimedItem, WorkerParts
from daiku.items.record import Claim
from daiku.settings.config import Config
from daiku.team.rules.proof.evidence import Evidence


async def never(claim: Claim, place: Path) -> RunResult | None:
    raise AssertionError("no attempt is begun")


class NoJournal:
    def chunks(self, session: str, after_seq: int = 0) -> list[Any]:
        raise AssertionError("no context file is written")


def parts_of(items: ItemStore, sources: Mapping[SourceName, Any], **more: Any) -> WorkerParts:
    home, intents = Path("/nowhere"), IntentStore(items.database, items)
    given: dict[str, Any] = {
        "config": Config(),
        "home": home,
        "intents": intents,
        "start": never,
        "tell": lambda _: None,
        "name": "worker-1",
        "evidence": lambda _: Evidence(),
        "allowed": lambda _: frozenset(),
        "contexts": ContextFiles(home, items, intents, NoJournal()),
    }
    return WorkerParts(items=items, sources=sources, **(given | more))


def claimed_item(items: ItemStore, source: Any, claim: Claim, *, poll_seconds: float = 60) -> ClaimedItem:
    config = Config()
    work = config.work.model_copy(update={"poll_seconds": poll_seconds})
    return ClaimedItem(parts_of(items, {}, config=config.model_copy(update={"work": work})), source, claim)
