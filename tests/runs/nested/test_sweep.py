"""What is noted of a copy of the project goes with it, and not before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daiku.app import build
from daiku.run.nested import worktrees
from daiku.run.nested.worktrees import sweep
from daiku.settings.config import Config
from daiku.store.copyfolders import close_copy_folder, open_copy_folder
from daiku.tools.git import worktrees as git_worktrees
from daiku.workspace.disk import DiskWorkspace
from tests.cases import for_each


@for_each("stays", ["wt_1", "wt_1.kept"])
def test_a_copy_of_which_a_part_stays_is_noted_until_it_is_gone(tmp_path: Path, stays: str) -> None:
    folder = tmp_path / stays
    (folder / "wt_1").mkdir(parents=True)
    (folder / "wt_1.kept").mkdir()
    (folder / "wt_1.of").write_text(str(tmp_path), "utf-8")

    def discard(place: Path, top: Path, *, settle: float = 0.0) -> bool:
        return place.name != stays and git_worktrees.discard_worktree(place, top, settle=settle)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worktrees, "discard_worktree", discard)
        sweep(folder)
    assert sorted(p.name for p in folder.iterdir()) == sorted([stays, "wt_1.of", "wt_1.lock"])
    sweep(folder)
    assert list(folder.iterdir()) == []


def test_a_copy_is_discarded_while_git_takes_the_list_of_copies_away(tmp_path: Path) -> None:
    """Git removes `.git/worktrees` with the last copy, which may happen just when another one is looked up there."""
    listed = tmp_path / ".git" / "worktrees"
    listed.mkdir(parents=True)
    (tmp_path / "copy").mkdir()
    look = os.listdir

    def look_late(path: str | Path = ".") -> list[str]:
        if Path(path) == listed:
            listed.rmdir()
        return look(path)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "listdir", look_late)
        assert git_worktrees.discard_worktree(tmp_path / "copy", tmp_path)
    assert not listed.exists()


async def test_a_start_removes_what_earlier_versions_kept_for_trials(tmp_path: Path) -> None:
    """X.12, PROTOCOL 10c: the files of projects as runs began, and copies of killed trials; not those of a trial under way."""
    home = tmp_path / "home"
    (home / "starts" / "ses_1").mkdir(parents=True)
    (home / "starts" / "ses_1" / "run_1.start").write_bytes(b"uncommitted files")
    (home / "trials" / "tr_1").mkdir(parents=True)
    (home / "trials" / "tr_1.lock").touch()
    going_on = open_copy_folder(home / "trials", "tr_2")
    for left in ([going_on.path], []):
        app = build(Config(), workspace=DiskWorkspace(()), home=home)
        await app.aclose()
        assert not (home / "starts").exists()
        assert [each for each in home.glob("trials/*") if each.is_dir()] == left
        if left:
            close_copy_folder(going_on, keep=False)
    assert not (home / "trials").exists()
