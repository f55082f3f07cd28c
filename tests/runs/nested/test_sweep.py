"""What is noted of a copy of the project goes with it, and not before."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daiku.runs.nested import worktrees
from daiku.runs.nested.worktrees import sweep
from daiku.tools.git import worktrees as git_worktrees
from tests.cases import for_each


@for_each("stays", ["wt_1", "wt_1.kept"])
def test_a_copy_of_which_a_part_stays_is_noted_until_it_is_gone(tmp_path: Path, stays: str) -> None:
    folder = tmp_path / stays
    (folder / "wt_1").mkdir(parents=True)
    (folder / "wt_1.kept").mkdir()
    (folder / "wt_1.of").write_text(str(tmp_path), "utf-8")

    def discard(place: Path, top: Path, *, settle: float = 0.0) -> bool:
        return place.name != stays and git_worktrees.discard(place, top, settle=settle)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(worktrees, "discard", discard)
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
        assert git_worktrees.discard(tmp_path / "copy", tmp_path)
    assert not listed.exists()
