"""Files of secrets are never shown by git, wherever the workspace lies in its repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from daiku.settings.config import Config
from daiku.tools.git.git import DiffArgs, LogArgs, diff, log
from daiku.tools.tool import ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace


def git(folder: Path, *argv: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *who, *argv], cwd=folder, check=True)


def staged(top: Path, *files: Path) -> None:
    """A new repository with these files."""
    for file in files:
        file.write_text("old\n")
    git(top, "init", "-q")
    git(top, "add", ".")


def context_of(root: Path, kept: Path) -> ToolContext:
    workspace = DiskWorkspace([root])
    return ToolContext("s", "r", "c", workspace, CheckpointStore(kept, workspace), Config(), lambda _: None)


@pytest.mark.parametrize("inside", [".", "packages/shop"])
async def test_a_diff_leaves_secrets_out_also_where_the_workspace_is_a_folder_of_the_repository(
    tmp_path: Path, inside: str
) -> None:
    top = tmp_path / "project"
    root = top / inside
    root.mkdir(parents=True)
    (root / ".daikuignore").write_text("private.txt\n")
    staged(top, root / "a.txt", root / ".env", root / "private.txt")
    (root / "a.txt").write_text("new\n")
    (root / "private.txt").write_text("PASSWORD=hunter2\n")
    (root / ".env").write_text("PASSWORD=hunter2\n")
    shown = await diff(DiffArgs(), context_of(root, tmp_path / "kept"))
    assert shown.ok
    assert "+new" in shown.text
    assert "hunter2" not in shown.text
    assert ".env" in shown.text.rpartition("Not shown")[2]
    assert "private.txt" in shown.text.rpartition("Not shown")[2]


@pytest.mark.parametrize("inside", [".", "packages/shop"])
async def test_neither_a_diff_nor_the_history_shows_what_is_closed_to_the_agent(
    tmp_path: Path, inside: str
) -> None:
    top = tmp_path / "project"
    root = top / inside
    (root / "closed").mkdir(parents=True)
    (root / ".daikuignore").write_text("closed/\n")
    staged(top, root / "a.txt", root / "closed" / "customers.txt")
    (root / "closed" / "customers.txt").write_text("canary\n")
    git(top, "commit", "-qam", "One")
    (root / "closed" / "customers.txt").write_text("canary two\n")
    (root / "a.txt").write_text("new\n")
    context = context_of(root, tmp_path / "kept")
    changed, history = await diff(DiffArgs(), context), await log(LogArgs(patch=True), context)
    named = await diff(DiffArgs(paths=("closed",)), context)
    assert "+new" in changed.text
    assert "+old" in history.text
    for shown in (changed, history, named):
        assert "canary" not in shown.text
        assert "customers.txt" in shown.text.rpartition("Not shown")[2]


async def test_a_repository_that_has_names_told_from_its_folders_shows_no_secrets(tmp_path: Path) -> None:
    root = tmp_path / "project" / "shop"
    root.mkdir(parents=True)
    staged(tmp_path / "project", root / "a.txt", root / ".env")
    git(root, "config", "diff.relative", "true")
    (root / ".env").write_text("PASSWORD=hunter2\n")
    shown = await diff(DiffArgs(), context_of(root, tmp_path / "kept"))
    assert "hunter2" not in shown.text
