"""A home with one item that a scripted model works in this process: what the tests of context files share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daiku.app import App
from daiku.domain.items.forge import FoundItem, ItemText
from daiku.domain.items.item import ItemKey
from daiku.domain.runs import RunResult
from daiku.items.attempt import Attempt
from daiku.items.contexts.files import ContextFiles
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.record import Claim, ItemRecord
from tests.runs.playing import make_app

Json = dict[str, Any]
KEY = ItemKey(source="gitlab", kind="request", repository="group/sub/name", name="3")
ITEM = str(KEY)


def write(path: str, content: str = "a\n") -> Json:
    return {"tool": "files/write", "args": {"path": path, "content": content}}


@dataclass(frozen=True, slots=True)
class Desk:
    """One process that works the item of `home`: what it has open."""

    app: App
    home: Path
    items: ItemStore
    intents: IntentStore
    files: ContextFiles

    @property
    def record(self) -> ItemRecord:
        found = self.items.record(ITEM)
        assert found is not None
        return found

    @property
    def uuid(self) -> str:
        return self.record.facts.uuid

    def claim(self) -> Claim:
        claim = self.items.claim(ITEM, "worker-1", only=("queued", "processing"))
        assert claim is not None
        told = ItemText(key=KEY, title="Mend it", body="Mend.", author="ann", body_trusted=True)
        self.items.change(claim, claim=told)
        return claim

    def attempt(self, claim: Claim) -> Attempt:
        return Attempt(self.app.runs, self.items, self.intents, claim, self.app.config, "en")

    async def work(self, claim: Claim | None = None) -> RunResult:
        """Work the item to its end, a pause or a question, as the process of an attempt does."""
        attempt = self.attempt(claim or self.claim())
        working = asyncio.create_task(attempt.work())
        return await self.files.mirror_until_done(ITEM, working, lambda: attempt.model_prompt)

    def folder(self, shelf: str) -> Path:
        return self.home / "contexts" / shelf / self.uuid

    def lines(self, shelf: str, name: str) -> list[Json]:
        return [json.loads(line) for line in (self.folder(shelf) / name).read_text("utf-8").splitlines()]


@asynccontextmanager
async def desk(folder: Path, *script: Json) -> AsyncGenerator[Desk]:
    """A process over `folder`, whose item is queued at the first time."""
    (folder / "project").mkdir(exist_ok=True)
    app = make_app(folder, *script)
    try:
        items = ItemStore(app.journal.database)
        items.add(FoundItem(key=KEY, title="Mend it", labelled_at="1"))
        intents = IntentStore(app.journal.database, items)
        files = ContextFiles(folder / "home", items, intents, app.journal)
        yield Desk(app, folder / "home", items, intents, files)
    finally:
        await app.aclose()
