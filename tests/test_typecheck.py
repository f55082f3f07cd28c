"""The fast loop's type check leaves out only files that cannot have become wrong."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

FILES = {
    "pyproject.toml": "",
    ".dev/typecheck.py": (ROOT / ".dev" / "typecheck.py").read_text(encoding="utf-8"),
    "server/app/__init__.py": "",
    "server/app/top.py": "from app.middle import (  # reads\n    one,  # a reason\n    two,\n)\n",
    "server/app/middle.py": "def one() -> None:\n    from app import bottom\n\n    print(bottom)\n\ntwo = 2\n",
    "server/app/bottom.py": "import json, app.deep as deep\n",
    "server/app/deep.py": "",
    "server/app/alone.py": "import json, os\n",
}
EVERY = {"__init__", "top", "middle", "bottom", "deep", "alone"}
# In the place of basedpyright: it notes what it was asked about and ends as it is told to.
ASKED = """
import sys
with open("asked", "w") as file: file.write("\\n".join(sys.argv[1:]))
with open("ends") as file: sys.exit(int(file.read()))
"""


def checked(root: Path, ends: int = 0) -> tuple[int, set[str]]:
    """What a run ends with, and which files were looked at."""
    (root / "asked").write_text("")
    (root / "ends").write_text(str(ends))
    main = runpy.run_path(str(root / ".dev" / "typecheck.py"))["main"]
    code = main([str(root / "known.json"), sys.executable, "-IS", "-c", ASKED, "--", "server"])
    return code, {Path(name).stem for name in (root / "asked").read_text().splitlines()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A small project whose types were found right."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert checked(tmp_path) == (0, EVERY)
    return tmp_path


def test_what_was_right_and_is_unchanged_is_not_looked_at_again(project: Path) -> None:
    assert checked(project) == (0, set())


@pytest.mark.parametrize(
    ("name", "affected"),
    [
        ("server/app/alone.py", {"alone"}),
        ("server/app/top.py", {"top"}),
        ("server/app/middle.py", {"middle", "top"}),
        ("server/app/bottom.py", {"bottom", "middle", "top"}),
        ("server/app/deep.py", {"deep", "bottom", "middle", "top"}),
        ("server/app/__init__.py", {"bottom", "middle", "top"}),
        ("server/app/json.py", {"json"}),
        ("server/json.py", {"json", "alone", "bottom", "middle", "top"}),
        ("pyproject.toml", EVERY),
        (".dev/typecheck.py", EVERY),
    ],
)
def test_a_change_is_looked_at_in_every_file_that_imports_it(
    project: Path, name: str, affected: set[str]
) -> None:
    with (project / name).open("a") as file:
        file.write("\n# another line\n")
    code, found = checked(project)
    assert (code, found - {"__init__"}) == (0, affected - {"__init__"})
    assert checked(project) == (0, set())


def test_a_file_that_is_wrong_is_looked_at_until_it_is_right(project: Path) -> None:
    (project / "server/app/alone.py").write_text("wrong\n")
    assert [checked(project, ends) for ends in (1, 1, 0, 0)] == [
        (1, {"alone"}),
        (1, {"alone"}),
        (0, {"alone"}),
        (0, set()),
    ]


def test_a_module_that_is_gone_is_a_change_for_those_that_import_it(project: Path) -> None:
    (project / "server/app/deep.py").unlink()
    assert checked(project) == (0, {"bottom", "middle", "top"})
