"""Copies of tasks hold nothing from outside the task, and setup has the network only by consent."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from daiku.domain.config import SandboxSettings
from daiku.eval import copies
from daiku.eval.copies import Task, find_changed, find_stray, make_copy, read_tasks, restore, take_snapshot
from daiku.tools.shell.environment import CommandEnd, CommandPlace
from tests.eval.playing import make_task

SECRET = "PRIVATE KEY"


def absolute_link(files: Path, secret: Path) -> None:
    (files / "notes.txt").symlink_to(secret)


def relative_link(files: Path, secret: Path) -> None:
    (files / "notes.txt").symlink_to(os.path.relpath(secret, files))


def link_to_folder(files: Path, secret: Path) -> None:
    (files / "sub").symlink_to(secret.parent)


def link_by_link(files: Path, secret: Path) -> None:
    (files / "a").symlink_to("b")
    (files / "b").symlink_to(os.path.relpath(secret, files))


def link_in_folder(files: Path, secret: Path) -> None:
    (files / "deep/er").mkdir(parents=True)
    (files / "deep/er/x").symlink_to(secret)


def link_to_proc(files: Path, _secret: Path) -> None:
    (files / "environ").symlink_to("/proc/self/environ")


def dangling_link(files: Path, _secret: Path) -> None:
    (files / "later").symlink_to("../../later")


def hard_link(files: Path, secret: Path) -> None:
    (files / "notes.txt").hardlink_to(secret)


def pipe(files: Path, _secret: Path) -> None:
    os.mkfifo(files / "pipe")


def unix_socket(files: Path, _secret: Path) -> None:
    here = Path.cwd()
    os.chdir(files)  # names of sockets are short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
    os.chdir(here)


def whole_folder(files: Path, secret: Path) -> None:
    for each in files.iterdir():
        each.unlink()
    files.rmdir()
    files.symlink_to(secret.parent)


STRAYS = (
    absolute_link, relative_link, link_to_folder, link_by_link, link_in_folder, link_to_proc, dangling_link, hard_link, pipe,
    unix_socket, whole_folder,
)  # fmt: skip


def task_with(tmp_path: Path, folder: str, change: Callable[[Path, Path], None] | None = None) -> Task:
    secret = tmp_path / "home/.ssh/id_rsa"
    secret.parent.mkdir(parents=True)
    secret.write_text(SECRET)
    place = make_task(tmp_path / "tasks", "t")
    (place / folder).mkdir(exist_ok=True)
    if change is not None:
        change(place / folder, secret)
    return read_tasks(tmp_path / "tasks")[0]


def where_of(tmp_path: Path) -> CommandPlace:
    (tmp_path / "copy").mkdir()
    return CommandPlace(tmp_path / "copy", SandboxSettings(mode="off"))


@pytest.mark.parametrize("folder", ["files", "checks"])
@pytest.mark.parametrize("stray", STRAYS, ids=lambda each: each.__name__)
async def test_nothing_from_outside_the_task_is_copied(
    tmp_path: Path, stray: Callable[[Path, Path], None], folder: str
) -> None:
    """A23.3: neither through links nor from devices; the task is not run."""
    task, where = task_with(tmp_path, folder, stray), where_of(tmp_path)
    assert str(await make_copy(task, where)).startswith(folder)
    assert list(where.folder.iterdir()) == []


async def test_links_and_hard_links_within_the_task_are_copied(tmp_path: Path) -> None:
    """A23.3: a link stays a link."""

    def change(files: Path, _secret: Path) -> None:
        (files / "sub").mkdir()
        (files / "sub/up").symlink_to("../number.txt")
        (files / "same.txt").hardlink_to(files / "number.txt")

    task, where = task_with(tmp_path, "files", change), where_of(tmp_path)
    assert not await make_copy(task, where)
    assert (where.folder / "sub/up").readlink() == Path("../number.txt")
    assert (where.folder / "same.txt").read_text() == "1\n"


def test_a_task_that_comes_with_daiku_may_be_installed_by_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_with(tmp_path, "files", hard_link)
    assert find_stray(task) == "files/notes.txt"
    monkeypatch.setattr("daiku.eval.copies.find_builtin_folder", lambda: tmp_path / "tasks")
    assert find_stray(read_tasks(tmp_path / "tasks")[0]) == ""


@pytest.mark.parametrize(
    ("asked", "allowed", "network"),
    [(False, False, False), (True, False, False), (False, True, False), (True, True, True)],
)
async def test_setup_has_the_network_where_the_task_asks_for_it_and_the_user_allowed_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: bool,  # a row of a table
    allowed: bool,  # likewise
    network: bool,  # likewise
) -> None:
    """A23.3: both, and not one of them."""
    make_task(tmp_path / "tasks", "t", more=f'setup = ["true"]\nnetwork = {str(asked).lower()}')
    given: list[bool] = []

    async def run_line(_line: str, _where: CommandPlace, _seconds: float, *, network: bool) -> CommandEnd:
        given.append(network)
        return CommandEnd(0, "", 0.0)

    monkeypatch.setattr(copies, "run_line", run_line)
    assert not await make_copy(read_tasks(tmp_path / "tasks")[0], where_of(tmp_path), network=allowed)
    assert given == [network]


def test_a_snapshot_reads_no_file_through_a_link(tmp_path: Path) -> None:
    """A23.3: a link is kept and put back as a link."""
    task = task_with(tmp_path, "files")
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "kept").symlink_to(tmp_path / "home/.ssh/id_rsa")
    before = take_snapshot(copy, ["*"])
    assert SECRET.encode() not in [content for content, _ in before.files.values()]
    (copy / "kept").unlink()
    (copy / "kept").write_text("changed")
    assert find_changed(copy, ["*"], before) == ("kept",)
    restore(copy, ["*"], before, task)
    assert (copy / "kept").readlink() == tmp_path / "home/.ssh/id_rsa"
