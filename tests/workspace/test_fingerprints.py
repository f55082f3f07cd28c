"""Fingerprints of a tree: by content, within limits, and only of files whose marks differ."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from daiku.domain.work.patches import FileChange, Patch
from daiku.workspace import fingerprints
from daiku.workspace.fingerprints import changes_of_patch, changes_since, digest, read_tree
from tests.cases import for_each


def changed(folder: Path, act: Callable[[], object]) -> dict[str, tuple[str, str]]:
    """Return what `act` changed below `folder`, by name."""
    before = read_tree((folder,))
    assert before is not None
    act()
    found = changes_since(before, (folder,))
    assert found is not None
    return {Path(path).relative_to(folder).as_posix(): (old, new) for path, old, new in found}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "b.txt").write_text("two")
    return tmp_path


def rewrite(file: Path, text: str) -> None:
    """Write `text` as programs do that replace the file, with the times that it had."""
    times = file.stat()
    file.with_suffix(".new").write_text(text)
    file.with_suffix(".new").replace(file)
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))


def test_the_same_content_in_another_file_is_no_change(folder: Path) -> None:
    """A23.2"""
    assert changed(folder, lambda: rewrite(folder / "a.txt", "one")) == {}
    assert set(changed(folder, lambda: rewrite(folder / "a.txt", "two"))) == {"a.txt"}


def test_a_change_in_the_same_tick_of_the_clock_is_seen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.2: a file that was new when it was read is read again, whatever its times say."""
    read = fingerprints._read_marks
    marks = read((folder,))
    monkeypatch.setattr(fingerprints, "_read_marks", lambda _: marks)
    assert set(changed(folder, lambda: (folder / "a.txt").write_text("two"))) == {"a.txt"}


def test_a_mode_is_part_of_a_fingerprint(folder: Path) -> None:
    """A23.2"""
    text = digest(b"one", "a.txt")
    assert changed(folder, lambda: (folder / "a.txt").chmod(0o700)) == {
        "a.txt": (f"{text}:644", f"{text}:700")
    }


def test_only_files_with_another_mark_are_read_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A23.2: the second look reads what the first one did not."""
    monkeypatch.setattr(fingerprints, "_RACY_NS", 0)
    read: list[str] = []
    real = fingerprints._read_digest
    monkeypatch.setattr(
        fingerprints, "_read_digest", lambda path, mark: (read.append(path), real(path, mark))[1]
    )
    changed(folder, lambda: (folder / "a.txt").write_text("new"))
    first = len(read)
    changed(folder, (folder / "in" / "b.txt").touch)
    names = [Path(path).name for path in read]
    assert (names.count("a.txt"), names.count("b.txt"), len(read) - first) == (2, 2, 1)


def test_a_large_file_counts_by_its_size_and_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A23.2"""
    monkeypatch.setattr(fingerprints, "LARGEST", 2)
    assert set(changed(folder, lambda: (folder / "a.txt").write_text("other"))) == {"a.txt"}
    assert changed(folder, lambda: None) == {}


def test_contents_that_were_not_read_in_time_count_by_size_and_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A23.2"""
    monkeypatch.setattr(fingerprints, "MOST_SECONDS", -1)
    assert changed(folder, lambda: None) == {}
    assert set(changed(folder, lambda: (folder / "a.txt").write_text("other"))) == {"a.txt"}


def test_too_many_files_are_not_compared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A23.2"""
    before = read_tree((folder,))
    assert before is not None
    monkeypatch.setattr(fingerprints, "MOST_FILES", 2)
    assert (read_tree((folder,)), changes_since(before, (folder,))) == (None, None)


def test_caches_and_packages_are_not_read(folder: Path) -> None:
    """A23.2: of a folder of packages only counts that it is there."""

    def act() -> None:
        for name in ("__pycache__", ".git", "node_modules"):
            (folder / name).mkdir()
            (folder / name / "x").write_text("x")

    assert set(changed(folder, act)) == {"node_modules"}


@for_each(
    ("change", "transitions"),
    [
        (FileChange(path="a", kind="edit", old="x", new="y"), [("a", "x", "y")]),
        (FileChange(path="a", kind="create", new=""), [("a", None, "")]),
        (FileChange(path="a", kind="delete", old="x"), [("a", "x", None)]),
        (FileChange(path="a", kind="rename", old="x", new="x", to="b"), [("a", "x", None), ("b", None, "x")]),
        (FileChange(path="a", kind="rename", old="x", new="x", to="a"), [("a", "x", "x")]),
    ],
)
def test_an_edit_has_the_fingerprints_of_its_texts(
    change: FileChange, transitions: list[tuple[str, str | None, str | None]]
) -> None:
    """A23.2"""
    expected = [
        (path, *("" if text is None else digest(text.encode(), path) for text in texts))
        for path, *texts in transitions
    ]
    assert list(changes_of_patch(Patch(files=(change,)))) == expected


def test_a_deleted_file_without_a_text_was_there() -> None:
    """A23.2"""
    assert list(changes_of_patch(Patch(files=(FileChange(path="a.png", kind="delete"),)))) == [
        ("a.png", "~delete", "")
    ]


def test_the_digest_of_a_file_of_secrets_confirms_no_guess() -> None:
    """A23.2: only the process that made it can make it again."""
    code = "from daiku.workspace.fingerprints import digest; print(digest(b'x', 'a.py'), digest(b'x', '/in/.env'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    plain, secret = done.stdout.split()
    assert (plain, digest(b"x", "b.py")) == (digest(b"x", "a.py"), plain)
    assert secret not in (plain, digest(b"x", "/in/.env"))
    assert digest(b"x", "/in/.env") == digest(b"x", ".env")
