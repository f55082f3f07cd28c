"""Protected places and files of secrets in a folder tree; only folders that changed are read again."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import translate
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Literal, get_args

from daiku.dataclass import dataclass, field
from daiku.guard.rules.protected.effects import READABLE
from daiku.guard.rules.protected.names import (
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    PROTECTED_PAIRS,
    SECRET_FILES,
    SECRET_FOLDERS,
    explain_protection,
    holds_secrets,
)
from daiku.guard.sandbox.gitfolder import ALTERNATES, FREE_FOLDERS, STATE_FOLDERS, free_file, runs_commands
from daiku.texts.rules.patterns import lazy

Role = Literal["plain", "protected", "git", "modules", "worktrees", "packages", "programs"]
"""What a folder is: `protected`: everything in it counts; `modules`, `worktrees`: git folders lie in it;
`packages`: a package manager fills it; `programs`: editors run what lies in it."""
Kind = Literal["protected", "judged", "program", "secret", "socket"]
"""What a place counts as. `judged`: its readers act on its text, or it is a link. `program`: editors run it."""
LONGEST_SECONDS = 5.0
MOST_PROTECTED = 20_000
MOST_JUDGED = 20_000
"""Files of one tree that are judged by their text."""
SETTLED_NS = 50_000_000
"""A folder that changed less than this before it was read may change again with the same time."""
# What package managers fill, by the hundred thousand files; whoever can write there is run from there anyway.
_FILLED = frozenset(
    {"node_modules", "bower_components", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".pytest_cache",
     ".ruff_cache", ".hypothesis", "site-packages", ".pnpm-store", ".terraform", ".gradle", ".next", ".nuxt", ".turbo"}
)  # fmt: skip
_PROGRAM_FOLDERS = frozenset({".bin", "bin", "Scripts"})
_LIBRARIES = lazy(r"lib|lib64|Lib|python[\d.]+|site-packages")
_STARTED = lazy(r".*\.pth|(?:site|user)customize\.py|pyvenv\.cfg")
_PARTS_OF_ENVIRONMENT = lazy(r"bin|Scripts|lib|lib64|Lib|pyvenv\.cfg")
"""Entries of a folder with a pyvenv.cfg that count as installed packages; any other is looked at as elsewhere."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Data that shows if a file changed: inode, change time, size, link target; of a folder the inode."""

    inode: int
    changed: int
    size: int
    link: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """Places in a tree, by kind: absolute paths with their marks. `complete`: all of the tree was looked at."""

    marks: Mapping[Kind, dict[str, Mark]]
    complete: bool


@dataclass(frozen=True, slots=True)
class _Folder:
    """One folder as it was read: its stamp, what of it has to be looked at, and the folders to go on with."""

    stamp: tuple[int, int]
    settled: bool
    entries: tuple[tuple[Kind, str], ...]
    inner: tuple[tuple[str, Role], ...]


@lru_cache(maxsize=16)
def tree_of(root: Path, role: Role = "plain") -> Tree:
    """Return the tree of `root`, one per process."""
    return Tree(root, role)


@dataclass(slots=True)
class Tree:
    """What is known of the tree below `root`, a real path."""

    root: Path
    role: Role = "plain"
    _known: dict[tuple[str, Role], _Folder] = field(default_factory=dict[tuple[str, Role], _Folder])
    _lock: Lock = field(default_factory=Lock)

    def look(self) -> Found:
        """Scan the tree and return its current state; only folders that changed are read again."""
        with self._lock:
            return self._look()

    def _look(self) -> Found:
        until = time.monotonic() + LONGEST_SECONDS
        marks: dict[Kind, dict[str, Mark]] = {kind: {} for kind in get_args(Kind)}
        pending: list[tuple[str, Role]] = [(str(self.root), self.role)]
        seen: dict[tuple[str, Role], _Folder] = {}
        while pending and time.monotonic() < until and len(marks["protected"]) < MOST_PROTECTED:
            at = pending.pop()
            folder = self._folder(*at)
            if folder is None:
                continue
            seen[at] = folder
            for kind, name in folder.entries:
                path = f"{at[0]}/{name}"
                if (kind != "judged" or len(marks[kind]) < MOST_JUDGED) and (mark := _mark(path)) is not None:
                    marks[kind][path] = mark
            pending.extend((f"{at[0]}/{name}", role) for name, role in folder.inner)
        self._known = seen
        return Found(marks, not pending)

    def _folder(self, path: str, role: Role) -> _Folder | None:
        try:
            now = os.lstat(path)
            stamp = (now.st_ino, now.st_ctime_ns)
            known = self._known.get((path, role))
            if known is not None and known.stamp == stamp and known.settled:
                return known
            at = time.time_ns()
            with os.scandir(path) as entries:
                return _read(path, role, list(entries), stamp, settled=at - now.st_ctime_ns > SETTLED_NS)
        except OSError:  # gone meanwhile, or not ours to read
            return None


def _mark(path: str) -> Mark | None:
    try:
        now = os.lstat(path)
        if stat.S_ISDIR(now.st_mode):
            return Mark(now.st_ino, 0, 0)
        link = str(Path(path).readlink()) if stat.S_ISLNK(now.st_mode) else ""
    except OSError:
        return None
    return Mark(now.st_ino, now.st_ctime_ns, now.st_size, link)


def _read(
    path: str, role: Role, entries: list[os.DirEntry[str]], stamp: tuple[int, int], *, settled: bool
) -> _Folder:
    found: list[tuple[Kind, str]] = []
    inner: list[tuple[str, Role]] = []
    parent = Path(path).name.lower()
    environment = role == "plain" and any(entry.name == "pyvenv.cfg" for entry in entries)
    for entry in entries:
        name = entry.name
        folder = entry.is_dir(follow_symlinks=False)
        if not folder and not entry.is_file(follow_symlinks=False) and _is_socket(entry):
            found.append(("socket", name))
        likely = parent in _PARENTS or _LIKELY(name)
        if (
            likely
            and entry.is_file(follow_symlinks=False)
            and role in ("plain", "protected")
            and holds_secrets(name)
        ):
            found.append(("secret", name))
        if environment and _PARTS_OF_ENVIRONMENT.fullmatch(name):
            _package_entry(name, "packages", found, inner, folder=folder)
        elif role == "plain":
            guarded = likely and _is_protected(parent, name)
            if folder:
                _inner(name, found, inner, guarded=guarded)
            elif guarded:
                found.append(("protected", name))
            elif READABLE.search(name) or entry.is_symlink():
                found.append(("judged", name))
        elif role in ("packages", "programs"):
            _package_entry(name, role, found, inner, folder=folder)
        elif role == "protected":
            found.append(("protected", name))
            if folder:
                inner.append((name, "protected"))
        else:
            _git_entry(Path(path), name, role, found, inner, folder=folder)
    if role == "git":
        settled = False  # what matters in it lies deeper than its own entries
    return _Folder(stamp, settled, tuple(found), tuple(inner))


def _is_socket(entry: os.DirEntry[str]) -> bool:
    return not entry.is_symlink() and stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode)


def _inner(name: str, found: list[tuple[Kind, str]], inner: list[tuple[str, Role]], *, guarded: bool) -> None:
    if name == ".git":
        inner.append((name, "git"))
    elif guarded:
        found.append(("protected", name))
        inner.append((name, "protected"))
    else:
        inner.append((name, "packages" if name in _FILLED else "plain"))


def _package_entry(
    name: str, role: Role, found: list[tuple[Kind, str]], inner: list[tuple[str, Role]], *, folder: bool
) -> None:
    if role == "programs":
        found.append(("program", name))
    elif folder and name in _PROGRAM_FOLDERS:
        inner.append((name, "programs"))
    elif folder and _LIBRARIES.fullmatch(name):
        inner.append((name, "packages"))
    elif not folder and _STARTED.fullmatch(name):
        found.append(("program", name))


def _git_entry(
    path: Path,
    name: str,
    role: Role,
    found: list[tuple[Kind, str]],
    inner: list[tuple[str, Role]],
    *,
    folder: bool,
) -> None:
    place = path / name
    if not folder:
        if place.is_symlink() or role == "modules" or not free_file(name):
            found.append(("protected", name))
    elif role == "worktrees":
        inner.append((name, "git"))
    elif role == "modules":
        inner.append((name, "git" if (place / "HEAD").exists() else "modules"))
    elif name == "modules":
        inner.append((name, "modules"))
    elif name == "worktrees":
        inner.append((name, "worktrees"))
    elif name in FREE_FOLDERS:
        listed = (each for each in ALTERNATES if each.startswith(f"{name}/") and (path / each).exists())
        found.extend(("protected", each) for each in listed)
    elif name in STATE_FOLDERS:
        if runs_commands(place):
            found.append(("protected", name))
    else:
        inner.append((name, "protected"))


@dataclass(frozen=True, slots=True)
class _Likely:
    """A quick look at a plain name, so that few of a hundred thousand need the whole one."""

    names: frozenset[str]
    starts: tuple[str, ...]
    ends: tuple[str, ...]
    others: re.Pattern[str]

    def __call__(self, name: str) -> bool:
        low = name.lower()
        if low in self.names or low.endswith(self.ends) or low.startswith(self.starts):
            return True
        return _UNUSUAL.search(name) is not None or self.others.match(low) is not None


_UNUSUAL = lazy(r"[^!-~ ]|[%\\:~]|[. ]$|^ ")
"""What names are spelled with that mean another to some file system."""
_WILD = lazy(r"[*?\[]")


def _likely(patterns: Iterable[str]) -> _Likely:
    names: set[str] = set()
    starts: list[str] = []
    ends: list[str] = []
    others = [r"(?!)"]
    for pattern in patterns:
        if not _WILD.search(pattern):
            names.add(pattern)
        elif not _WILD.search(pattern[1:]) and pattern[0] == "*":
            ends.append(pattern[1:])
        elif not _WILD.search(pattern[:-1]) and pattern[-1] == "*":
            starts.append(pattern[:-1])
        else:
            others.append(translate(pattern))
    return _Likely(frozenset(names), tuple(starts), tuple(ends), lazy("|".join(others)))


_LIKELY = _likely((*PROTECTED_FILES, *PROTECTED_FOLDERS, *SECRET_FILES, *SECRET_FOLDERS))
_PARENTS = frozenset(parent for parent, _ in PROTECTED_PAIRS)


def _is_protected(parent: str, name: str) -> bool:
    """Report whether an entry `name` of the ordinary folder `parent` (lower case) changes what tools do later."""
    return bool(explain_protection(name)) or (
        parent in _PARENTS and bool(explain_protection(f"{parent}/{name}"))
    )


def topmost(paths: Iterable[str]) -> Iterator[str]:
    """Those of `paths` that lie in none of the others."""
    kept: set[str] = set()
    for path in sorted(paths, key=lambda p: (p.count("/"), p)):
        parts = path.split("/")
        if not any("/".join(parts[:at]) in kept for at in range(2, len(parts))):
            kept.add(path)
            yield path
