"""A workspace in which a model looks at runs that have ended, and what it may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from daiku.app import App, AppParts, build
from daiku.dataclass import replace
from daiku.domain.chunks import Chunk
from daiku.domain.config import ApprovalSettings, SandboxSettings
from daiku.domain.held import Lesson
from daiku.domain.messages import ModelRequest
from daiku.domain.playbook import Delta
from daiku.models.table import LLMSettings
from daiku.playbook.repository import open_playbooks
from daiku.playbook.store import PlaybookStore
from daiku.run.request import RunRequest
from daiku.run.rules.outside import FoundLesson
from daiku.settings.config import AgentsSettings, Config, PlaybookSettings
from daiku.testing import FakeLLM, FakeReply
from daiku.workspace.disk import DiskWorkspace
from tests.runs.playing import Watch, shell

FAILED = shell("false")
"""A command that fails, after which nothing passes: the rules learn nothing of it."""
INSIGHT = "Start the database before the tests."


def reflected(*insights: str, **more: Any) -> dict[str, Any]:
    return {
        "tool": "report/reflection",
        "args": {"reasoning": "It failed.", "insights": list(insights), **more},
    }


def curated(*operations: dict[str, Any]) -> dict[str, Any]:
    return {"tool": "report/curation", "args": {"reasoning": "New.", "operations": list(operations)}}


def added(content: str) -> dict[str, Any]:
    return {"type": "ADD", "section": "environment", "content": content}


class Place:
    """A workspace in a home, opened by one app after the other; `llm` is the model of the last one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "project").mkdir(parents=True)
        self.watch = Watch()
        self.trusted = True
        self.llm_settings: dict[str, Any] = {}
        self.agents: dict[str, Any] = {}
        self.lessons: tuple[Lesson, ...] = ()

    def app(self, *replies: FakeReply, **playbook: Any) -> App:
        self.llm = FakeLLM(*replies)
        config = Config(
            llm=LLMSettings.model_validate(self.llm_settings),
            agents=AgentsSettings.model_validate(self.agents),
            approvals=ApprovalSettings.model_validate({"command": "allow", "edit": "allow"}),
            sandbox=SandboxSettings(mode="off"),
            playbook=PlaybookSettings.model_validate(playbook),
        )
        made = build(
            config,
            workspace=DiskWorkspace((self.folder / "project",)),
            home=self.folder / "home",
            trusted=self.trusted,
            parts=AppParts(model=self.llm, plugins=False, environ={}),
        )
        made.runs.services = made.runs.learner.services = replace(made.runs.services, playbooks=self)
        return made

    def say(self, *replies: FakeReply) -> None:
        """What the model says from now on."""
        self.llm.replies = (*[""] * len(self.llm.requests), *replies)

    async def recall(
        self, question: str, *, personal: bool = True, window: int = 0, working: bool = False
    ) -> tuple[Lesson, ...]:
        return self.lessons

    async def search(self, question: str, most: int = 0, *, personal: bool = True) -> tuple[FoundLesson, ...]:
        return tuple(FoundLesson(each, "tool_usage", 1.0) for each in self.lessons)

    def teach(self, app: App, content: str) -> Lesson:
        """A lesson that is in the playbook, and that runs are told."""
        made = store_of(app).apply(Delta(id="", type="add", section="tool_usage", content=content))
        assert isinstance(made, Delta), made
        lesson = Lesson(id=made.bullet_id, version=1, text=content)
        self.lessons = (*self.lessons, lesson)
        return lesson

    async def worked(self, app: App, said: str = "make the tests pass") -> list[Chunk]:
        """The session after a run and what was learnt from it."""
        result = await app.runs.run(RunRequest(said, approvals="none", attended=False), self.watch)
        await app.runs.learner.settle()
        return app.journal.chunks(result.session_id)


def store_of(app: App) -> PlaybookStore:
    assert app.stores is not None
    store = open_playbooks(app.stores.database, app.workspace.roots).repository
    assert store is not None
    return store


def asked_by(place: Place) -> list[ModelRequest]:
    """What the model was asked about runs."""
    return [each for each in place.llm.requests if any("report/" in tool.name for tool in each.tools)]
