"""Checkpoints: the files as they were, after restarts too, and nothing but them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from daiku.domain.errors import UsageError
from daiku.domain.patches import FileChange, Patch
from daiku.tools.checkpoints import CheckpointStore
from daiku.tools.disk import DiskWorkspace


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

        async def apply(self, patch: Patch, label: str):
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
