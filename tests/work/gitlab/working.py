"""A worker over the GitLab of a test: real git, a script as the model, everything in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from daiku.domain.items.item import ItemKey, WorkItem
from daiku.domain.runs import RunResult
from daiku.items.contexts.files import ContextFiles
from daiku.items.gitlab.source import GitLabSource
from daiku.items.intents import IntentStore
from daiku.items.items import ItemStore
from daiku.items.parts import Start, WorkerParts
from daiku.items.record import Claim
from daiku.items.source import CloneAccess
from daiku.items.workers.worker import Worker
from daiku.items.working import attempt_item
from daiku.run.recorded.history import evidence_of_session
from daiku.settings.config import Config
from daiku.trace.stores import Stores, open_stores
from tests.work.gitlab.sources import LABELS, TODO
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.state import Project, Thread

Line = dict[str, Any]
BRANCH = "daiku/1-mend-add"
WRONG = "def add(a, b):\n    return a - b\n"


def written(name: str, content: str, **more: Any) -> Line:
    """A reply that writes a file."""
    args = {"path": name, "content": content}
    return {"text": f"I write {name}.", "calls": [{"tool": "files/write", "args": args}], **more}


class HereSource(GitLabSource):
    """GitLab, whose repositories are reached by their folders."""

    def __init__(self, project: Project, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._project = project

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess:
        return CloneAccess(url=str(self._project.repository), local=True)


@dataclass
class Shop:
    """The project group/name with one labelled issue, and whatever works it. `told` are the states that were told."""

    yard: GitLabYard
    folder: Path
    config: Config
    stores: Stores
    source: HereSource
    project: Project
    issue: Thread
    told: list[str] = field(default_factory=list[str])

    @property
    def item(self) -> WorkItem:
        return self.items.find("gitlab:group/name#1")

    @property
    def items(self) -> ItemStore:
        return ItemStore(self.stores.database)

    @property
    def request(self) -> Thread:
        return self.project.requests[1]

    @property
    def head(self) -> str:
        return self.project.commit_of(BRANCH)

    def script(self, *lines: Line) -> None:
        (self.folder / "play.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    def worker(self, start: Start | None = None) -> Worker:
        home, intents = self.folder / "home", IntentStore(self.stores.database, self.items)
        parts = WorkerParts(
            config=self.config,
            home=home,
            items=self.items,
            intents=intents,
            contexts=ContextFiles(home, self.items, intents, self.stores.journal),
            sources={"gitlab": self.source},
            start=start or self.attempt,
            tell=lambda item: self.told.append(item.state),
            name="worker-1",
            evidence=partial(evidence_of_session, self.stores.journal),
            allowed=lambda session: frozenset(),
        )
        return Worker(parts)

    async def attempt(self, claim: Claim, place: Path) -> RunResult | None:
        return await attempt_item(self.config, self.folder / "home", self.folder, claim, place, "en")

    async def once(self) -> list[str]:
        """Work what there is; the states that were told meanwhile."""
        self.told.clear()
        await asyncio.wait_for(self.worker().run_once(), 60)
        return list(self.told)

    def checks(self, status: str, **logs: str) -> None:
        """The pipeline of what was pushed last ends so; of failed jobs the logs."""
        self.yard.forge.state.pipeline(self.project, self.head, status, logs)

    def say(self, who: str, said: str, place: Thread | None = None) -> None:
        """A comment; without `place` at the issue."""
        ids = {each["username"]: number for number, each in self.yard.forge.state.users.items()}
        self.yard.forge.state.note(place or self.issue, ids[who], said)

    def ours(self, thread: Thread | None = None) -> list[str]:
        """What we posted."""
        return [note["body"] for note in (thread or self.issue).notes if "daiku:" in note["body"]]

    def prompts(self) -> list[str]:
        """What each run of the item was asked."""
        chunks = self.stores.journal.chunks(self.item.session_id)
        return [getattr(c.event, "prompt", "") for c in chunks if c.event.type == "run_started"]

    def spoken(self) -> list[str]:
        """What persons said to a run while it was under way."""
        chunks = self.stores.journal.chunks(self.item.session_id)
        return [str(getattr(c.event, "text", "")) for c in chunks if getattr(c.event, "agent", "") == "user"]


@asynccontextmanager
async def shop_of(
    yard: GitLabYard, folder: Path, *, bot: str = "", protocol: str = "native", **work: Any
) -> AsyncGenerator[Shop]:
    """A shop; `work` are settings of work items. Where `bot` is named the issue is assigned to it."""
    (folder / "home").mkdir()
    config = Config.model_validate(
        {
            "llm": {"model": f"scripted/{folder / 'play.jsonl'}", "scripted": {"tool_protocol": protocol}},
            "work": {"poll_seconds": 1, **work},
            "gitlab": {"api_url": yard.api_url, "projects": ["group/name"], "bot": bot},
            "sandbox": {"network": False},
        }
    )
    project = yard.project("group/name", {"calc.py": WRONG})
    state = yard.forge.state
    issue = state.open(project, "issue", yard.dev, {"title": "Mend add", "description": "add must add."})
    state.label(issue, yard.dev, [TODO])
    issue.row["assignees"] = [state.shown(yard.bot)] if bot else []
    stores = open_stores(config.storage.place(folder / "home"), str)
    source = HereSource(project, config.gitlab, SecretStr("glpat-bot"), LABELS)
    try:
        yield Shop(yard, folder, config, stores, source, project, issue)
    finally:
        await source.aclose()
        stores.close()
