"""Which places of this machine a command may use."""

from __future__ import annotations

import os
from pathlib import Path

from daiku.workspace.programs import safe_path


def test_no_folder_of_the_workspace_is_on_the_path_wherever_it_leads(tmp_path: Path) -> None:
    root, outside = tmp_path / "project", tmp_path / "outside"
    (root / "bin").mkdir(parents=True)
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (tmp_path / "way").symlink_to(root / "bin")
    entries = [root / "bin", root / "link", tmp_path / "way", outside, Path("relative")]
    path = os.pathsep.join([*map(str, entries), ""])
    assert safe_path(path, (root,)) == str(outside)
