"""Ignore rules of git and .daikuignore (closed to the agent). Files are read again when they change."""

from __future__ import annotations

import os
import re
import warnings
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TypeAlias
from unicodedata import normalize

import re2
from pathspec import GitIgnoreSpec

from daiku.dataclass import dataclass, field
from daiku.guard.rules.protected.names import holds_secrets
from daiku.texts.rules.patterns import lazy
from daiku.workspace.repository import GitPlaces, TrackedFiles, find_git_places, find_tracked

CLOSING = ".daikuignore"
_ALWAYS = frozenset({".git", ".hg", ".svn"})
_LARGEST = 1_000_000
_LONGEST = 1_000
"""Characters of the longest pattern that is read. A longer one matches nothing, as no path is that long."""
_GROUP = 200
"""Number of patterns that are compiled together: RE2 limits the memory of one set."""

_SECTION = lazy(r"^\s*\[\s*(?P<name>[\w.-]+)\s*\]")
_EXCLUDES = lazy(r"(?:^|\])\s*excludesfile\s*=\s*(?P<value>[^#;]*)", re.IGNORECASE)

Specs: TypeAlias = tuple[GitIgnoreSpec, ...]
"""The patterns of one ignore file in groups, in the order of its lines."""
Rules: TypeAlias = tuple[Path, Specs]
"""A folder and the patterns of its ignore files."""


def hides(rules: list[Rules], path: Path, *, folder: bool) -> bool:
    """Return True if `rules` (nearest first) ignore `path`; the first rule that matches decides."""
    if path.name in _ALWAYS:
        return True
    full = path.as_posix() + ("/" if folder else "")
    for above, specs in rules:
        name = _normalize(full[len(above.as_posix().rstrip("/")) + 1 :])
        for spec in reversed(specs):
            include = spec.check_file(name).include
            if include is not None:
                return include
    return False


def compile_patterns(lines: Sequence[str]) -> Specs:
    """Compile gitignore patterns for RE2 (linear time). An invalid one matches nothing, as in git."""
    patterns = (line for line in lines if line.strip() and not line.startswith("#"))
    usable = [_normalize(line) for line in patterns if len(line) <= _LONGEST]
    groups = (usable[start : start + _GROUP] for start in range(0, len(usable), _GROUP))
    return tuple(spec for group in groups for spec in _compile_group(group))


def _compile_group(lines: list[str]) -> Iterator[GitIgnoreSpec]:
    try:
        with warnings.catch_warnings():  # pathspec also compiles with `re`, which warns of odd sets
            warnings.simplefilter("ignore", FutureWarning)
            spec = GitIgnoreSpec.from_lines(lines, backend="re2")
    except (ValueError, re.error, re2.error):  # pyright: ignore[reportUnknownMemberType]  # re2 has no types
        if len(lines) > 1:
            middle = len(lines) // 2
            yield from _compile_group(lines[:middle])
            yield from _compile_group(lines[middle:])
    else:
        yield spec


def _normalize(name: str) -> str:
    """Compose the letters of a name and replace bytes that are not UTF-8, which RE2 cannot read."""
    return name if name.isascii() else normalize("NFC", name).encode("utf-8", "replace").decode()


@dataclass(frozen=True, slots=True)
class EnclosingRepository:
    """The repository around a folder: parent folders up to the top, and exclude files outside the tree."""

    places: GitPlaces
    folders: tuple[Path, ...]
    exclude_files: tuple[Path, ...]


def find_repository(root: Path, environ: Mapping[str, str]) -> EnclosingRepository | None:
    """Return the repository around `root` if `root` belongs to it; None otherwise."""
    places = find_git_places(root, (root,), objects=False)
    if not isinstance(places, GitPlaces) or not root.is_relative_to(places.top):
        return None
    folders = tuple(folder for folder in root.parents if folder.is_relative_to(places.top))
    excludes = (_find_user_excludes(places, environ), places.common / "info" / "exclude")
    return EnclosingRepository(places, folders, excludes)


def _find_user_excludes(places: GitPlaces, environ: Mapping[str, str]) -> Path:
    """Return the file of `core.excludesFile`, or git's default for it."""
    home = Path(environ.get("HOME") or Path.home())
    folder = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "git"
    for settings in (places.common / "config", home / ".gitconfig", folder / "config"):
        section = ""
        for line in _read_lines(settings, links=True):
            if head := _SECTION.match(line):
                section = head["name"].lower()
            if section == "core" and (match := _EXCLUDES.search(line)):
                value = match["value"].strip().strip('"')
                return home / value[2:] if value.startswith("~/") else places.top / value
    return folder / "ignore"


@dataclass(frozen=True, slots=True)
class IgnoreFiles:
    """The rules in ignore files of certain names below one root.

    Rules are cached with their files' mtimes. With `steady` they are read once, for one walk or search.
    """

    root: Path
    names: tuple[str, ...]
    steady: bool = False
    repository: EnclosingRepository | None = None
    """The repository around the root. Its ignore files above the root and outside the tree apply too."""
    _cache: dict[tuple[Path, ...], tuple[tuple[int, ...], Specs]] = field(
        default_factory=dict[tuple[Path, ...], tuple[tuple[int, ...], Specs]]
    )
    _folders: dict[Path, bool] = field(default_factory=dict[Path, bool])
    _rules: dict[Path, list[Rules]] = field(default_factory=dict[Path, list[Rules]])

    def hides(self, path: Path, *, folder: bool | None = None) -> bool:
        """Return True if `path` (inside the root) or a folder above it is ignored."""
        if self.steady and path != self.root:
            unknown = takewhile(lambda p: p not in self._folders and p != self.root, path.parents)
            for above in reversed(list(unknown)):  # no recursion: a tree may be deeper than the stack
                self._folders[above] = self._is_hidden(above, folder=True)
            return self._is_hidden(path, folder=path.is_dir() if folder is None else folder)
        return self._hides(path, folder=folder)

    def _is_hidden(self, path: Path, *, folder: bool) -> bool:
        """Return True if `path` or the folder above it (judged before) is ignored."""
        return self._folders.get(path.parent, False) or hides(
            self.get_rules(path.parent), path, folder=folder
        )

    def _hides(self, path: Path, *, folder: bool | None) -> bool:
        parts = path.relative_to(self.root).parts
        at, rules = self.root, self._load_rules_above()
        for index, part in enumerate(parts):
            rules = self._add_own_rules(at, rules)
            at = at / part
            is_folder = index < len(parts) - 1 or (at.is_dir() if folder is None else folder)
            if hides(rules, at, folder=is_folder):
                return True
        return False

    def get_rules(self, folder: Path) -> list[Rules]:
        """Return the rules that apply in `folder` (the root or below), nearest first."""
        if folder in self._rules:
            return self._rules[folder]
        above = self._load_rules_above() if folder == self.root else self.get_rules(folder.parent)
        rules = self._add_own_rules(folder, above)
        if self.steady:
            self._rules[folder] = rules
        return rules

    def _add_own_rules(self, folder: Path, above: list[Rules]) -> list[Rules]:
        specs = self._load_specs(tuple(folder / name for name in self.names))
        return [(folder, specs), *above] if specs else above

    def _load_rules_above(self) -> list[Rules]:
        """Return the repository's rules above the root; none if they ignore the root itself."""
        if self.repository is None:
            return []
        top, folders = self.repository.places.top, self.repository.folders
        files = [(folder, tuple(folder / name for name in self.names)) for folder in folders]
        if ".gitignore" in self.names:
            files.append((top, self.repository.exclude_files))
        rules = [(folder, specs) for folder, names in files if (specs := self._load_specs(names))]
        for folder in (self.root, *folders)[:-1]:
            if hides([rule for rule in rules if rule[0] in folder.parents], folder, folder=True):
                return []
        return rules

    def _load_specs(self, files: tuple[Path, ...]) -> Specs:
        times = tuple(_get_mtime(file) for file in files)
        cached = self._cache.get(files)
        if cached is not None and cached[0] == times:
            return cached[1]
        lines = [line for file, time in zip(files, times, strict=True) if time for line in _read_lines(file)]
        self._cache[files] = (times, compile_patterns(lines))
        return self._cache[files][1]


@dataclass(frozen=True, slots=True)
class Ignores:
    """Ignore rules below one root: `closed` files are never shown to the agent, `listed` ones only by name."""

    closed: IgnoreFiles
    listed: IgnoreFiles

    @classmethod
    def of(cls, root: Path, *, steady: bool = False) -> Ignores:
        """Return the ignore rules below `root`.

        A .daikuignore also applies after .gitignore: what it includes again (`!name`) is listed.
        """
        repository = find_repository(root, os.environ)
        return cls(
            IgnoreFiles(root, (CLOSING,), steady, repository),
            IgnoreFiles(root, (".gitignore", CLOSING), steady, repository),
        )

    def hidden(self, path: Path, name: str) -> bool:
        """Return True if `path`, called `name`, is not shown even if it is named.

        That is so if it is closed, or if git ignores it and it looks like a file of secrets.
        """
        return self.closes(path) or (holds_secrets(name) and self.leaves_out(path))

    def closes(self, path: Path) -> bool:
        """Return True if `path` (inside the root) is closed to the agent, however it is named."""
        return self.closed.hides(path)

    def closed_by_file(self, path: Path) -> bool:
        """Return True if a .daikuignore closes `path`; version control's own files do not count."""
        own = _ALWAYS.isdisjoint(path.relative_to(self.closed.root).parts)
        return own and self.closes(path)

    def leaves_out(self, path: Path) -> bool:
        """Return True if `path` is closed, or ignored and thus found only if it is named."""
        return self.closed.hides(path) or (self.listed.hides(path) and not self.tracked().includes(path))

    def tracked(self) -> TrackedFiles:
        """Return the files that git tracks although its ignore rules match them: git does not ignore them."""
        repository = self.listed.repository
        return TrackedFiles() if repository is None else find_tracked(repository.places)


def _get_mtime(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0


def _read_lines(path: Path, *, links: bool = False) -> Iterator[str]:
    try:
        if (path.is_symlink() and not links) or not path.is_file() or path.stat().st_size > _LARGEST:
            return
        data = path.read_bytes()
        is_utf16 = data.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
        encoding, errors = ("utf-16", "replace") if is_utf16 else ("utf-8-sig", "surrogateescape")
        yield from data.decode(encoding, errors).splitlines()
    except OSError:
        return
