"""Work that outlives its machine: two homes that share a database and a git server; the first one dies in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from daiku.items.processing import build_folder_name
from daiku.tools.git.mirror import build_kept_ref
from tests.postgres import NewDatabase
from tests.work.gitlabfake.fixture import GitLabYard
from tests.work.gitlabflow import FILES, NAME, Desk, branches, completed, issue, planned, said, until
from tests.work.passing import let_time_pass

pytestmark = pytest.mark.slow

ITEM = "gitlab:group/name#1"
NAMES = ("one", "two", "three", "four", "five")
SLOWLY = 6000


def write(name: str, **more: Any) -> dict[str, Any]:
    args = {"path": f"{name}.txt", "content": f"{name}\n"}
    return {"text": "Write.", "calls": [{"tool": "files/write", "args": args}], **more}


def steps() -> list[dict[str, Any]]:
    """Five steps of one file each; the third takes its time before it says that it is done."""
    lines = [*planned(*NAMES)]
    for number, name in enumerate(NAMES, 1):
        late = {"delay_ms": SLOWLY} if number == 3 else {}
        lines += [write(name), {**completed(number), "text": "done", **late}]
        if number == 3:
            lines.append(write("three", when="was lost with the machine"))
    return [*lines, {"text": "All five."}]


def kept_files(yard: GitLabYard) -> list[str]:
    project = yard.forge.state.projects[NAME]
    return project.git("ls-tree", "--name-only", build_kept_ref(build_folder_name(ITEM))).splitlines()


@pytest.mark.slow(seconds=20)
def test_a_second_home_goes_on_with_the_third_step_when_the_first_one_is_killed(
    gitlab_forge: GitLabYard, tmp_path: Path, postgres: NewDatabase
) -> None:
    project = gitlab_forge.project(NAME, FILES)
    thread = issue(gitlab_forge)
    url = postgres()
    shared = {"DAIKU_STORAGE__DATABASE_URL": url}
    first, second = (Desk(tmp_path / name, gitlab_forge, shared) for name in ("first", "second"))
    for desk in (first, second):
        desk.script(*steps())
    process = first.begin()
    until((first.home / "items" / build_folder_name(ITEM) / "three.txt").exists)
    # What counts as done is on the server, and nothing of it is on a branch yet.
    assert {"one.txt", "two.txt"} <= set(kept_files(gitlab_forge))
    assert "three.txt" not in kept_files(gitlab_forge)
    assert branches(project) == ["main"]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    os.rename(first.home, tmp_path / "gone")  # noqa: PTH104  # the machine
    let_time_pass(url)
    code, told, err = second.work()
    while not told:  # until nothing was heard of the first one for a while
        code, told, err = second.work()
    assert (code, [each["state"] for each in told]) == (0, ["done"]), f"{told} {err}"
    files = project.git("ls-tree", "--name-only", "daiku/1-mend-add").splitlines()
    assert {f"{name}.txt" for name in NAMES} <= set(files)
    assert "its work tree is not here" in err + _log(second)
    assert branches(project) == ["daiku/1-mend-add", "main"]
    assert len(project.requests) == 1
    assert kept_files(gitlab_forge) == []
    assert thread.row["labels"] == ["coding agent done"]
    assert len(said(thread)) == 2
    subjects = project.git("log", "--format=%s", "main..daiku/1-mend-add").splitlines()
    assert subjects[-2:] == ["two", "one"]


def _log(desk: Desk) -> str:
    return "".join(path.read_text("utf-8") for path in (desk.home / "logs").glob("*") if path.is_file())
