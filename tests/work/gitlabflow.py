"""A worker of real processes against the GitLab of a test: what it is started with, and what people see afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from daiku.domain.items.item import OVER, WorkItem
from daiku.domain.runs import RunResult
from daiku.guard.rules.redact import Redactor
from daiku.items.gitlab.source import GitLabSource
from daiku.items.record import Claim
from daiku.items.rules.harmless import strip_hidden
from daiku.items.working import Work, attempt_item, process_items
from daiku.settings.config import Config
from daiku.trace.stores import open_stores
from tests.conftest import ROOT
from tests.work.gitlab.sources import Clock
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabfake.state import Project, Thread

NAME = "group/name"
LABEL = "coding agent"
FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n",
}
EDIT = {"path": "calc.py", "edits": [{"search": "    return a - b", "replace": "    return a + b"}]}
MEND: tuple[dict[str, Any], ...] = (
    {"text": "Mend it.", "calls": [{"tool": "files/edit", "args": EDIT}]},
    {"text": "add adds now."},
)


def planned(*names: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two replies of a model: a plan of these steps, and that it holds."""
    proposed = {"goal": "All of it.", "steps": [{"name": name} for name in names]}
    return (
        {"text": "A plan.", "calls": [{"tool": "plan/propose", "args": proposed}]},
        {"text": "It holds.", "calls": [{"tool": "plan/approve", "args": {}}]},
    )


def completed(step: int) -> dict[str, Any]:
    """A reply that says that a step is done."""
    args = {"step_id": str(step), "status": "completed"}
    return {"text": f"Step {step} is done.", "calls": [{"tool": "plan/update_step", "args": args}]}


@dataclass(frozen=True)
class Desk:
    """A machine of its own: a home, and a folder in which the worker is started. `environ`: what is set beside."""

    root: Path
    yard: GitLabYard
    environ: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def home(self) -> Path:
        return self.root / "home"

    def script(self, *lines: dict[str, Any]) -> None:
        for folder in (self.root, self.home):
            folder.mkdir(parents=True, exist_ok=True)
        (self.root / "play.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    def start(self, *argv: str) -> subprocess.Popen[str]:
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "server"),
            "DAIKU_HOME": str(self.home),
            "DAIKU_LLM__MODEL": "scripted/play.jsonl",
            "DAIKU_GITLAB__API_URL": self.yard.api_url,
            "DAIKU_GITLAB__PROJECTS": NAME,
            "GITLAB_TOKEN": "glpat-bot",
            **self.environ,
        }
        return subprocess.Popen(
            [sys.executable, "-m", "daiku", *argv],
            cwd=self.root,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> subprocess.Popen[str]:
        """A worker that looks once."""
        return self.start("worker", "--once", "--json", "--source", "gitlab")

    def work(self) -> tuple[int, list[dict[str, Any]], str]:
        """Its exit code, what it told of items, what it told on standard error."""
        process = self.begin()
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in err, err
        return process.returncode, [json.loads(line) for line in out.splitlines()], err


@dataclass
class Shop:
    """The same in this process, for many looks one after the other: each one is a worker of its own, which knows
    nothing of those before. A pause takes no time: it moves `clock`."""

    desk: Desk
    clock: Clock = field(default_factory=Clock)
    labels: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def config(self) -> Config:
        told = {
            "llm": {"model": f"scripted/{self.desk.root / 'play.jsonl'}"},
            "gitlab": {"api_url": self.desk.yard.api_url, "projects": [NAME]},
            "work": {"poll_seconds": 1, "labels": self.labels},
        }
        return Config.model_validate(told)

    async def look(self) -> list[WorkItem]:
        """What a worker that looks once tells of items."""
        told: list[WorkItem] = []
        config, home = self.config, self.desk.home
        work = Work(config, home, self.desk.root, {}, told.append, Redactor(()))
        source = GitLabSource(
            config.gitlab,
            SecretStr("glpat-bot"),
            config.work.labels,
            strip_hidden,
            self.clock.sleep,
            self.clock,
        )
        await process_items(work, {"gitlab": source}, asyncio.Event(), once=True)
        self.clock.now += 120
        stores = open_stores(config.storage.place(home), Redactor(()))
        stores.database.write("UPDATE work_items SET next_at = ''")  # the pauses of items, too, take no time
        stores.close()
        return told

    async def until_over(self, most: int = 40) -> tuple[WorkItem, int]:
        """Look until the item is over; how it stands, and how many looks that took."""
        for number in range(1, most + 1):
            told = await self.look()
            if told and told[-1].state in OVER:
                return told[-1], number
        raise AssertionError(f"not over after {most} looks")


def in_this_process(monkeypatch: pytest.MonkeyPatch, shop: Shop) -> None:
    """Attempts are no processes of their own: a test has a hundred of them. A worker does not wait until an item that it
    gave back is tried again: the next look is there first."""

    async def start(_environ: object, _where: Path, claim: Claim, place: Path) -> RunResult | None:
        return await attempt_item(shop.config, shop.desk.home, shop.desk.root, claim, place, "en")

    monkeypatch.setattr("daiku.items.working._start", start)
    monkeypatch.setattr("daiku.items.workers.worker.PATIENCE_SECONDS", 0.0)


def issue(yard: GitLabYard, text: str = "add subtracts.", label: str = LABEL) -> Thread:
    """An issue that a person with the right to push wrote and labelled."""
    client = yard.client("dev").projects.get(NAME)
    made = client.issues.create({"title": "Mend add", "description": text})
    client.issues.update(made.iid, {"add_labels": label})
    return yard.forge.state.projects[NAME].issues[made.iid]


def merge_request(yard: GitLabYard, project: Project) -> Thread:
    """A merge request of a person's from the branch `theirs`, labelled by them."""
    project.git("branch", "theirs", "main")
    client = yard.client("dev").projects.get(NAME)
    row = {
        "source_branch": "theirs",
        "target_branch": "main",
        "title": "Draft: add",
        "description": "Mend add.",
    }
    made = client.mergerequests.create(row)
    client.mergerequests.update(made.iid, {"add_labels": LABEL})
    return project.requests[made.iid]


def branches(project: Project) -> list[str]:
    return project.git("for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()


def said(thread: Thread) -> list[str]:
    """The comments of the worker."""
    return [note["body"] for note in thread.notes if "<!-- daiku:" in note["body"]]


def is_green(project: Project, branch: str, folder: Path) -> bool:
    """Whether the project's own tests pass on the branch as it is on the server."""
    subprocess.run(
        ["git", "clone", "-q", "-b", branch, str(project.repository), str(folder)],
        check=True,
        capture_output=True,
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0


def until(holds: Callable[[], bool], most: float = 60) -> None:
    end = time.monotonic() + most
    while not holds():
        assert time.monotonic() < end, f"it did not come to that in {most:g} s"
        time.sleep(0.05)
