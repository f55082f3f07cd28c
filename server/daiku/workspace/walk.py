"""Walks the files of a folder that the agent may see, in order, without following links."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass
from daiku.workspace.paths import find_root

if TYPE_CHECKING:
    from daiku.workspace.ignores import Ignores

LARGE = 100
"""Number of files above which a project is large."""
LARGE_SECONDS = 0.5
"""Seconds for which `is_large_project` caches its answer."""
_large: dict[tuple[Path, ...], tuple[float, bool]] = {}
"""Cache by roots: the time of the check, and whether the project is large."""
HEAVY_FOLDERS = frozenset(
    {"node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".pytest_cache"}
)
"""Names of folders that are never listed, even if no ignore file names them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder of a walk. `depth` 1 is directly in the folder walked."""

    path: Path
    folder: bool
    depth: int


def walk(roots: tuple[Path, ...], start: Path, depth: int = 1000) -> Iterator[Entry]:
    """Yield everything visible under `start` (a real path), each folder before its content.

    If git ignores `start` itself or it is outside the roots, only files closed to the agent are left out.
    """
    from daiku.workspace.ignores import Ignores  # when used

    root = find_root(roots, start)
    ignores = None if root is None else Ignores.of(root, steady=True)
    is_ignored = ignores is not None and start != root and ignores.leaves_out(start)
    yield from _walk(ignores, start, depth, 1, listed=not is_ignored)


def _walk(
    ignores: Ignores | None, folder: Path, depth: int, at: int, *, listed: bool, ignored: bool = False
) -> Iterator[Entry]:
    """Walk `folder`. `listed`: leave out what git ignores. `ignored`: leave out all but tracked files."""
    from daiku.workspace.ignores import hides  # when used

    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: (not entry.is_dir(follow_symlinks=False), entry.name))
    except OSError:  # no permission, or deleted meanwhile
        return
    closed = [] if ignores is None else ignores.closed.get_rules(folder)
    rules = [] if ignores is None or not listed else ignores.listed.get_rules(folder)
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        path = Path(entry.path)
        if is_folder and entry.name in HEAVY_FOLDERS:
            continue
        if not is_folder and not entry.is_file(follow_symlinks=False):
            continue  # links, pipes, devices
        if ignores is not None and hides(closed, path, folder=is_folder):
            continue
        hidden = ignored or (listed and ignores is not None and hides(rules, path, folder=is_folder))
        if hidden and ignores is not None and not _is_tracked(ignores, path, folder=is_folder):
            continue
        yield Entry(path, is_folder, at)
        if is_folder and at < depth:
            yield from _walk(ignores, path, depth, at + 1, listed=listed, ignored=hidden)


def _is_tracked(ignores: Ignores, path: Path, *, folder: bool) -> bool:
    tracked = ignores.tracked()
    return tracked.includes(path) or (folder and tracked.is_above(path))


def walk_files(roots: tuple[Path, ...], start: Path | None = None) -> Iterator[Path]:
    """Yield every visible file under `start`, or in all roots."""
    for folder in roots if start is None else (start,):
        if folder.is_file():
            yield folder
        else:
            yield from (entry.path for entry in walk(roots, folder) if not entry.folder)


def is_large(roots: tuple[Path, ...]) -> bool:
    """Return True if the roots have more than LARGE visible files. Stops counting there."""
    return next(islice(walk_files(roots), LARGE, None), None) is not None


def is_large_project(roots: tuple[Path, ...]) -> bool:
    """Return `is_large`, cached for LARGE_SECONDS for runs that start together."""
    now = monotonic()
    cached = _large.get(roots)
    if cached is None or now - cached[0] > LARGE_SECONDS:
        if len(_large) > LARGE:
            _large.clear()
        cached = _large[roots] = (now, is_large(roots))
    return cached[1]
