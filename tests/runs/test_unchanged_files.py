"""An edit in place that found nothing to change is no change; any other command that may change files is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from daiku.runs import RunRequest
from daiku.tools.shell.edited_files import LARGEST, read_edited_files
from tests.runs.playing import Watch, make_app

pytestmark = pytest.mark.slow  # real commands

NOTHING = (
    "sed -i s/nomatch/y/ calc.py",
    "sed -i '/nomatch/d' calc.py",
    "sed -i s/nomatch/y/ *.py && cat calc.py",
    "perl -pi -e s/nomatch/y/ calc.py other.py",
    "sed -i s/-/-/ calc.py",
    "sed -i s/x/y/ none.py",
)
SOMETHING = (
    "sed -i s/-/+/ calc.py",
    "sed -i s/x/z/ *.py",
    "perl -pi -e s/a/c/g calc.py",
    "sed -i.bak s/nomatch/y/ calc.py",
    "sed -i s/nomatch/y/ calc.py; touch new.py",
    "chmod +x calc.py",
)


async def reasons_after(command: str, folder: Path) -> list[str]:
    project = folder / "project"
    project.mkdir()
    (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (project / "other.py").write_text("x = 1\n")
    app = make_app(
        folder,
        {"calls": [{"tool": "shell/run", "args": {"command": command}}]},
        {"text": "I changed calc.py as you asked."},
    )
    result = await app.runs.run(
        RunRequest("Change what calc.py adds.", approvals="all", attended=False), Watch()
    )
    await app.aclose()
    return [reason.kind for reason in result.reasons]


@pytest.mark.parametrize("command", NOTHING)
async def test_an_edit_in_place_without_a_match_is_no_change(command: str, tmp_path: Path) -> None:
    """A23.2"""
    assert await reasons_after(command, tmp_path) == ["nothing_changed"]


@pytest.mark.parametrize("command", SOMETHING)
async def test_a_command_that_changed_a_file_or_may_have_is_a_change(command: str, tmp_path: Path) -> None:
    """A23.2"""
    assert await reasons_after(command, tmp_path) == []


def test_what_is_no_plain_file_or_too_large_is_not_compared(tmp_path: Path) -> None:
    """A23.2"""
    (tmp_path / "a").write_text("a")
    command = "sed -i s/x/y/ a b"
    assert list(read_edited_files(command, tmp_path)) == ["a"]
    (tmp_path / "b").mkdir()
    assert read_edited_files(command, tmp_path) == {}
    (tmp_path / "b").rmdir()
    with (tmp_path / "b").open("wb") as file:
        file.truncate(LARGEST + 1)
    assert read_edited_files(command, tmp_path) == {}
    (tmp_path / "b").unlink()
    (tmp_path / "b").symlink_to("gone")
    assert read_edited_files(command, tmp_path) == {}
