"""Which places of this machine a command may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from daiku.guard.sandbox.places import path_places
from daiku.workspace.programs import build_safe_path


def test_no_folder_of_the_workspace_is_on_the_path_wherever_it_leads(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    (root / "bin").mkdir(parents=True)
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (tmp_path / "way").symlink_to(root / "bin")
    entries = [root / "bin", root / "link", tmp_path / "way", outside, Path("relative")]
    path = os.pathsep.join([*map(str, entries), ""])
    assert build_safe_path(path, (root,)) == str(outside)


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (("bin/tool", "notes.txt"), ("bin",)),
        (("bin/tool", "private/key", "src/main.py", ".env"), ("bin",)),
        (("bin/tool", "lib/tool.so", "data/x"), ("bin", "lib")),
        (("bin/python", "pyvenv.cfg", "lib/x.py", "secrets"), ("bin", "lib", "pyvenv.cfg")),
        (("bin/tool", "lib/x.py", ".git/HEAD"), ("bin",)),
        (("sbin/tool", "home/x"), ("sbin",)),
        (("tools/tool", "lib/x"), ("tools",)),
    ],
)
def test_of_a_folder_on_path_only_the_parts_of_an_installation_are_shown(
    tmp_path: Path, made: tuple[str, ...], shown: tuple[str, ...]
) -> None:
    """A23.14: never the folder above."""
    top = tmp_path / "home/other"
    for name in made:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()
    assert path_places(str(top / made[0].partition("/")[0])) == [top / name for name in shown]
