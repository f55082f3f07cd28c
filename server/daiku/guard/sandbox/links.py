"""Files of the workspace that are hard links to files outside, as package managers make them from their stores."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from daiku.dataclass import dataclass

MOST_FILES = 200_000
"""Files that are looked at in one root."""
MOST_LINKED = 24
"""Places that are mounted for reading only; with more, the folders above them are."""
_PACKAGE_FOLDERS = frozenset({"node_modules", ".venv", "venv", "site-packages", "vendor"})
_SETTLED_NS = 50_000_000
_Link = tuple[str, tuple[int, int], int]
"""A file with several names: its path, device and inode, and their number."""


@dataclass(frozen=True, slots=True)
class _Folder:
    stamp: tuple[int, int]
    count: int
    links: tuple[_Link, ...]
    inner: tuple[str, ...]


_known: dict[str, _Folder] = {}
"""Folders that were read; one is read again when an entry of it came or went."""


def find_linked(roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Return places to protect from writes: hard links to files outside the roots, or package entries with them.

    A sandboxed command cannot create such a link, so the result stays valid.
    """
    names: dict[tuple[int, int], list[Path]] = {}
    wanted: dict[tuple[int, int], int] = {}
    for path, key, number in (link for root in roots for link in _links_below(str(root))):
        names.setdefault(key, []).append(Path(path))
        wanted[key] = number
    outside = [path for key, paths in names.items() if len(paths) < wanted[key] for path in paths]
    places = dict.fromkeys(_package_part(path) for path in outside)
    while len(places) > MOST_LINKED and any(place.parent not in roots for place in places):
        places = dict.fromkeys(place if place.parent in roots else place.parent for place in places)
    return tuple(place for place in places if not any(above in places for above in place.parents))


def _package_part(path: Path) -> Path:
    """Return the entry of the outermost package folder that holds `path`, else `path`."""
    at = next((i for i, part in enumerate(path.parts[:-1]) if part in _PACKAGE_FOLDERS), None)
    return path if at is None else Path(*path.parts[: at + 2])


def _links_below(root: str) -> Iterator[_Link]:
    pending, left = [root], MOST_FILES
    while pending and left > 0:
        path = pending.pop()
        folder = _folder(path)
        if folder is not None:
            left -= folder.count
            yield from folder.links
            pending += folder.inner


def _folder(path: str) -> _Folder | None:
    try:
        now = os.lstat(path)
        stamp = (now.st_ino, now.st_ctime_ns)
        known = _known.get(path)
        if known is None or known.stamp != stamp:
            settled = time.time_ns() - now.st_ctime_ns > _SETTLED_NS
            known = _read(path, stamp)
            _known.pop(path, None)
            if settled:
                _known[path] = known
    except OSError:  # gone meanwhile, or not readable
        return None
    return known


def _read(path: str, stamp: tuple[int, int]) -> _Folder:
    links: list[_Link] = []
    inner: list[str] = []
    count = 0
    with os.scandir(path) as entries:
        for entry in entries:
            count += 1
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    inner.append(entry.path)
                continue
            found = entry.stat(follow_symlinks=False)
            if found.st_nlink > 1 and stat.S_ISREG(found.st_mode):
                links.append((entry.path, (found.st_dev, found.st_ino), found.st_nlink))
    return _Folder(stamp, count, tuple(links), tuple(inner))
