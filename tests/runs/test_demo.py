"""The built-in demonstration does its small job on the sample, and stops where a person says no."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest
from pydantic import JsonValue

from daiku.app import App, build
from daiku.domain.chunks import Chunk
from daiku.domain.config import SandboxSettings
from daiku.domain.events import ApprovalAsked, MessageEvent, PlanEvent, ToolResponse
from daiku.models.scripted import read_script
from daiku.models.table import LLMSettings
from daiku.run.request import RunRequest
from daiku.settings.config import Config
from daiku.workspace.disk import DiskWorkspace
from tests.conftest import ROOT
from tests.runs.playing import Watch

pytestmark = pytest.mark.slow
KANA = re.compile(r"[\u3040-\u30ff]")
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


def demo_app(folder: Path, locale: str = "en") -> App:
    shutil.copytree(ROOT / "tests/fixtures/sample", folder / "shop")
    config = Config(llm=LLMSettings(provider="scripted"), sandbox=SandboxSettings(mode="off"))
    workspace = DiskWorkspace((folder / "shop",))
    return build(config, workspace=workspace, home=folder / "home", locale=locale)


LANGUAGES = [
    ("Make the failing test pass", "en", "**Done: all four tests pass.**"),
    ("料金を直して", "en", "**完了: 4つのテストがすべて通りました。**"),
    ("fix it", "ja", "**完了: 4つのテストがすべて通りました。**"),
]


@pytest.mark.parametrize(
    ("said", "locale", "end"), LANGUAGES, ids=["English", "Japanese words", "Japanese editor"]
)
async def test_the_demonstration_mends_the_sample_by_its_plan_and_proves_it(
    tmp_path: Path, said: str, locale: str, end: str
) -> None:
    app = demo_app(tmp_path, locale)
    person = Person(app, refuses=-1)
    result = await app.runs.run(RunRequest(said), person)
    await app.aclose()
    assert result.text.startswith(end)
    assert tuple(person.asked) == ASKED
    responses = [c.event for c in person.chunks if isinstance(c.event, ToolResponse)]
    assert [r.tool for r in responses if not r.ok] == ["shell/run"], "only the test fails, and only once"
    plan = [c.event.plan for c in person.chunks if isinstance(c.event, PlanEvent)][-1]
    assert [step.status for step in plan.steps] == ["completed"] * 3
    written = [
        c.event.text
        for c in person.chunks
        if isinstance(c.event, MessageEvent) and c.event.role == "assistant"
    ]
    japanese = [
        bool(KANA.search(text.replace(said, "")))
        for text in (*written, plan.name, *(s.name for s in plan.steps))
    ]
    assert set(japanese) == {end.startswith("**完了")}, "one language, from the first word to the last"


async def test_a_demonstration_goes_on_in_the_language_that_it_began_in(tmp_path: Path) -> None:
    app = demo_app(tmp_path)
    result = await app.runs.run(RunRequest("料金を直して"), Person(app, refuses=-1))
    again = await app.runs.run(RunRequest("thank you", session=result.session_id), Person(app, refuses=-1))
    await app.aclose()
    assert KANA.search(again.text)


def test_both_languages_play_the_same_job() -> None:
    def calls(name: str) -> list[JsonValue]:
        lines = read_script(ROOT / "prompts" / name).lines
        return [[call.tool, _without_words(call.args)] for line in lines for call in line.calls]

    def moments(name: str) -> list[str]:
        lines = read_script(ROOT / "prompts" / name).lines
        return [line.when if line.when.isascii() and " it" not in line.when else "…" for line in lines]

    assert calls("demo.ja.jsonl") == calls("demo.jsonl")
    assert moments("demo.ja.jsonl") == moments("demo.jsonl")


def _without_words(value: JsonValue) -> JsonValue:
    match value:
        case dict():
            told = ("name", "goal", "summary", "description")
            return {key: "…" if key in told else _without_words(item) for key, item in value.items()}
        case list():
            return [_without_words(item) for item in value]
        case _:
            return value


@pytest.mark.parametrize("place", range(len(ASKED)), ids=["plan", "failing test", "edit", "passing test"])
async def test_the_demonstration_stops_at_what_is_rejected(tmp_path: Path, place: int) -> None:
    app = demo_app(tmp_path)
    person = Person(app, refuses=place)
    result = await app.runs.run(RunRequest("Make the failing test pass"), person)
    await app.aclose()
    assert tuple(person.asked) == ASKED[: place + 1]
    assert result.text.startswith("You rejected a step")
