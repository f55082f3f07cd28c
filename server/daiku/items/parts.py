"""The dependencies of a worker, and a claimed item with its source and checkout."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from daiku.dataclass import dataclass, field
from daiku.domain.items.forge import ForgeRefusal, ItemText
from daiku.domain.items.item import Intent, ItemKey, SourceName, WorkItem
from daiku.domain.runs import RunResult
from daiku.items.contexts.files import ContextFiles
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.kept.pushing import ItemCheckout
from daiku.items.record import Claim, ItemRecord
from daiku.items.retrying import ModelBreaker
from daiku.items.source import ItemSource
from daiku.settings.config import Config
from daiku.team.rules.proof.evidence import Evidence
from daiku.texts.text import Text

Start = Callable[[Claim, Path], Awaitable[RunResult | None]]
"""Starts the process of an attempt in a work tree and waits for its end; None if it ended without a result."""


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """The dependencies of one worker.

    `name`: its lock file below `home` is held while it lives. `tell` is called with every changed item.
    `evidence` and `allowed` return what a session did, and the paths that the user let it change. `ready` is
    called before the first item and raises UsageError if none can be processed. `warn` is called with
    problems of the worker itself. `stopping`: no new items; the current ones are paused at their next step
    and given back.
    """

    config: Config
    home: Path
    items: ItemStore
    intents: IntentStore
    sources: Mapping[SourceName, ItemSource]
    start: Start
    tell: Callable[[WorkItem], None]
    name: str
    evidence: Callable[[str], Evidence]
    contexts: ContextFiles
    allowed: Callable[[str], frozenset[str]]
    ready: Callable[[], object] = bool
    warn: Callable[[Text], object] = bool
    language: str = "en"
    concurrency: int = 1
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    breaker: ModelBreaker = field(default_factory=ModelBreaker)
    _quiet: dict[SourceName, float] = field(default_factory=dict[SourceName, float], init=False)
    """End of each source's requested pause, in monotonic seconds."""

    def source_of(self, key: ItemKey) -> ItemSource | None:
        """Return the source that takes the item; None if this worker has none."""
        source = self.sources.get(key.source)
        return source if source is not None and source.takes(key) else None

    def may_ask(self, source: SourceName) -> bool:
        """Return True if the source may be asked now."""
        return time.monotonic() >= self._quiet.get(source, 0.0)

    def pause_source(self, source: SourceName, refused: ForgeRefusal | None) -> None:
        """Do not ask the source again before the end of the pause that it requested."""
        if refused is not None and refused.retry_after:
            self._quiet[source] = time.monotonic() + refused.retry_after


@dataclass(frozen=True, slots=True)
class ClaimedItem:
    """An item that this worker has claimed. `git` is None until its repository is checked out."""

    parts: WorkerParts
    source: ItemSource
    claim: Claim
    git: ItemCheckout | None = None

    @property
    def record(self) -> ItemRecord:
        return self.parts.items.claimed(self.claim)

    @property
    def text(self) -> ItemText:
        """The item's text at its claim."""
        text = self.record.claim
        assert text is not None, "an item is read before it is worked"
        return text

    @property
    def place(self) -> ItemCheckout:
        """Its checkout."""
        assert self.git is not None, "git's turn comes when the repository is there"
        return self.git

    def want(self, operation: str, intent: Intent) -> None:
        """Record an intent. Raises ClaimLost."""
        self.parts.intents.want(self.claim, operation, intent)

    def note(self, **facts: object) -> ItemRecord:
        """Change these facts of the item. Raises ClaimLost."""
        return self.parts.items.note(self.claim, **facts)
