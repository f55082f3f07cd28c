"""Fingerprints of files by content: which files of the workspace differ after a command."""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from daiku.core.protected.paths import holds_secrets
from daiku.domain.work.patches import FileChange, Patch

MOST_FILES = 20_000
"""Files and folders of the roots. Of a larger workspace nothing is compared."""
LARGEST = 5_000_000
"""Bytes of a file whose content is compared. A larger one is a change if its size or time differs."""
MOST_SECONDS = 2.0
"""Seconds in which contents are read for the first time; of files that are left over, sizes and times are compared."""
_RACY_NS = 50_000_000
"""Nanoseconds after a change in which the time of a file may not show the next one."""
_CACHES = frozenset(
    {".git", ".hg", ".svn", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".tox", ".nox", ".hypothesis"}
)  # fmt: skip
"""Entries that programs write on the side; the records of version control are no files of the workspace."""
_PACKAGES = frozenset({"node_modules", ".venv", "venv", "site-packages"})
"""Folders that package managers fill. Whether there is one is compared, not what is in it."""
_KEY = os.urandom(16)
"""Key of the digests of files of secrets: without it a digest does not confirm a guess."""
_FOLDER = "folder"


class Mark(NamedTuple):
    """What the disk says of an entry without reading it. Of a folder only its mode counts."""

    mode: int
    inode: int = 0
    size: int = 0
    modified: int = 0
    changed: int = 0


class TreeState(NamedTuple):
    """Entries of the roots by path. `racy`: files that may change again without another time."""

    marks: Mapping[str, Mark]
    racy: frozenset[str]


_digests: dict[str, tuple[Mark, str]] = {}
"""By path: the digest of the content that the file had with this mark."""


def digest(data: bytes, path: str) -> str:
    """Return the digest of the content of `path`. That of a file of secrets differs from process to process."""
    name = "/".join(path.split("/")[-2:])
    return blake2b(data, digest_size=12, key=_KEY if holds_secrets(name) else b"").hexdigest()


def changes_of_patch(patch: Patch) -> Iterator[tuple[str, str, str]]:
    """Yield each path of an edit with its fingerprints before and after."""
    for change in patch.files:
        path, to = change.path, change.to or change.path
        before = "" if change.kind == "create" else _of_text(path, change, change.old)
        after = "" if change.kind == "delete" else _of_text(to, change, change.new)
        if to == path:
            yield path, before, after
        else:
            yield path, before, ""
            yield to, "", after


def _of_text(path: str, change: FileChange, text: str | None) -> str:
    """Return the fingerprint of a text; that of a file without a text is unlike any other."""
    return digest(text.encode("utf-8", "surrogatepass"), path) if text is not None else f"~{change.kind}"


def read_tree(roots: tuple[Path, ...]) -> TreeState | None:
    """Read the state of `roots` before a command; None if they hold too many files. Blocks for a moment."""
    marks = _read_marks(roots)
    if marks is None:
        return None
    until, now = time.monotonic() + MOST_SECONDS, time.time_ns()
    if len(_digests) > 4 * MOST_FILES:
        _digests.clear()
    for path, mark in marks.items():
        known = _digests.get(path)
        racy = now - mark.changed < _RACY_NS
        if (known is None or known[0] != mark or racy) and time.monotonic() < until:
            _digests[path] = (mark, _read_digest(path, mark))
    return TreeState(marks, frozenset(path for path, mark in marks.items() if now - mark.changed < _RACY_NS))


def changes_since(before: TreeState, roots: tuple[Path, ...]) -> tuple[tuple[str, str, str], ...] | None:
    """Return the paths that differ, with their fingerprints before and after; None if there are too many files. Blocks."""
    marks = _read_marks(roots)
    if marks is None:
        return None
    paths = dict.fromkeys((*before.marks, *marks))
    suspects = (path for path in paths if path in before.racy or before.marks.get(path) != marks.get(path))
    compared = ((path, *_compare(path, before.marks.get(path), marks.get(path))) for path in suspects)
    return tuple(each for each in compared if each[1] != each[2])


def _compare(path: str, old: Mark | None, new: Mark | None) -> tuple[str, str]:
    known = _digests.get(path)
    content = known[1] if known is not None and known[0] == old else ""
    now = _read_digest(path, new) if new is not None and (content or old is None) else ""
    if new is not None and now:
        _digests[path] = (new, now)
    return _fingerprint(old, content), _fingerprint(new, now)


def _fingerprint(mark: Mark | None, content: str) -> str:
    if mark is None:
        return ""
    return f"{content or f'~{mark.size}.{mark.modified}'}:{stat.S_IMODE(mark.mode):o}"


def _read_digest(path: str, mark: Mark) -> str:
    """Return the digest of what `path` holds; empty if it is too large, special, or cannot be read."""
    try:
        if stat.S_ISDIR(mark.mode):
            return _FOLDER
        if stat.S_ISLNK(mark.mode):
            return digest(os.fsencode(os.readlink(path)), path)  # noqa: PTH115  # the target as it is written
        if stat.S_ISREG(mark.mode) and mark.size <= LARGEST:
            return digest(Path(path).read_bytes(), path)
    except OSError:
        return ""
    return ""


def _read_marks(roots: tuple[Path, ...]) -> dict[str, Mark] | None:
    marks: dict[str, Mark] = {}
    pending = deque(str(root) for root in roots)
    while pending:
        try:
            with os.scandir(pending.popleft()) as entries:
                listed = list(entries)
        except OSError:
            continue  # gone meanwhile, or not ours to read
        for entry in listed:
            if entry.name in _CACHES or (mark := _mark(entry)) is None:
                continue
            marks[entry.path] = mark
            if len(marks) > MOST_FILES:
                return None
            if stat.S_ISDIR(mark.mode) and entry.name not in _PACKAGES:
                pending.append(entry.path)
    return marks


def _mark(entry: os.DirEntry[str]) -> Mark | None:
    try:
        now = entry.stat(follow_symlinks=False)
    except OSError:
        return None
    if stat.S_ISDIR(now.st_mode):
        return Mark(now.st_mode)
    return Mark(now.st_mode, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
