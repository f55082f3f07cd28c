"""Files of secrets are never shown by git, wherever the workspace lies in its repository."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from daiku.settings.config import Config
from daiku.tools.git.git import DiffArgs, diff
from daiku.tools.tool import ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace


def staged(top: Path, *files: Path) -> None:
    """A new repository with these files."""
    for file in files:
        file.write_text("old\n")
    for argv in (("init", "-q"), ("add", ".")):
        subprocess.run(["git", *argv], cwd=top, check=True)


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
    workspace = DiskWorkspace([root])
    kept = CheckpointStore(tmp_path / "kept", workspace)
    context = ToolContext("s", "r", "c", workspace, kept, Config(), lambda _: None)
    shown = await diff(DiffArgs(), context)
    assert shown.ok
    assert "+new" in shown.text
    assert "hunter2" not in shown.text
    assert ".env" in shown.text.rpartition("Not shown")[2]
    assert "private.txt" in shown.text.rpartition("Not shown")[2]
