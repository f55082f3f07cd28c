"""Read the workspace's folders and manifests from disk, with limits, for `daiku.tools.rules.code.project`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from daiku.dataclass import dataclass, field
from daiku.tools.rules.code.project import MANIFEST_LIMIT, Package, ProjectFolder, format_packages
from daiku.tools.rules.code.projectkinds import READ_FILES, detect_packages

DEPTH = 3
"""Maximum depth of folders below a root: packages/name, apps/web/api."""
MOST_FOLDERS = 300
MOST_TEXT = 400_000
"""Maximum bytes of all manifests of a root together; the first ones matter most."""
MOST_ENTRIES = 2000
"""Maximum entries of one folder; a larger folder is no package."""
SKIPPED = frozenset(
    {
        "node_modules", "bower_components", "vendor", "target", "dist", "build", "out", "venv", "env",
        "__pycache__", "site-packages", "third_party", "testdata", "fixtures", "coverage", "Pods",
    }
)  # fmt: skip
ENVIRONMENTS = (".venv", "venv", "env")
INTERPRETERS = ("bin/python", "Scripts/python.exe")

SETTLED_NS = 2_000_000_000
CACHE_SIZE = 8
"""Maximum number of workspaces in the cache; a cache hit costs one stat per folder and manifest."""

Stamp: TypeAlias = tuple[int, int]
"""Modification time in ns and size in bytes of a path."""


@dataclass(slots=True)
class _Scan:
    """A running scan: bytes that may still be read, and the stamps of the paths before they were read."""

    left: int = MOST_TEXT
    stamps: dict[Path, Stamp] = field(default_factory=dict["Path", "Stamp"])

    def watch(self, path: Path) -> Path:
        if (stamp := _read_stamp(path)) is not None:  # a new file changes its folder's stamp
            self.stamps[path] = stamp
        return path

    @property
    def settled(self) -> bool:
        """True if any later change changes a stamp: some file systems count in whole seconds."""
        newest = max((changed for changed, _ in self.stamps.values()), default=0)
        return bool(self.stamps) and time.time_ns() - newest > SETTLED_NS


_cache: dict[tuple[Path, ...], tuple[dict[Path, Stamp], str]] = {}


def read_project_facts(roots: tuple[Path, ...]) -> str:
    """Return the facts on the project in `roots` from its manifests and lock files; empty if there are none."""
    stamps, facts = _cache.get(roots, ({}, ""))
    if stamps and all(_read_stamp(path) == stamp for path, stamp in stamps.items()):
        return facts
    scan = _Scan()
    named_roots = ((root, "" if index == 0 else str(root)) for index, root in enumerate(roots))
    facts = format_packages(
        tuple(chain.from_iterable(_find_packages(root, name, scan) for root, name in named_roots))
    )
    _cache.pop(roots, None)
    if scan.settled:
        _cache[roots] = scan.stamps, facts
    if len(_cache) > CACHE_SIZE:
        del _cache[next(iter(_cache))]
    return facts


def _read_stamp(path: Path) -> Stamp | None:
    """Return a path's stamp, which changes with a folder's entries or a file's text; None if it cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _find_packages(root: Path, name: str, scan: _Scan) -> Iterator[Package]:
    """Yield the packages of a root, nearest folders first."""
    folders_left, scan.left = MOST_FOLDERS, MOST_TEXT
    level: list[tuple[Path, str, tuple[ProjectFolder, ...]]] = [(root, name, ())]
    for _ in range(DEPTH + 1):
        below: list[tuple[Path, str, tuple[ProjectFolder, ...]]] = []
        for place, path, above in level:
            if folders_left == 0:
                return
            folders_left -= 1
            folder = _read_folder(place, path, scan)
            if folder is None:
                continue
            yield from detect_packages(folder, above)
            ancestors = (folder, *above)
            below += [
                (place / child, f"{path}/{child}" if path else child, ancestors)
                for child in sorted(folder.folders)
                if child not in SKIPPED and not child.startswith(".") and _is_plain_name(child)
            ]
        level = below


def _is_plain_name(name: str) -> bool:
    """Return True if a folder name can be used in a command and a prompt without quoting."""
    return all(char.isalnum() or char in "._-+@" for char in name) and len(name) <= 60 and name[0] != "-"


def _read_folder(place: Path, path: str, scan: _Scan) -> ProjectFolder | None:
    files: set[str] = set()
    folders: set[str] = set()
    try:
        with os.scandir(scan.watch(place)) as entries:
            for number, entry in enumerate(entries):
                if number == MOST_ENTRIES:
                    return None
                if entry.is_dir(follow_symlinks=False):
                    folders.add(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.add(entry.name)
    except OSError:
        return None
    texts = {name: _read_text(place / name, scan) for name in sorted(files & READ_FILES)}
    return ProjectFolder(path, frozenset(files), frozenset(folders), texts, _find_interpreter(place, scan))


def _read_text(path: Path, scan: _Scan) -> str:
    """Read a manifest's text; empty if it is too long or cannot be read."""
    try:
        with scan.watch(path).open("rb") as file:
            data = file.read(min(MANIFEST_LIMIT, scan.left) + 1)
    except OSError:
        return ""
    scan.left = max(0, scan.left - len(data))
    return "" if len(data) > MANIFEST_LIMIT or not scan.left else data.decode("utf-8-sig", "replace")


def _find_interpreter(place: Path, scan: _Scan) -> str:
    for name in ENVIRONMENTS:
        if (scan.watch(place / name) / "pyvenv.cfg").is_file():
            return next((f"{name}/{p}" for p in INTERPRETERS if (place / name / p).exists()), "")
    return ""
