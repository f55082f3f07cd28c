"""The reference files of a workspace and the small corpus of the package, as fingerprints."""

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
from daiku.workspace.globs import matcher

CORPUS = Path(__file__).with_name("corpus.json")
"""Fingerprints of pieces of free software, each with its licence; no text."""
LARGEST = 1_000_000
"""Bytes of a reference file that is looked at."""
MOST = 2_000
"""Reference files that are looked at."""
_WILD = frozenset("*?[{")
_Stamp = tuple[int, int]


@dataclass(slots=True)
class WorkspaceReferences:
    """The files below `roots` whose paths fit one of `globs`; each is read again when it has changed."""

    roots: tuple[Path, ...]
    globs: tuple[str, ...]
    _known: dict[Path, tuple[_Stamp, Fingerprints]] = field(
        default_factory=dict[Path, "tuple[_Stamp, Fingerprints]"]
    )
    _starts: Mapping[Path, tuple[str, ...]] = field(init=False)
    """Of each root, where its reference files can be."""

    def __post_init__(self) -> None:
        self._starts = {root: _beginnings(root, self.globs) for root in self.roots if self.globs}

    def any(self) -> bool:
        """Whether there is a reference file at all."""
        return self.may_be() and next(self._files(), None) is not None

    def may_be(self) -> bool:
        """Whether there is a folder for them at all: known at once, and mostly there is none."""
        return any(os.path.lexists(start) for starts in self._starts.values() for start in starts)

    def read(self) -> Mapping[str, Fingerprints]:
        """The fingerprints of every reference file, by its path in the workspace. Takes time: for a thread."""
        now: dict[Path, tuple[_Stamp, Fingerprints]] = {}
        found: dict[str, Fingerprints] = {}
        for name, path, stamp in self._files():
            known = self._known.get(path)
            if known is None or known[0] != stamp:
                known = (stamp, _fingerprints_of(path))
            now[path] = known
            found[name] = known[1]
        self._known = now
        return found

    def _files(self) -> Iterator[tuple[str, Path, _Stamp]]:
        fits, left = matcher(self.globs), MOST
        for root, starts in self._starts.items():
            for path in _below(root, starts):
                name = path.relative_to(root).as_posix()
                if not fits(name) or (stamp := _stamp(path)) is None:
                    continue
                yield name, path, stamp
                left -= 1
                if not left:
                    return


def _beginnings(root: Path, globs: tuple[str, ...]) -> tuple[str, ...]:
    """The folders, and files, where the patterns begin, none below another."""
    starts = sorted({_beginning(root, glob) for glob in globs if not glob.startswith("!")})
    outer = (s for at, s in enumerate(starts) if not any(map(s.is_relative_to, starts[:at])))
    return tuple(map(str, outer))


def _below(root: Path, starts: tuple[str, ...]) -> Iterator[Path]:
    """Every file there, links not followed, in order."""
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


def _beginning(root: Path, glob: str) -> Path:
    """The folder, or file, in front of the first wildcard of a pattern; a bare name may stand anywhere."""
    plain: list[str] = []
    for part in glob.strip("/").split("/"):
        if _WILD & frozenset(part) or part == "..":
            break
        plain.append(part)
    return root.joinpath(*plain) if "/" in glob else root


def _stamp(path: Path) -> _Stamp | None:
    """When a file was changed and its size; None where it is not looked at."""
    try:
        info = path.lstat()
    except OSError:
        return None
    plain = stat.S_ISREG(info.st_mode)
    return (info.st_mtime_ns, info.st_size) if plain and 0 < info.st_size <= LARGEST else None


def _fingerprints_of(path: Path) -> Fingerprints:
    try:
        data = path.read_bytes()
    except OSError:
        return Fingerprints()
    return Fingerprints() if b"\0" in data[:4096] else fingerprints(data.decode("utf-8", "replace"))


@cache
def corpus() -> Mapping[str, Fingerprints]:
    """The pieces of the corpus, each under its name and licence."""
    entries = json.loads(CORPUS.read_text("utf-8"))
    return MappingProxyType(
        {
            f"{entry['name']} ({entry['licence']})": Fingerprints(
                frozenset(entry["code"]), frozenset(entry["prose"])
            )
            for entry in entries
        }
    )
