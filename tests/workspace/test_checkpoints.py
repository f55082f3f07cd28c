"""Checkpoints: the files as they were, after restarts too, and nothing but them."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

from daiku.domain.errors import UsageError
from daiku.domain.events import Event, Notice
from daiku.domain.tools import ToolCall
from daiku.domain.work.patches import FileChange, Patch
from daiku.settings.config import Config
from daiku.tools.files.changing import build_file_tools
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace

SLACK = 3
"""A busy machine may take so much longer than an idle one."""


@pytest.fixture
def folder(daiku_home: Path) -> Path:
    return daiku_home / "checkpoints"


def store(folder: Path, workspace: Path, quota: int = 10**9) -> CheckpointStore:
    return CheckpointStore(folder, DiskWorkspace([workspace]), quota=quota)


def contents(workspace: Path) -> dict[str, bytes]:
    return {str(p.relative_to(workspace)): p.read_bytes() for p in workspace.rglob("*") if p.is_file()}


def modes(folder: Path) -> list[int]:
    return [stat.S_IMODE(p.stat().st_mode) for p in folder.rglob("*") if p.is_file()]


async def test_a_checkpoint_brings_back_files_also_in_another_process(folder: Path, workspace: Path) -> None:
    (workspace / "a").write_bytes(b"one\r\n")
    (workspace / "b").write_bytes("日本".encode("utf-16"))
    before = contents(workspace)
    first = await store(folder, workspace).take("s", "r", ["a", "b", "new"])
    (workspace / "a").write_text("two")
    (workspace / "b").unlink()
    (workspace / "new").write_text("made")
    stats = await store(folder, workspace).restore(first)
    assert contents(workspace) == before
    assert {(s.path, s.kind) for s in stats} == {("a", "edit"), ("b", "edit"), ("new", "delete")}


async def test_later_checkpoints_of_the_session_go_back_too_others_do_not(
    folder: Path, workspace: Path
) -> None:
    for name in ("a", "b", "c"):
        (workspace / name).write_text("0")
    s = store(folder, workspace)
    await s.take("s", "r0", ["c"])
    (workspace / "c").write_text("1")
    first = await s.take("s", "r1", ["a"])
    (workspace / "a").write_text("1")
    await s.take("other", "r", ["b"])
    await s.take("s", "r2", ["a", "b"])
    (workspace / "a").write_text("2")
    (workspace / "b").write_text("2")
    await s.restore(first)
    assert contents(workspace) == {"a": b"0", "b": b"0", "c": b"1"}


async def test_restoring_twice_changes_nothing_the_second_time(folder: Path, workspace: Path) -> None:
    (workspace / "a").write_text("0")
    s = store(folder, workspace)
    first = await s.take("s", "r", ["a"])
    (workspace / "a").write_text("1")
    assert len(await s.restore(first)) == 1
    assert await s.restore(first) == ()


async def test_binary_files_come_back_byte_for_byte(folder: Path, workspace: Path) -> None:
    (workspace / "img").write_bytes(b"\x89PNG\x00\xff")
    s = store(folder, workspace)
    first = await s.take("s", "r", ["img"])
    (workspace / "img").unlink()
    await s.restore(first)
    assert contents(workspace) == {"img": b"\x89PNG\x00\xff"}


async def test_restoring_follows_no_link_and_writes_no_shared_inode(
    folder: Path, workspace: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.write_text("CANARY")
    (workspace / "a").write_text("0")
    s = store(folder, workspace)
    first = await s.take("s", "r", ["a"])
    (workspace / "a").unlink()
    os.link(outside, workspace / "a")
    await s.restore(first)
    assert (workspace / "a").read_text() == "0"
    (workspace / "a").unlink()
    (workspace / "a").symlink_to(outside)
    with pytest.raises(Exception, match="outside"):
        await s.restore(first)
    assert outside.read_text() == "CANARY"


async def test_unknown_foreign_and_damaged_checkpoints_are_refused_and_nothing_changes(
    folder: Path, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "a").write_text("0")
    s = store(folder, workspace)
    first = await s.take("s", "r", ["a"])
    with pytest.raises(UsageError, match="no checkpoint"):
        await s.restore("checkpoint_*")
    other = tmp_path / "elsewhere"
    other.mkdir()
    with pytest.raises(UsageError, match="belongs to"):
        await store(folder, other).restore(first)
    (workspace / "a").write_text("1")
    for content in (folder / "contents").glob("*/*"):
        content.write_bytes(b"junk")
    with pytest.raises(UsageError, match="damaged"):
        await s.restore(first)
    assert contents(workspace) == {"a": b"1"}


async def test_files_of_the_store_are_private_and_equal_contents_are_kept_once(
    folder: Path, workspace: Path
) -> None:
    (workspace / "a").write_text("same")
    (workspace / "b").write_text("same")
    s = store(folder, workspace)
    await s.take("s", "r", ["a", "b"])
    assert modes(folder) == [0o600, 0o600]


async def test_the_oldest_go_when_the_quota_is_reached(folder: Path, workspace: Path) -> None:
    s = store(folder, workspace, quota=30_000)
    ids: list[str] = []
    for _ in range(10):
        (workspace / "a").write_text(os.urandom(4000).hex())
        ids.append(await s.take("s", "r", ["a"]))
    size = sum(p.stat().st_size for p in (folder / "contents").rglob("*") if p.is_file())
    assert size <= 30_000
    assert [c.id for c in s.list("s")] == ids[-len(s.list("s")) :]
    await s.restore(ids[-1])
    with pytest.raises(UsageError):
        await s.restore(ids[0])


async def test_an_unsaved_buffer_is_what_is_kept(folder: Path, workspace: Path) -> None:
    (workspace / "a").write_text("disk")

    class Editor(DiskWorkspace):
        buffer = "typed, not saved"

        async def read(self, path: str):
            found = await super().read(path)
            return type(found)(found.path, self.buffer, version=3)

        async def apply(self, patch: Patch, label: str, *, exact: bool = False):
            (change,) = patch.files
            assert isinstance(change, FileChange)
            assert change.old == self.buffer
            self.buffer = change.new or ""
            return ()

    editor = Editor([workspace])
    s = CheckpointStore(folder, editor)
    first = await s.take("s", "r", ["a"])
    editor.buffer = "changed by a tool"
    await s.restore(first)
    assert editor.buffer == "typed, not saved"


async def test_undo_goes_back_run_by_run_and_says_when_nothing_is_left(folder: Path, workspace: Path) -> None:
    s = store(folder, workspace)
    (workspace / "a").write_text("start")
    for run in ("first", "second"):
        for step in ("1", "2"):
            await s.take("s", run, ["a"])
            (workspace / "a").write_text(run + step)
    await s.undo("s")
    assert (workspace / "a").read_text() == "first2"
    await store(folder, workspace).undo("s")  # as after a restart
    assert (workspace / "a").read_text() == "start"
    with pytest.raises(UsageError, match="nothing to undo"):
        await s.undo("s")
    await s.take("s", "third", ["a"])
    (workspace / "a").write_text("third")
    await s.undo("s")
    assert (workspace / "a").read_text() == "start"


async def test_every_folder_of_the_checkpoints_is_private(folder: Path, workspace: Path) -> None:
    (workspace / "a").write_text("one")
    await store(folder, workspace).take("s", "r", ["a"])
    assert {stat.S_IMODE(p.stat().st_mode) for p in [folder, *folder.rglob("*")] if p.is_dir()} == {0o700}


# ---- quota: the oldest go, those of open work last


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def size_of(folder: Path) -> int:
    return sum(p.stat().st_size for p in (folder / "contents").rglob("*") if p.is_file())


async def test_the_oldest_go_first_and_those_of_open_sessions_last(folder: Path, workspace: Path) -> None:
    s = CheckpointStore(
        folder, DiskWorkspace([workspace]), quota=40_000, open_sessions=lambda: ("under way",)
    )
    made: list[tuple[str, str]] = []
    for number in range(12):
        (workspace / "a").write_bytes(os.urandom(6000))
        session = "under way" if number < 2 else f"s{number}"
        made.append((session, await s.take(session, "r", ["a"])))
        os.utime(next(folder.glob(f"records/*/*-{made[-1][1]}.json")), (number + 10**9, number + 10**9))
    left = [name for _, name in made if s.get(name) is not None]
    assert size_of(folder) <= 40_000
    assert [name for session, name in made if session == "under way"] == left[:2]
    assert left[2:] == [name for _, name in made][-len(left[2:]) :]
    assert s.swept() == len(made) - len(left)
    assert s.swept() == 0


async def test_what_is_too_old_goes_unless_its_work_is_not_over(folder: Path, workspace: Path) -> None:
    (workspace / "a").write_text("0")
    first = store(folder, workspace)
    old, opened, new = [await first.take(name, "r", ["a"]) for name in ("old", "under way", "new")]
    for name in (old, opened):
        os.utime(next(folder.glob(f"records/*/*-{name}.json")), (10**9, 10**9))
    s = CheckpointStore(folder, DiskWorkspace([workspace]), open_sessions=lambda: ("under way",))
    (workspace / "a").write_text("1")
    await s.take("another", "r", ["a"])
    assert s.get(old) is None
    assert s.get(opened) is not None
    assert s.get(new) is not None
    (workspace / "a").write_text("2")
    await s.restore(new)
    assert contents(workspace) == {"a": b"0"}


async def test_that_old_ones_went_is_said(folder: Path, workspace: Path) -> None:
    s = store(folder, workspace, quota=9000)
    events: list[Event] = []
    context = ToolContext("s", "r", "c", DiskWorkspace([workspace]), s, Config(), emit=events.append)
    registry = ToolRegistry(build_file_tools())
    for number in range(3):
        text = "".join(hashlib.sha256(f"{number} {i}".encode()).hexdigest() + "\n" for i in range(90))
        call = ToolCall(tool="files/write", args={"path": "a", "content": text})
        assert (await registry.call(call, context)).ok
    told = [e.text for e in events if isinstance(e, Notice)]
    assert told
    assert "old checkpoints because checkpoint storage was full" in told[0]


async def test_what_a_forgotten_session_kept_goes_with_it_but_not_what_others_hold(
    folder: Path, workspace: Path
) -> None:
    (workspace / "a").write_text("shared")
    (workspace / "b").write_text("own")
    s = store(folder, workspace)
    gone = await s.take("s", "r", ["a", "b"])
    left = await s.take("t", "r", ["a"])
    s.forget("s")
    assert s.list("s") == ()
    assert s.get(gone) is None
    assert len([p for p in (folder / "contents").rglob("*") if p.is_file()]) == 1
    (workspace / "a").write_text("1")
    await s.restore(left)
    assert (workspace / "a").read_text() == "shared"


# ---- nested repositories, several folders


async def test_files_of_a_nested_repository_are_kept_and_nothing_of_git_is_touched(
    folder: Path, workspace: Path
) -> None:
    for place in (workspace, workspace / "vendor/inner"):
        place.mkdir(parents=True, exist_ok=True)
        run("git", "init", "-q", str(place))
        (place / "f").write_text("0")
    before = contents(workspace)
    s = store(folder, workspace)
    point = await s.take("s", "r", ["f", "vendor/inner/f"])
    (workspace / "f").write_text("1")
    (workspace / "vendor/inner/f").unlink()
    await s.restore(point)
    assert contents(workspace) == before


async def test_several_folders_also_where_one_was_added_since(folder: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for place in (one, two):
        place.mkdir()
        (place / "a").write_text(place.name)
    single = await store(folder, one).take("s", "r", ["a"])
    both = CheckpointStore(folder, DiskWorkspace([one, two]))
    point = await both.take("s", "r", ["one/a", "two/a"])
    (one / "a").write_text("1")
    (two / "a").write_text("2")
    await both.restore(point)
    assert ((one / "a").read_text(), (two / "a").read_text()) == ("one", "two")
    (one / "a").write_text("1")
    (two / "a").write_text("2")
    await both.restore(single)
    assert ((one / "a").read_text(), (two / "a").read_text()) == ("one", "two")
    with pytest.raises(UsageError, match="belongs to"):
        await store(folder, two).restore(single)


# ---- undo and redo


async def test_restoring_is_a_checkpoint_itself_and_undo_goes_further_back_each_time(
    folder: Path, workspace: Path
) -> None:
    s = store(folder, workspace)
    for number, run in enumerate(("r1", "r1", "r2", "r3")):
        (workspace / "a").write_text(str(number))
        await s.take("s", run, ["a"])
    (workspace / "a").write_text("end")
    seen: list[str] = []
    redo = ""
    for _ in range(3):
        redo = (await s.bring_back(s.last_edits("s"))).redo
        seen.append((workspace / "a").read_text())
    assert seen == ["3", "2", "0"]
    with pytest.raises(UsageError, match="nothing to undo"):
        s.last_edits("s")
    await s.restore(redo)
    assert (workspace / "a").read_text() == "2"
    await s.undo("s")
    assert (workspace / "a").read_text() == "0"


async def test_a_return_in_a_copied_session_can_be_taken_back_there_and_touches_no_other(
    folder: Path, workspace: Path
) -> None:
    kept, file = store(folder, workspace), workspace / "a.txt"
    file.write_text("one\n")
    edit = await kept.take("s", "r1", ["a.txt"])
    file.write_text("two\n")
    redo = (await kept.bring_back(edit)).redo
    names = kept.copy("copy", [edit, redo], [edit])
    assert kept.require(names[redo]).undid == (names[edit],)
    await kept.restore(names[redo])
    assert file.read_text() == "two\n"
    assert (kept.require(names[edit]).restored, kept.require(edit).restored) == (False, True)


async def test_the_names_of_checkpoints_find_nothing_else(folder: Path, workspace: Path) -> None:
    (workspace / "a").write_text("0")
    s = store(folder, workspace)
    await s.take("s", "r", ["a"])
    for name in ("*", "checkpoint_*", "../x", "", "checkpoint_" + "0" * 16):
        assert s.get(name) is None
        with pytest.raises(UsageError, match="no checkpoint"):
            s.require(name)


# ---- size, speed, death


@pytest.mark.slow  # it measures time, which a machine that runs the whole fast loop has none of
async def test_fifty_files_among_very_many_take_a_moment_and_little_room(
    folder: Path, workspace: Path
) -> None:
    """Only what is touched is looked at: the number of other files does not matter."""
    for number in range(500):
        place = workspace / f"d{number % 50}"
        place.mkdir(exist_ok=True)
        (place / f"f{number}").write_text("x")
    names = [f"d0/big{number}.py" for number in range(50)]
    touched = 0
    for name in names:
        data = os.urandom(3000).hex().encode()
        (workspace / name).write_bytes(data)
        touched += len(data)
    s = store(folder, workspace)
    times: list[float] = []
    for number in range(7):
        for name in names:
            (workspace / name).write_bytes((workspace / name).read_bytes()[:-1] + str(number).encode())
        began = perf_counter()
        await s.take("s", "r", names)
        times.append(perf_counter() - began)
    assert sorted(times)[3] < 0.1 * SLACK
    assert size_of(folder) <= 2 * touched * len(times)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace
async def main(folder, workspace):
    s = CheckpointStore(Path(folder), DiskWorkspace([Path(workspace)]))
    print(await s.take("s", "r", [f"f{i}" for i in range(50)]), flush=True)
    for i in range(50):
        Path(workspace, f"f{i}").write_text("torn")
        if i == 30:
            os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.slow  # a process of its own
async def test_a_process_that_was_killed_in_the_middle_leaves_a_way_back(
    folder: Path, workspace: Path
) -> None:
    for number in range(50):
        (workspace / f"f{number}").write_text(f"{number}\n" * 20)
    before = contents(workspace)
    done = run(sys.executable, "-c", KILLED, str(folder), str(workspace))
    assert done.returncode == -9, done.stderr
    assert contents(workspace) != before
    stats = await store(folder, workspace).restore(done.stdout.strip())
    assert contents(workspace) == before
    assert len(stats) == 31
