"""Files that .daikuignore closes, found so that the sandbox can mask them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

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
