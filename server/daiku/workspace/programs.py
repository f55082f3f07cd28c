"""Lookup of programs that Daiku starts: system folders first, never a folder that a repository can write."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from daiku.dataclass import dataclass, field
from daiku.workspace.paths import find_homes, is_within, new_workspaces

SYSTEM_FOLDERS: tuple[str, ...] = (
    () if os.name == "nt" else
    ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/run/wrappers/bin", "/run/current-system/sw/bin",
     "/nix/var/nix/profiles/default/bin", "/opt/homebrew/bin", "/home/linuxbrew/.linuxbrew/bin", "/opt/local/bin", "/snap/bin")
)  # fmt: skip
"""Absolute folders that only the administrator or a package manager fills, searched before PATH."""
KNOWN_SECONDS = 5.0
"""Seconds for which facts about PATH and the homes are cached."""
_PROJECT_FOLDERS = frozenset(
    {"node_modules", ".venv", "venv", ".direnv", ".devenv", ".devbox", ".tox", ".nox"}
)
"""Names of folders that a project's own tools fill with programs, wherever the project is."""
REPOSITORY_FOLDERS = (".git", ".hg", ".svn", ".jj")
"""Names of folders in which a version control system keeps a repository's data."""


@dataclass(slots=True)
class _Fence:
    """Folders that a repository can write (`inside`) and the folders above them (`above`), case-folded."""

    inside: set[str] = field(default_factory=set[str])
    above: set[str] = field(default_factory=set[str])

    def add(self, root: Path) -> None:
        """Add a workspace root and the repository around it."""
        for place in {root, root.resolve()}:
            self.inside |= {_to_key(place), _to_key(_find_repository_top(place))}
            self.above.update(map(_to_key, place.parents))

    def bars(self, folder: Path) -> bool:
        """Return True if a repository can write `folder` or what it links to."""
        places = (folder, folder.resolve())
        return any(_to_key(place) in self.above or self.holds(place) for place in places)

    def holds(self, place: Path) -> bool:
        """Return True if `place` is in a folder that a repository can write."""
        return any(_to_key(folder) in self.inside for folder in (place, *place.parents))


_workspaces = _Fence()
"""The workspaces that this process has opened."""


def find_program(name: str, roots: tuple[Path, ...] = (), *, last: str = "") -> str:
    """Return the path of a helper program, "" if there is none: system folders, then PATH, then `last`."""
    path = (os.environ.get("PATH") or os.defpath).split(os.pathsep)
    folders = [entry for entry in path if _PROJECT_FOLDERS.isdisjoint(Path(entry).parts)]
    return _search(name, (*SYSTEM_FOLDERS, *folders, *([last] if last else ())), roots)


def find_configured_program(name: str, roots: tuple[Path, ...], path: str) -> str:
    """Return the path of a program from the user's settings, in the order of `path`; "" if none."""
    return _search(name, path.split(os.pathsep), roots)


def is_on_path(name: str, path: str) -> bool:
    """Return True if a command whose PATH is `path` finds the program."""
    return shutil.which(name, path=path) is not None


def _search(name: str, folders: Iterable[str], roots: tuple[Path, ...]) -> str:
    while new_workspaces:
        _workspaces.add(new_workspaces.pop())
    roots = (*roots, *_get_current_folder())
    fences = (_workspaces, _build_fence(roots, get_cache_period()))
    # Not shutil.which: on Windows it looks into the current folder first.
    for folder in _select_folders_outside(tuple(folders), roots, len(_workspaces.inside), get_cache_period()):
        for candidate in _iter_spellings(folder, name):
            real = Path(os.path.realpath(candidate))
            usable = os.access(real, os.X_OK) and real.is_file()
            if usable and not any(fence.holds(real) for fence in fences):
                return str(candidate)
    return ""


@lru_cache(maxsize=32)
def _select_folders_outside(
    folders: tuple[str, ...], roots: tuple[Path, ...], _known: int, now: int
) -> tuple[Path, ...]:
    fences = (_workspaces, _build_fence(roots, now))
    places = (Path(folder) for folder in dict.fromkeys(folders))
    return tuple(p for p in places if p.is_absolute() and not any(fence.bars(p) for fence in fences))


@lru_cache(maxsize=32)
def _build_fence(roots: tuple[Path, ...], _now: int) -> _Fence:
    fence = _Fence()
    for root in roots:
        fence.add(root)
    return fence


def _get_current_folder() -> tuple[Path, ...]:
    """Return the current folder as a workspace root, unless it is a home or above one."""
    try:
        folder = Path.cwd()
    except OSError:
        return ()
    return () if any(is_within(home, folder) for home in find_homes()) else (folder,)


def _find_repository_top(root: Path) -> Path:
    """Return the outermost repository below the homes that holds `root`, else `root`."""
    wide = {Path("/"), *(folder for home in find_homes() for folder in (home, *home.parents))}
    tops = [
        p for p in root.parents if p not in wide and any((p / name).exists() for name in REPOSITORY_FOLDERS)
    ]
    return tops[-1] if tops else root


def _iter_spellings(folder: Path, name: str) -> Iterator[Path]:
    yield folder / name
    if os.name == "nt":
        for end in os.environ.get("PATHEXT", ".EXE").split(os.pathsep):
            yield folder / f"{name}{end}"


def _to_key(place: Path) -> str:
    # Some file systems ignore case; refusing one folder too many is harmless.
    return str(place).casefold()


def build_safe_path(path: str, roots: tuple[Path, ...]) -> str:
    """Return `path` (a PATH value) without relative folders and folders of the workspace, links resolved."""
    return _build_safe_path(path, roots, get_cache_period())


@lru_cache(maxsize=32)
def _build_safe_path(path: str, roots: tuple[Path, ...], _now: int) -> str:
    entries: list[str] = []
    inside = tuple(root.resolve() for root in roots)
    for entry in path.split(os.pathsep):
        folder = Path(entry)
        if not entry or not folder.is_absolute():
            continue
        real = folder.resolve()
        if not any(is_within(real, root) or is_within(folder, root) for root in (*inside, *roots)):
            entries.append(entry)
    return os.pathsep.join(dict.fromkeys(entries))


def get_cache_period() -> int:
    """Return a number that changes every KNOWN_SECONDS: the key of a short-lived cache."""
    return int(time.monotonic() / KNOWN_SECONDS)
