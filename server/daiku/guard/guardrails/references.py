"""Fingerprints of a workspace's reference files and of the package's small corpus."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from daiku.dataclass import dataclass, field
from daiku.guard.rules.guardrails.fingerprints import Fingerprints, fingerprints
from daiku.workspace.globs import build_matcher

CORPUS = Path(__file__).with_name("corpus.json")
"""Fingerprints of free software, each with its license, without text."""
MAX_BYTES = 1_000_000
"""Maximum bytes of a reference file to read."""
MAX_FILES = 2_000
"""Maximum number of reference files to read."""
_WILD = frozenset("*?[{")
_Stamp = tuple[int, int]


@dataclass(slots=True)
class WorkspaceReferences:
    """Files below `roots` whose paths match one of `globs`; a file is read again after a change."""

    roots: tuple[Path, ...]
    globs: tuple[str, ...]
    _cache: dict[Path, tuple[_Stamp, Fingerprints]] = field(
        default_factory=dict[Path, "tuple[_Stamp, Fingerprints]"]
    )
    _starts: Mapping[Path, tuple[str, ...]] = field(init=False)
    """Paths below each root that may contain reference files."""

    def __post_init__(self) -> None:
        self._starts = {root: _find_starts(root, self.globs) for root in self.roots if self.globs}

    def any(self) -> bool:
        """Return True if there is a reference file."""
        return self.may_exist() and next(self._list_files(), None) is not None

    def may_exist(self) -> bool:
        """Return True if a folder for reference files exists. Cheap; usually False."""
        return any(os.path.lexists(start) for starts in self._starts.values() for start in starts)

    def read(self) -> Mapping[str, Fingerprints]:
        """Return the fingerprints of every reference file by its path in the workspace. Slow: run in a thread."""
        cache: dict[Path, tuple[_Stamp, Fingerprints]] = {}
        by_name: dict[str, Fingerprints] = {}
        for name, path, stamp in self._list_files():
            entry = self._cache.get(path)
            if entry is None or entry[0] != stamp:
                entry = (stamp, _read_fingerprints(path))
            cache[path] = entry
            by_name[name] = entry[1]
        self._cache = cache
        return by_name

    def _list_files(self) -> Iterator[tuple[str, Path, _Stamp]]:
        matches, remaining = build_matcher(self.globs), MAX_FILES
        for root, starts in self._starts.items():
            for path in _walk(root, starts):
                name = path.relative_to(root).as_posix()
                if not matches(name) or (stamp := _read_stamp(path)) is None:
                    continue
                yield name, path, stamp
                remaining -= 1
                if not remaining:
                    return


def _find_starts(root: Path, globs: tuple[str, ...]) -> tuple[str, ...]:
    """Return the folders and files where the patterns start, without those inside another."""
    starts = sorted({_find_start(root, glob) for glob in globs if not glob.startswith("!")})
    outer = (s for index, s in enumerate(starts) if not any(map(s.is_relative_to, starts[:index])))
    return tuple(map(str, outer))


def _walk(root: Path, starts: tuple[str, ...]) -> Iterator[Path]:
    """Yield every file below `starts` in order, without following links."""
    for start in map(Path, starts):
        if start.is_file():
            yield start
        if any(
            part.is_symlink()
            for part in (start, *start.parents)
            if part.is_relative_to(root) and part != root
        ):
            continue
        for folder, inner, names in os.walk(start):
            inner[:] = sorted(name for name in inner if name not in (".git", "node_modules"))
            yield from (Path(folder, name) for name in sorted(names))


def _find_start(root: Path, glob: str) -> Path:
    """Return the folder or file before the first wildcard; the root for a bare name, which may be anywhere."""
    parts: list[str] = []
    for part in glob.strip("/").split("/"):
        if _WILD & frozenset(part) or part == "..":
            break
        parts.append(part)
    return root.joinpath(*parts) if "/" in glob else root


def _read_stamp(path: Path) -> _Stamp | None:
    """Return a file's change time and size; None if it is not to be read."""
    try:
        info = path.lstat()
    except OSError:
        return None
    is_regular = stat.S_ISREG(info.st_mode)
    return (info.st_mtime_ns, info.st_size) if is_regular and 0 < info.st_size <= MAX_BYTES else None


def _read_fingerprints(path: Path) -> Fingerprints:
    try:
        data = path.read_bytes()
    except OSError:
        return Fingerprints()
    return Fingerprints() if b"\0" in data[:4096] else fingerprints(data.decode("utf-8", "replace"))


@cache
def load_corpus() -> Mapping[str, Fingerprints]:
    """Return the fingerprints of the corpus by name and license."""
    entries = json.loads(CORPUS.read_text("utf-8"))
    return MappingProxyType(
        {
            f"{entry['name']} ({entry['licence']})": Fingerprints(
                frozenset(entry["code"]), frozenset(entry["prose"])
            )
            for entry in entries
        }
    )
