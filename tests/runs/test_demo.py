"""The built-in demonstration does its small job on the sample, and stops where a person says no."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from daiku.app import App, build
from daiku.domain.config import Config, LLMSettings, SandboxSettings
from daiku.domain.events import ApprovalAsked, Chunk, PlanChanged, ToolResponded
from daiku.runs import RunRequest
from daiku.tools.disk import DiskWorkspace
from tests.conftest import ROOT
from tests.runs.playing import Watch

pytestmark = pytest.mark.slow
ASKED = ("plan/approve", "shell/run", "files/edit", "shell/run")


class Person(Watch):
    """Allows what is asked, but for the question of this number."""

    def __init__(self, app: App, refuses: int) -> None:
        super().__init__()
        self.asked: list[str] = []
        self._app, self._refuses = app, refuses
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, chunk: Chunk) -> None:
        super().__call__(chunk)
        if isinstance(chunk.event, ApprovalAsked):
            decision = "reject_once" if len(self.asked) == self._refuses else "allow_once"
            self.asked.append(chunk.event.tool)
            word = self._app.runs.approve(chunk.run, chunk.event.approval_id, decision)
            self._tasks.add(asyncio.ensure_future(word))


def demo_app(folder: Path) -> App:
    shutil.copytree(ROOT / "tests/fixtures/sample", folder / "shop")
    config = Config(llm=LLMSettings(provider="scripted"), sandbox=SandboxSettings(mode="off"))
    return build(config, workspace=DiskWorkspace((folder / "shop",)), home=folder / "home")


async def test_the_demonstration_mends_the_sample_by_its_plan_and_proves_it(tmp_path: Path) -> None:
    app = demo_app(tmp_path)
    person = Person(app, refuses=-1)
    result = await app.runs.run(RunRequest("Make the failing test pass"), person)
    await app.aclose()
    assert result.text.startswith("**Done: all four tests pass.**")
    assert tuple(person.asked) == ASKED
    responses = [c.event for c in person.chunks if isinstance(c.event, ToolResponded)]
    assert [r.tool for r in responses if not r.ok] == ["shell/run"], "only the test fails, and only once"
    plan = [c.event.plan for c in person.chunks if isinstance(c.event, PlanChanged)][-1]
    assert [step.status for step in plan.steps] == ["completed"] * 3


@pytest.mark.parametrize("place", range(len(ASKED)), ids=["plan", "failing test", "edit", "passing test"])
async def test_the_demonstration_stops_at_what_is_rejected(tmp_path: Path, place: int) -> None:
    app = demo_app(tmp_path)
    person = Person(app, refuses=place)
    result = await app.runs.run(RunRequest("Make the failing test pass"), person)
    await app.aclose()
    assert tuple(person.asked) == ASKED[: place + 1]
    assert result.text.startswith("You rejected a step")
