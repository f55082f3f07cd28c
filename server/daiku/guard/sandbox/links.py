"""Workspace files with limits in the sandbox: those that .daikuignore closes, and hard links to files outside."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.workspace.ignores import CLOSING, IgnoreFiles, Ignores, hides
from daiku.workspace.walk import HEAVY_FOLDERS

MOST_MASKED = 500
"""Files that are masked one by one; each is a mount. A closed folder with more is hidden as a whole."""


def find_closed(roots: tuple[Path, ...], protected: Collection[str]) -> tuple[Path, ...]:
    """Return the real places that a .daikuignore closes. `protected` names the protected files of the roots.

    Raises OSError if there are too many separate ones.
    """
    found: dict[Path, None] = {}
    for root in roots:
        ignores = Ignores.of(root, steady=True).closed
        own = any(path.endswith(f"/{CLOSING}") and Path(path).is_relative_to(root) for path in protected)
        if own or ignores.get_rules(root):
            found.update(dict.fromkeys(_closed_below(ignores, root, roots)))
    if len(found) > MOST_MASKED:
        raise OSError(f"{CLOSING} closes more than {MOST_MASKED} separate files; close their folders instead")
    return tuple(found)


def _closed_below(ignores: IgnoreFiles, folder: Path, roots: tuple[Path, ...]) -> Iterator[Path]:
    rules = ignores.get_rules(folder)
    for entry in _entries(folder):
        path, is_folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
        if entry.name in (".git", CLOSING):
            continue
        if hides(rules, path, folder=is_folder):
            yield from _masks_of(path, roots, is_folder=is_folder)
        elif is_folder and entry.name not in HEAVY_FOLDERS:
            yield from _closed_below(ignores, path, roots)


def _masks_of(path: Path, roots: tuple[Path, ...], *, is_folder: bool) -> Iterator[Path]:
    """Yield what to mask. Files of a folder stay there by name, so that git does not take them for deleted."""
    if is_folder:
        inner = [Path(base) / name for base, _, names in os.walk(path) for name in names]
        files = [real for each in inner if (real := _real_file(each, roots)) is not None]
        yield from files if len(files) <= MOST_MASKED else [path]
    elif (real := _real_file(path, roots)) is not None:
        yield real


def _real_file(path: Path, roots: tuple[Path, ...]) -> Path | None:
    """Return where a file lies, None if that is outside the roots or is no regular file."""
    real = path.resolve()
    return real if real.is_file() and any(real.is_relative_to(root) for root in roots) else None


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


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
