"""Repositories with ignore patterns that git's matcher never finishes: git is stopped and not asked again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daiku.domain.config import SandboxSettings
from daiku.run import starting
from daiku.run.request import RunRequest
from daiku.texts.text import Text
from daiku.tools.git import ownrun
from daiku.tools.git import repository as tool_git
from daiku.tools.git.git import StatusArgs, status
from daiku.tools.git.ownrun import find_refusal, run_git
from daiku.tools.git.repository import STATUS_SECONDS, STATUS_TOO_SLOW, GitRepository, open_repository
from daiku.tools.shell.capture import ProgramResult
from daiku.tools.tool import ToolContext
from daiku.workspace.repository import has_timed_out, note_timeout
from tests.runs.playing import Watch, make_app
from tests.runs.test_environment import SAYS, known
from tests.tools.git.test_git import git
from tests.tools.shell.test_shell import context_of

NEVER_ENDS = "*a" * 30 + "b\n"


@pytest.fixture
def hostile(workspace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(tool_git, "STATUS_SECONDS", 0.3)
    monkeypatch.setattr(ownrun, "_LISTING_SECONDS", 0.2)
    root = workspace.resolve()
    git(root, "init", "-q", "-b", "main")
    (root / ("a" * 120 + "0")).write_text("x\n")
    (root / "named.txt").write_text("x\n")
    (root / ".gitignore").write_text(NEVER_ENDS)
    return root


@pytest.fixture
def context(hostile: Path) -> ToolContext:
    return context_of(hostile, lambda _: None, SandboxSettings())


async def test_status_is_stopped_and_not_repeated(
    hostile: Path, context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.6"""
    found = await open_repository(hostile, (hostile,))
    assert isinstance(found, GitRepository)
    answer = await status(StatusArgs(), context)
    assert not answer.ok
    assert isinstance(answer.text, Text)
    assert answer.text.id == "git.slow"
    monkeypatch.setattr(tool_git, "run_program", _never_run)
    assert (await found.run(["status", "--short"]))[0] == STATUS_TOO_SLOW


async def test_status_of_named_paths_still_answers(hostile: Path, context: ToolContext) -> None:
    """A23.6: a path that the pattern does not concern is matched at once."""
    await status(StatusArgs(), context)
    assert (await status(StatusArgs(paths=("named.txt",)), context)).text.endswith("?? named.txt")


async def test_status_is_asked_again_after_the_patterns_changed(hostile: Path, context: ToolContext) -> None:
    """A23.6"""
    await status(StatusArgs(), context)
    (hostile / ".gitignore").write_text("*.log\n")
    os.utime(hostile / ".gitignore", ns=(1, 1))
    assert (await status(StatusArgs(), context)).ok


async def test_listings_of_work_items_share_the_memory(hostile: Path, context: ToolContext) -> None:
    """A23.6: only a listing that may take longer than the one before is tried."""
    done = await run_git(["ls-files", "-z", "--others", "--exclude-standard"], hostile)
    refusal = find_refusal(done)
    assert refusal is not None
    assert refusal.kind == "slow"
    assert has_timed_out(hostile, 0.2)
    assert not has_timed_out(hostile, 0.3)
    await status(StatusArgs(), context)
    assert has_timed_out(hostile, 0.3)
    assert (await run_git(["ls-files", "-z"], hostile)).code == 0


async def test_a_run_does_not_wait_for_git_again(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A23.6: the environment of a run says that git took too long, and git is not started for it."""
    note_timeout(hostile, STATUS_SECONDS)
    monkeypatch.setattr(tool_git, "run_program", _never_run)
    watch = Watch()
    await make_app(hostile, SAYS).runs.run(RunRequest("Mend it"), watch)
    assert known(watch)["Git"] == starting.TOO_SLOW


async def _never_run(*args: object, **options: object) -> ProgramResult:
    raise AssertionError("git was asked again")
