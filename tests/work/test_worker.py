"""The worker as a person starts it: real processes, real git, files as items, a script as the model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from daiku.items.processing import build_folder_name
from tests.cli.test_terminal import Open, at_terminal
from tests.conftest import ROOT

pytestmark = pytest.mark.slow
__all__ = ["at_terminal"]

MEND: list[dict[str, Any]] = [
    {
        "text": "Mend it.",
        "calls": [
            {
                "tool": "files/edit",
                "args": {
                    "path": "calc.py",
                    "edits": [{"search": "    return a - b", "replace": "    return a + b"}],
                },
            }
        ],
    },
    {"text": "add adds now."},
]
SLOW_TREE = build_folder_name("files:slow")
SLOW: list[dict[str, Any]] = [
    {"text": "one", "calls": [{"tool": "files/write", "args": {"path": "a.txt", "content": "a\n"}}]},
    {
        "text": "two",
        "delay_ms": 1500,
        "calls": [{"tool": "files/write", "args": {"path": "b.txt", "content": "b\n"}}],
    },
    {"text": "three", "calls": [{"tool": "files/write", "args": {"path": "c.txt", "content": "c\n"}}]},
    {"text": "all written."},
]


@dataclass(frozen=True, slots=True)
class Lab:
    """A repository, a folder of items, a home of its own."""

    root: Path
    model: str = "scripted/play.jsonl"

    def git(self, *argv: str) -> str:
        done = subprocess.run(
            ["git", *argv], cwd=self.root / "repo", capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def script(self, *lines: dict[str, Any]) -> None:
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.root / "repo/play.jsonl").write_text(text, "utf-8")
        self.git("add", "-A")
        self.git("commit", "-qm", "a script")

    def item(self, name: str, body: str = "Mend add.") -> Path:
        path = self.root / "items" / f"{name}.md"
        path.write_text(f"---\ntitle: {name} it\nlabels: [coding agent]\n---\n{body}\n", "utf-8")
        return path

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT / "server"),
            "DAIKU_HOME": str(self.root / "home"),
            "DAIKU_LLM__MODEL": self.model,
            "GITLAB_TOKEN": "glpat-canary-00000000000",
        }

    def start(self, *argv: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "daiku", *argv],
            cwd=self.root / "repo",
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def daiku(self, *argv: str) -> tuple[int, str, str]:
        process = self.start(*argv)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def work(self) -> tuple[int, list[dict[str, Any]]]:
        code, out, err = self.daiku(*self.once)
        assert "Traceback" not in err
        return code, [json.loads(line) for line in out.splitlines()]

    @property
    def once(self) -> tuple[str, ...]:
        return ("worker", "--once", "--json", "--source", "files", "--dir", str(self.root / "items"))

    def shown(self, item: str) -> dict[str, Any]:
        code, out, _ = self.daiku("work", "show", item, "--json")
        return json.loads(out) if code == 0 else {}


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    found = Lab(tmp_path)
    for name in ("repo", "items", "home"):
        (tmp_path / name).mkdir()
    found.git("init", "-q", "-b", "main", ".")
    found.git("config", "user.name", "Ann")
    found.git("config", "user.email", "ann@example.org")
    (tmp_path / "repo/calc.py").write_text("def add(a, b):\n    return a - b\n", "utf-8")
    found.script(*MEND)
    return found


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it did not come to that in a minute"
        time.sleep(0.05)


def test_a_labelled_file_becomes_a_branch_with_the_work_and_the_persons_branch_stays(lab: Lab) -> None:
    """S2K.2, S2K.6, S2C.1: found, prepared, told, worked by a process of its own, commented, finished"""
    path, before = lab.item("mend"), lab.git("rev-parse", "main")
    code, told = lab.work()
    assert code == 0
    assert [(each["item"], each["state"]) for each in told] == [("files:mend", "done")]
    assert "return a + b" in lab.git("show", "daiku/mend:calc.py")
    assert lab.git("rev-parse", "main") == before
    assert lab.git("status", "--porcelain") == ""
    said = path.read_text("utf-8")
    assert "state: done" in said
    assert "coding agent done" in said
    assert said.count("The work is done") == 1
    assert lab.git("log", "-1", "--format=%an <%ae>", "daiku/mend") == "Daiku <daiku@localhost>"


def test_what_an_item_used_is_shown_while_it_is_worked_and_then_as_its_comment_says_it(lab: Lab) -> None:
    gate = {"command": "touch at-gate; until [ -e go ]; do sleep 0.05; done; rm at-gate go"}
    lab.script({"text": "I wait.", "calls": [{"tool": "shell/run", "args": gate}]}, *MEND)
    path, tree = lab.item("slow"), lab.root / "home/items" / SLOW_TREE
    process = lab.start(*lab.once)
    until((tree / "at-gate").exists)
    at_work = lab.shown("files:slow")
    (tree / "go").touch()
    assert process.wait(timeout=60) == 0
    process.communicate()
    used = [
        each["usage"]["promptTokens"] + each["usage"]["completionTokens"]
        for each in (at_work, lab.shown("files:slow"))
    ]
    assert at_work["state"] == "processing"
    assert 0 < used[0] < used[1]
    assert f"**Used:** {used[1]:,} tokens" in path.read_text("utf-8")
    assert f"  used so far: {used[1]:,} tokens" in lab.daiku("work", "show", "files:slow")[1]


def test_nothing_to_do_ends_with_0_and_says_nothing(lab: Lab) -> None:
    assert lab.daiku(*lab.once)[:2] == (0, "")


def test_without_a_source_it_is_said_what_to_do(lab: Lab) -> None:
    """S2K.4: sources are made from the settings"""
    code, out, err = lab.daiku("worker", "--once")
    assert (code, out) == (2, "")
    assert "--source files --dir" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("DAIKU_GITHUB__REPOSITORIES", "owner", "github.repositories: owner is not the name of a repository"),
        ("DAIKU_GITLAB__PROJECTS", "group/name,3", "gitlab.projects: 3 is not the name of a repository"),
    ],
)
def test_a_setting_that_names_no_repository_is_said(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_TOKEN", "ghp_canary")
    code, out, err = lab.daiku("worker", "--once")
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


def test_files_are_worked_in_a_repository_and_elsewhere_none_is_taken(lab: Lab) -> None:
    path = lab.item("mend")
    before = path.read_text("utf-8")
    code, out, err = lab.daiku(*lab.once, "-C", str(lab.root / "home"))
    assert (code, [json.loads(line)["type"] for line in out.splitlines()]) == (2, ["error"])
    assert "lies in no git repository" in err
    assert path.read_text("utf-8") == before


def test_an_item_whose_model_fails_is_told_as_failed_and_ends_with_1(lab: Lab) -> None:
    lab.script({"error": {"kind": "bad_request"}})
    path = lab.item("mend")
    code, told = lab.work()
    assert (code, told[-1]["state"]) == (1, "failed")
    assert told[-1]["error"]
    assert "state: failed" in path.read_text("utf-8")


def test_items_stay_queued_while_the_model_is_away_and_are_done_when_it_is_back(lab: Lab) -> None:
    """B23.4: the first item meets it, the others are not begun, and nobody is told that anything failed."""
    lab.script({"error": {"kind": "auth"}})
    paths = [lab.item(name) for name in ("one", "two", "three")]
    process = lab.start(*lab.once)
    out, err = process.communicate(timeout=60)
    told = [json.loads(line) for line in out.splitlines()]
    assert (process.returncode, [each["state"] for each in told]) == (1, ["queued"])
    assert "The model cannot be reached" in err
    assert sum("failed" in path.read_text("utf-8") for path in paths) == 0
    assert [lab.shown(f"files:{name}")["attempts"] for name in ("one", "two", "three")].count(0) == 2


def test_a_question_waits_in_the_file_and_the_answer_there_goes_on(lab: Lab) -> None:
    lab.script(
        {"text": "?", "calls": [{"tool": "user/ask", "args": {"question": "Which colour?"}}]},
        {"text": "So.", "calls": [{"tool": "files/write", "args": {"path": "c.txt", "content": "blue\n"}}]},
        {"text": "Painted."},
    )
    path = lab.item("paint", "Paint it.")
    code, told = lab.work()
    assert (code, told[-1]["state"]) == (0, "waiting")
    assert "Which colour?" in path.read_text("utf-8")
    assert "remove the label `coding agent paused`" in path.read_text("utf-8")
    assert "files:paint paint it\n" in lab.daiku("sessions", "list")[1]
    assert lab.work() == (0, [])
    path.write_text(path.read_text("utf-8") + "\nblue\n", "utf-8")
    code, told = lab.work()
    assert (code, told[-1]["state"]) == (0, "done")
    assert lab.git("show", "daiku/paint:c.txt") == "blue"


def test_what_a_server_would_run_waits_for_a_persons_allow(lab: Lab) -> None:
    """X.14: the question is a comment, the item waits, and only the word alone is a yes."""
    workflow = {"path": ".github/workflows/ci.yml", "content": "on: push\n"}
    lab.script({"text": "CI.", "calls": [{"tool": "files/write", "args": workflow}]}, {"text": "Done."})
    path = lab.item("ci", "Add a workflow.")
    assert lab.work()[1][-1]["state"] == "waiting"
    assert lab.git("branch", "--list", "daiku/ci") == ""
    path.write_text(path.read_text("utf-8") + "\nreject\nI do not allow that now.\n", "utf-8")
    assert lab.work()[1][-1]["state"] == "done"
    assert ".github" not in lab.git("ls-tree", "--name-only", "main")
    assert lab.git("branch", "--list", "daiku/ci") == ""


def test_a_killed_worker_leaves_nothing_running_and_the_next_one_goes_on(lab: Lab) -> None:
    lab.script(*SLOW)
    path = lab.item("slow")
    process = lab.start(*lab.once)
    until((lab.root / "home/items" / SLOW_TREE / "a.txt").exists)
    process.kill()
    process.communicate()
    assert lab.shown("files:slow")["state"] == "processing"
    code, told = lab.work()
    assert (code, told[-1]["state"], told[-1]["attempts"]) == (0, "done", 2)
    assert lab.git("ls-tree", "--name-only", "daiku/slow").splitlines() == [
        "a.txt",
        "b.txt",
        "c.txt",
        "calc.py",
        "play.jsonl",
    ]
    assert path.read_text("utf-8").count("The work is done") == 1


def test_sigterm_gives_the_item_back_within_ten_seconds_and_it_is_taken_up_again(lab: Lab) -> None:
    lab.script(*SLOW)
    lab.item("slow")
    process = lab.start(*lab.once)
    until((lab.root / "home/items" / SLOW_TREE / "a.txt").exists)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert time.monotonic() - began < 10
    process.communicate()
    assert lab.shown("files:slow")["state"] == "queued"
    assert lab.work()[1][-1]["state"] == "done"


def test_at_a_terminal_it_says_that_it_looks_and_how_it_is_ended(lab: Lab, at_terminal: Open) -> None:
    argv = ("worker", "--source", "files", "--dir", str(lab.root / "items"), "-C", str(lab.root / "repo"))
    with at_terminal(*argv, lines=[]) as screen:
        screen.until("Looking for items every 60 s. Ctrl-C gives back")
        screen.process.send_signal(signal.SIGINT)
        screen.until("Stopping: ")
        assert screen.end() == 0


def test_two_workers_at_a_time_work_each_item_once(lab: Lab) -> None:
    """S2K.7"""
    for number in range(6):
        lab.item(f"mend{number}")
    both = [lab.start(*lab.once), lab.start(*lab.once)]
    told = [json.loads(line) for process in both for line in process.communicate(timeout=120)[0].splitlines()]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(each["item"] for each in told) == [f"files:mend{number}" for number in range(6)]
    assert {each["state"] for each in told} == {"done"}
    assert {each["attempts"] for each in told} == {1}


def test_no_token_of_a_forge_reaches_the_process_of_the_agent(lab: Lab) -> None:
    look = {
        "command": "cat /proc/self/environ /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n' | grep -c canary; true"
    }
    lab.script({"text": "look", "calls": [{"tool": "shell/run", "args": look}]}, {"text": "looked."})
    lab.item("look")
    lab.work()
    kept = b"".join(path.read_bytes() for path in (lab.root / "home").rglob("*") if path.is_file())
    assert b"glpat-canary" not in kept
