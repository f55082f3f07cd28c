"""An edit in place that found nothing to change is no change; any other command that may change files is one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from daiku.domain.runs import RunResult
from daiku.run.request import RunRequest
from daiku.tools.shell.protecting import (
    MAX_BYTES,
    MAX_NAMED_PATHS,
    is_unchanged,
    read_edited_files,
    read_files,
    read_named_files,
)
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


async def result_after(command: str, folder: Path) -> RunResult:
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
    return result


async def reasons_after(command: str, folder: Path) -> list[str]:
    return [reason.kind for reason in (await result_after(command, folder)).reasons]


@pytest.mark.parametrize("command", NOTHING)
async def test_an_edit_in_place_without_a_match_is_no_change(command: str, tmp_path: Path) -> None:
    """A23.2"""
    assert await reasons_after(command, tmp_path) == ["nothing_changed"]


@pytest.mark.parametrize("command", SOMETHING)
async def test_a_command_that_changed_a_file_or_may_have_is_a_change(command: str, tmp_path: Path) -> None:
    """A23.2"""
    assert await reasons_after(command, tmp_path) == []


@pytest.mark.parametrize(
    ("command", "changed"),
    [
        ("sed -i s/-/+/ calc.py", True),
        ("echo '# x' >> calc.py", True),
        ("echo x=1 >new.py", True),
        ("cd sub && rm x.py", True),
        ("mv other.py third.py", True),
        ("python3 -c \"open('calc.py', 'w').write('')\"", True),
        ("python3 - <<'E'\nopen('calc.py', 'a').write('#')\nE", True),
        ("rm calc.py; false", True),
        ("sed -i s/nomatch/y/ calc.py", False),
        ("python3 -B calc.py; cat other.py", False),
        ("mkdir empty", False),
        ("cp calc.py ../outside.py", False),
    ],
)
def test_a_change_of_a_file_that_a_command_names_is_known(
    command: str, changed: bool, tmp_path: Path
) -> None:
    """A23.2"""
    (project := tmp_path / "project" / "sub").mkdir(parents=True)
    for path in (project.parent / "calc.py", project.parent / "other.py", project / "x.py"):
        path.write_text("x = 1-1\n")
    before = read_files(command, project.parent)
    subprocess.run(["bash", "-c", command], cwd=project.parent, check=False)
    assert (is_unchanged(before, read_files(command, project.parent)) is False) == changed


async def test_a_change_seen_in_a_command_needs_a_check(tmp_path: Path) -> None:
    """A23.2"""
    assert (await result_after("echo '# x' >> calc.py", tmp_path)).unchecked


def test_a_bounded_number_of_files_is_compared(tmp_path: Path) -> None:
    """A23.2"""
    names = [str(number) for number in range(MAX_NAMED_PATHS + 9)]
    for name in names:
        (tmp_path / name).write_text("x")
    assert len(read_named_files(" ".join(names), tmp_path)) == MAX_NAMED_PATHS
    assert read_named_files("cat /etc/passwd ../x \0", tmp_path) == {}
    (tmp_path / "empty").touch()
    (tmp_path / "endless").symlink_to("/proc/self/environ")
    if (tmp_path / "endless").exists():  # Linux
        assert len({*read_named_files("cat empty endless", tmp_path).values()}) == 1


def test_what_is_no_plain_file_or_too_large_is_not_compared(tmp_path: Path) -> None:
    """A23.2"""
    (tmp_path / "a").write_text("a")
    command = "sed -i s/x/y/ a b"
    assert list(read_edited_files(command, tmp_path)) == ["a"]
    (tmp_path / "b").mkdir()
    assert read_edited_files(command, tmp_path) == {}
    (tmp_path / "b").rmdir()
    with (tmp_path / "b").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert read_edited_files(command, tmp_path) == {}
    (tmp_path / "b").unlink()
    (tmp_path / "b").symlink_to("gone")
    assert read_edited_files(command, tmp_path) == {}
