"""What git ignores, and what .daikuignore closes to the agent, nested, re-read when they change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pathspec import GitIgnoreSpec

from daiku.core.protected.paths import holds_secrets
from daiku.dataclass import dataclass, field

_CLOSING = ".daikuignore"
_ALWAYS = frozenset({".git", ".hg", ".svn"})
_LARGEST = 1_000_000


Rules = tuple[Path, GitIgnoreSpec]
"""A folder and what its ignore files say."""


def hides(rules: list[Rules], path: Path, *, folder: bool) -> bool:
    """Return whether `rules` (nearest first) ignore `path`; the first rule that matches decides."""
    if path.name in _ALWAYS:
        return True
    for above, spec in rules:
        name = path.relative_to(above).as_posix() + ("/" if folder else "")
        include = spec.check_file(name).include
        if include is not None:
            return include
    return False


@dataclass(frozen=True, slots=True)
class IgnoreFiles:
    """The rules that files of some names hold below one root. Folders' rules are cached with their files' times;
    with `steady` they are read once, for one walk or search."""

    root: Path
    names: tuple[str, ...]
    steady: bool = False
    _cache: dict[Path, tuple[tuple[int, ...], GitIgnoreSpec | None]] = field(
        default_factory=dict[Path, tuple[tuple[int, ...], GitIgnoreSpec | None]]
    )
    _folders: dict[Path, bool] = field(default_factory=dict[Path, bool])

    def hides(self, path: Path, *, folder: bool | None = None) -> bool:
        """True where `path` (inside the root) or a folder above it is ignored."""
        if self.steady and path != self.root:
            if path.parent not in self._folders:
                self._folders[path.parent] = self._hides(path.parent, folder=True)
            above = self._folders[path.parent]
            return above or hides(
                self.rules(path.parent), path, folder=path.is_dir() if folder is None else folder
            )
        return self._hides(path, folder=folder)

    def _hides(self, path: Path, *, folder: bool | None) -> bool:
        parts = path.relative_to(self.root).parts
        at = self.root
        for index, part in enumerate(parts):
            at = at / part
            is_folder = index < len(parts) - 1 or (at.is_dir() if folder is None else folder)
            if hides(self.rules(at.parent), at, folder=is_folder):
                return True
        return False

    def rules(self, folder: Path) -> list[Rules]:
        """The rules that count for what is in `folder`, the nearest first."""
        found: list[Rules] = []
        for above in (folder, *folder.parents):
            if (spec := self._spec(above)) is not None:
                found.append((above, spec))
            if above == self.root:
                break
        return found

    def _spec(self, folder: Path) -> GitIgnoreSpec | None:
        if self.steady and folder in self._cache:
            return self._cache[folder][1]
        times = tuple(_time(folder / name) for name in self.names)
        known = self._cache.get(folder)
        if known is not None and known[0] == times:
            return known[1]
        lines = [
            line
            for name, time in zip(self.names, times, strict=True)
            if time
            for line in _lines(folder / name)
        ]
        spec = GitIgnoreSpec.from_lines(lines) if lines else None
        self._cache[folder] = (times, spec)
        return spec


@dataclass(frozen=True, slots=True)
class Ignores:
    """What is left out below one root: `closed` is never shown to the agent, `listed` only where it is named."""

    closed: IgnoreFiles
    listed: IgnoreFiles

    @classmethod
    def of(cls, root: Path, *, steady: bool = False) -> Ignores:
        """The ignore files below `root`. A .daikuignore also counts among those that git reads, after them:
        what it takes back (`!name`) is listed."""
        return cls(
            IgnoreFiles(root, (_CLOSING,), steady), IgnoreFiles(root, (".gitignore", _CLOSING), steady)
        )

    def hidden(self, path: Path, name: str) -> bool:
        """True where `path`, called `name`, is not shown even where it is named: it is closed, or git ignores it and
        it looks like a file of secrets: what is kept from git on purpose."""
        return self.closes(path) or (holds_secrets(name) and self.leaves_out(path))

    def closes(self, path: Path) -> bool:
        """True where `path` (inside the root) is closed to the agent, however it is named."""
        return self.closed.hides(path)

    def closed_by_file(self, path: Path) -> bool:
        """True where a .daikuignore closes `path` (inside the root), not only that it is version control's own."""
        own = _ALWAYS.isdisjoint(path.relative_to(self.closed.root).parts)
        return own and self.closes(path)

    def leaves_out(self, path: Path) -> bool:
        """True where `path` is not listed, and found only where it is named; also for what is closed."""
        return self.listed.hides(path) or self.closed.hides(path)


def _time(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0


def _lines(path: Path) -> Iterator[str]:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
            return
        yield from path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return
