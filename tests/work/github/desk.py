"""A worker of real processes against the GitHub of a test: what it is started with, and what it left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conftest import ROOT
from tests.services.github.yard import NAME, WORKER, GitHubYard, token_of

MARK = "<!-- daiku:"
PROGRESS = "<!-- daiku:progress -->"
EDIT = {"path": "calc.py", "edits": [{"search": "    return a - b", "replace": "    return a + b"}]}
PLAN = {"goal": "add adds", "steps": [{"name": "Mend add"}]}
MEND: tuple[dict[str, Any], ...] = (
    {"text": "So I will.", "calls": [{"tool": "plan/propose", "args": PLAN}]},
    {"text": "It holds.", "calls": [{"tool": "plan/approve", "args": {}}]},
    {"text": "Mend it.", "calls": [{"tool": "files/edit", "args": EDIT}]},
    {
        "text": "Done.",
        "calls": [{"tool": "plan/update_step", "args": {"step_id": "1", "status": "completed"}}],
    },
    {"text": "add adds now."},
)


@dataclass
class Desk:
    """A machine of its own: a home, and a folder in which the worker is started. `environ`: what is set beside."""

    root: Path
    yard: GitHubYard
    environ: dict[str, str] = field(default_factory=dict[str, str])
    told: str = ""
    """All that it told on either stream."""

    @property
    def home(self) -> Path:
        return self.root / "home"

    def script(self, *lines: dict[str, Any]) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        (self.root / "play.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    def begin(self) -> subprocess.Popen[str]:
        """A worker that looks once."""
        environ = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "server"),
            "DAIKU_HOME": str(self.home),
            "DAIKU_LLM__MODEL": "scripted/play.jsonl",
            "GITHUB_API_URL": self.yard.url,
            "DAIKU_GITHUB__REPOSITORIES": NAME,
            "GITHUB_TOKEN": token_of(WORKER),
            **self.environ,
        }
        argv = [sys.executable, "-m", "daiku", "worker", "--once", "--json", "--source", "github"]
        return subprocess.Popen(
            argv,
            cwd=self.root,
            env={name: value for name, value in environ.items() if value},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def work(self) -> tuple[int, list[dict[str, Any]]]:
        """Its exit code, and what it told of items: it looks once."""
        process = self.begin()
        out, err = process.communicate(timeout=180)
        self.told += out + err
        assert "Traceback" not in err, err
        return process.returncode, [json.loads(line) for line in out.splitlines()]

    def work_until_over(self, rounds: int = 30) -> tuple[int, list[dict[str, Any]]]:
        """Start it again and again, as cron would, until an item is over."""
        for _ in range(rounds):
            code, told = self.work()
            if told and told[-1]["state"] not in ("queued", "processing"):
                return code, told
        raise AssertionError(f"it did not come to an end: {self.told}")

    def kept(self) -> bytes:
        """Everything that it wrote down."""
        return b"".join(path.read_bytes() for path in self.home.rglob("*") if path.is_file())


def said(yard: GitHubYard, number: int) -> list[str]:
    """The comments of the worker, oldest first."""
    return [each.body for each in yard.repository().get_issue(number).get_comments() if MARK in each.body]


def labels(yard: GitHubYard, number: int) -> list[str]:
    return sorted(label.name for label in yard.repository().get_issue(number).get_labels())
