"""Read the workspace's folders and manifests from disk, with limits, for `daiku.tools.rules.code.project`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from daiku.dataclass import dataclass, field
from daiku.tools.rules.code.project import MANIFEST_LIMIT, Folder, Package, package_facts
from daiku.tools.rules.code.projectkinds import READ, packages_of

DEPTH = 3
"""Folders below a root that are looked into: packages/name, apps/web/api."""
MOST_FOLDERS = 300
MOST_TEXT = 400_000
"""Bytes of all manifests together: what stands in the first ones is what matters."""
MOST_ENTRIES = 2000
"""Entries of one folder; a folder with more is none that a package begins in."""
SKIPPED = frozenset(
    {
        "node_modules", "bower_components", "vendor", "target", "dist", "build", "out", "venv", "env",
        "__pycache__", "site-packages", "third_party", "testdata", "fixtures", "coverage", "Pods",
    }
)  # fmt: skip
ENVIRONMENTS = (".venv", "venv", "env")
INTERPRETERS = ("bin/python", "Scripts/python.exe")

SETTLED_NS = 2_000_000_000
KEPT = 8
"""Workspaces whose facts are kept; all but the first look costs a stat for each folder and manifest."""

Stamp: TypeAlias = tuple[int, int]
"""When a path was changed last, in ns, and its size."""


@dataclass(slots=True)
class _Room:
    """How much may still be read, and the stamps from before what was looked at."""

    left: int = MOST_TEXT
    stamps: dict[Path, Stamp] = field(default_factory=dict["Path", "Stamp"])

    def watch(self, path: Path) -> Path:
        if (stamp := _stamp(path)) is not None:  # what is not there yet changes its folder when it comes
            self.stamps[path] = stamp
        return path

    @property
    def settled(self) -> bool:
        """Whether a later change is sure to differ: some file systems count in seconds."""
        newest = max((changed for changed, _ in self.stamps.values()), default=0)
        return bool(self.stamps) and time.time_ns() - newest > SETTLED_NS


_kept: dict[tuple[Path, ...], tuple[dict[Path, Stamp], str]] = {}


def project_facts(roots: tuple[Path, ...]) -> str:
    """Return the facts that manifests and lock files tell of the project in `roots`; empty without any."""
    stamps, told = _kept.get(roots, ({}, ""))
    if stamps and all(_stamp(path) == stamp for path, stamp in stamps.items()):
        return told
    room = _Room()
    named = ((root, "" if place == 0 else str(root)) for place, root in enumerate(roots))
    told = package_facts(tuple(chain.from_iterable(_packages(root, name, room) for root, name in named)))
    _kept.pop(roots, None)
    if room.settled:
        _kept[roots] = room.stamps, told
    if len(_kept) > KEPT:
        del _kept[next(iter(_kept))]
    return told


def _stamp(path: Path) -> Stamp | None:
    """Differs when an entry of a folder came or went, or the text of a file changed."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _packages(root: Path, name: str, room: _Room) -> Iterator[Package]:
    """The packages of a root, nearest folders first."""
    left, room.left = MOST_FOLDERS, MOST_TEXT
    level: list[tuple[Path, str, tuple[Folder, ...]]] = [(root, name, ())]
    for _ in range(DEPTH + 1):
        below: list[tuple[Path, str, tuple[Folder, ...]]] = []
        for place, path, above in level:
            if left == 0:
                return
            left -= 1
            folder = _folder(place, path, room)
            if folder is None:
                continue
            yield from packages_of(folder, above)
            here = (folder, *above)
            below += [
                (place / child, f"{path}/{child}" if path else child, here)
                for child in sorted(folder.folders)
                if child not in SKIPPED and not child.startswith(".") and _plain(child)
            ]
        level = below


def _plain(name: str) -> bool:
    """Whether a name can stand in a command and in a prompt as it is."""
    return all(char.isalnum() or char in "._-+@" for char in name) and len(name) <= 60 and name[0] != "-"


def _folder(place: Path, path: str, room: _Room) -> Folder | None:
    files: set[str] = set()
    folders: set[str] = set()
    try:
        with os.scandir(room.watch(place)) as entries:
            for number, entry in enumerate(entries):
                if number == MOST_ENTRIES:
                    return None
                if entry.is_dir(follow_symlinks=False):
                    folders.add(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.add(entry.name)
    except OSError:
        return None
    texts = {name: _text(place / name, room) for name in sorted(files & READ)}
    return Folder(path, frozenset(files), frozenset(folders), texts, _interpreter(place, room))


def _text(path: Path, room: _Room) -> str:
    """A manifest's text; one that is too long to be one is as good as empty."""
    try:
        with room.watch(path).open("rb") as file:
            data = file.read(min(MANIFEST_LIMIT, room.left) + 1)
    except OSError:
        return ""
    room.left = max(0, room.left - len(data))
    return "" if len(data) > MANIFEST_LIMIT or not room.left else data.decode("utf-8-sig", "replace")


def _interpreter(place: Path, room: _Room) -> str:
    for name in ENVIRONMENTS:
        if (room.watch(place / name) / "pyvenv.cfg").is_file():
            return next((f"{name}/{p}" for p in INTERPRETERS if (place / name / p).exists()), "")
    return ""
