"""Files that cannot be worked, or change under the worker's hands: each ends in one right comment or one line of the log."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daiku.domain.items.item import WorkItem
from daiku.domain.runs import RunResult
from daiku.guard.rules.redact import Redactor
from daiku.items import working
from daiku.items.processing import build_folder_name
from daiku.items.record import Claim
from daiku.items.working import Work, attempt_item, create_sources, process_items
from daiku.settings.config import Config
from daiku.texts.text import render
from tests.work.gitlabflow import FILES, LABEL, MEND

pytestmark = pytest.mark.slow


@dataclass
class Box:
    """A repository and a folder of items."""

    root: Path
    labels: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def config(self) -> Config:
        model = {"model": f"scripted/{self.root / 'play.jsonl'}"}
        return Config.model_validate({"llm": model, "work": {"labels": self.labels}})

    def git(self, *argv: str) -> str:
        person = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
        told = ["git", *person, *argv]
        done = subprocess.run(told, cwd=self.root / "repo", capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def item(self, body: str = "Mend add.", label: str = LABEL) -> Path:
        path = self.root / "items/mend.md"
        path.write_text(f"---\ntitle: Mend\nlabels: [{label}]\n---\n{body}\n", "utf-8")
        return path

    async def look(self) -> list[WorkItem]:
        told: list[WorkItem] = []
        home, folder = self.root / "home", self.root / "repo"
        work = Work(
            self.config, home, folder, {}, told.append, Redactor(()), only="files", items=self.root / "items"
        )
        await process_items(work, create_sources(work), asyncio.Event(), once=True)
        return told


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Box:
    found = Box(tmp_path)
    for name in ("repo", "items", "home"):
        (tmp_path / name).mkdir()
    for name, text in FILES.items():
        (tmp_path / "repo" / name).write_text(text, "utf-8")
    (tmp_path / "play.jsonl").write_text("".join(json.dumps(line) + "\n" for line in MEND), "utf-8")
    found.git("init", "-q", "-b", "main", ".")
    found.git("add", "-A")
    found.git("commit", "-qm", "first")

    async def start(_environ: Mapping[str, str], where: Path, claim: Claim, place: Path) -> RunResult | None:
        return await attempt_item(found.config, tmp_path / "home", where, claim, place, "en")

    monkeypatch.setattr(working, "_start", start)
    return found


def is_told_once(path: Path, words: str, state: str = "failed") -> None:
    """The file says once why it ended, and its state."""
    said = path.read_text("utf-8")
    assert said.count(words) == 1, said[:2000]
    assert f"state: {state}" in said


@pytest.mark.parametrize(
    ("body", "words"), [("", "is empty"), ("x" * 1_000_000, "characters")], ids=["empty", "a megabyte"]
)
async def test_a_text_that_cannot_be_worked_is_told_once(box: Box, body: str, words: str) -> None:
    path = box.item(body)
    assert [each.state for each in await box.look()] == ["failed"]
    is_told_once(path, words)
    assert await box.look() == []
    assert box.git("branch", "--list", "daiku/*") == ""


async def test_a_repository_without_a_commit_is_told_as_such_and_works_when_it_has_one(box: Box) -> None:
    shutil.rmtree(box.root / "repo/.git")
    box.git("init", "-q", "-b", "main", ".")
    path = box.item()
    (told,) = await box.look()
    assert (told.state, told.error.id) == ("failed", "git.no_commit")
    assert "まだコミットがありません" in render(told.error, "ja")
    is_told_once(path, "the repository has no commits yet")
    is_told_once(path, "The work has not started.")
    box.git("add", "-A")
    box.git("commit", "-qm", "first")
    box.item()
    assert [each.state for each in await box.look()] == ["done"]
    assert "return a + b" in box.git("show", "daiku/mend:calc.py")


async def test_a_branch_that_is_there_already_is_left_alone(box: Box) -> None:
    path = box.item()
    box.git("branch", "daiku/mend", "main")
    assert [(each.state, each.branch) for each in await box.look()] == [("done", "daiku/mend-2")]
    assert box.git("rev-parse", "daiku/mend") == box.git("rev-parse", "main")
    assert box.git("rev-parse", "daiku/mend-2") != box.git("rev-parse", "main")
    is_told_once(path, "The work is done", "done")


async def test_a_file_that_is_deleted_while_it_is_worked_is_told_to_the_log(
    box: Box, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = box.item()
    honest = working._start

    async def gone(environ: Mapping[str, str], where: Path, claim: Claim, place: Path) -> RunResult | None:
        path.unlink()
        return await honest(environ, where, claim, place)

    monkeypatch.setattr(working, "_start", gone)
    (told,) = await box.look()
    assert told.state in ("stopped", "failed")
    assert "gone" in told.error or "does not exist" in told.error
    assert not path.exists()
    assert await box.look() == []


async def test_the_tree_of_what_was_refused_stays_for_a_week(box: Box) -> None:
    box.item()
    box.git("branch", "daiku", "main")  # leaves no room for a branch below this name
    assert [each.state for each in await box.look()] == ["failed"]
    tree = box.root / "home/items" / build_folder_name("files:mend")
    await box.look()
    assert "return a + b" in (tree / "calc.py").read_text("utf-8")
    week_ago = time.time() - 8 * 86_400
    os.utime(tree, (week_ago, week_ago))
    await box.look()
    assert not tree.exists()


async def test_labels_may_have_any_letters(box: Box) -> None:
    box.labels = {"todo": "🤖 働いて", "processing": "🤖 …", "done": "🤖 済"}
    path = box.item(label="🤖 働いて")
    assert [each.state for each in await box.look()] == ["done"]
    assert "🤖 済" in path.read_text("utf-8")
    assert "return a + b" in box.git("show", "daiku/mend:calc.py")
