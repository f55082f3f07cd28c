"""Location of a folder's git repository, and whether it belongs to the workspace."""

from __future__ import annotations

import os
import re
import subprocess
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic

from daiku.dataclass import dataclass
from daiku.workspace.paths import find_homes, is_within
from daiku.workspace.programs import find_program

MOST_ALTERNATES = 20
"""Largest number of alternate object stores that are checked."""
MIRROR_MARK = "daiku-mirror"
"""File name that marks a bare repository shared by several items' work trees: no command writes there."""
_LARGEST = 200_000
_INCLUDE = re.compile(
    r"^[ \t]*\[[ \t]*include(?:if)?\b(?P<body>[^\[]*(?:\[(?![ \t]*\w)[^\[]*)*)", re.IGNORECASE | re.MULTILINE
)
_PATH = re.compile(r"path[ \t]*=[ \t]*(?P<value>[^\n]*)", re.IGNORECASE)
_WORK_TREE = re.compile(r"^[ \t]*worktree[ \t]*=[ \t]*(?P<value>[^\n]*)", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GitPlaces:
    """A usable repository: its work tree, its git folder, and the folder shared by its work trees."""

    top: Path
    folder: Path
    common: Path

    def outside(self, roots: tuple[Path, ...]) -> tuple[Path, ...]:
        """Return the git folders outside the roots."""
        places = (place for place in (self.common, self.folder) if not _is_inside(place, roots))
        return tuple(dict.fromkeys(place for place in places))

    @property
    def shared(self) -> bool:
        """Whether other items share the repository: commands may read it and never write there."""
        return (self.common / MIRROR_MARK).is_file()


def find_git_places(root: Path, roots: tuple[Path, ...], *, objects: bool = True) -> GitPlaces | str | None:
    """Return the repository around `root`, the reason it is not the workspace's own, or None.

    The workspace's own are: a git folder in the workspace, that of a parent folder that is no home, and one
    elsewhere that names the workspace as its work tree. `objects`: also check for links among its objects,
    which is needless in a sandbox that shows nothing outside.
    """
    try:
        return _check_places(root.resolve(), tuple(folder.resolve() for folder in roots), objects)
    except (OSError, RuntimeError) as error:  # no permission, or a cycle of links
        return f"it cannot be read ({type(error).__name__})"


_LIST = ("--no-optional-locks", "ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
REACHES_NOTHING = {"GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Variables with which git does not fetch missing objects: that would use the network or start a program."""
_QUIET = {
    **REACHES_NOTHING,
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": "/dev/null",
}
"""Variables with which git only reads its index: it starts no program and uses no network."""
_SECONDS, _FRESH, _REFUSED = 2, 2.0, 600.0
"""Seconds: git's timeout; how long its answer is cached while the index is unchanged; how long git is not run
again after a failure, because its matcher never ends on some patterns."""
_timeouts: dict[str, tuple[float, float, int]] = {}
"""Per repository in which git timed out matching ignore patterns: until when, the timeout, mtime of its
.gitignore."""


def note_timeout(folder: Path, seconds: float) -> None:
    """Record that git did not match ignore patterns within `seconds` in `folder`'s repository."""
    top = _find_top(folder)
    _timeouts[top] = (monotonic() + _REFUSED, seconds, _get_gitignore_mtime(top))


def has_timed_out(folder: Path, seconds: float) -> bool:
    """Return True if git timed out here with at least `seconds` and would probably do so again."""
    until, previous_seconds, changed = _timeouts.get(top := _find_top(folder), (0.0, 0.0, 0))
    return seconds <= previous_seconds and monotonic() < until and _get_gitignore_mtime(top) == changed


def _get_gitignore_mtime(top: str) -> int:
    """Return the mtime of `top`'s .gitignore in nanoseconds; 0 if there is none."""
    try:
        return Path(top, ".gitignore").stat().st_mtime_ns
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class TrackedFiles:
    """Files below `top` that git tracks although its ignore rules match them."""

    top: Path = Path()
    names: tuple[str, ...] = ()

    def includes(self, path: Path) -> bool:
        """Return True if the path is one of the files or in a submodule among them."""
        return any(self._next(name) == name for name in _iter_parents(self._name(path)))

    def is_above(self, path: Path) -> bool:
        """Return True if the path is a folder that contains one of the files."""
        name = self._name(path)
        return bool(name) and self._next(f"{name}/").startswith(f"{name}/")

    def _name(self, path: Path) -> str:
        return path.relative_to(self.top).as_posix() if path.is_relative_to(self.top) and self.names else ""

    def _next(self, name: str) -> str:
        at = bisect_left(self.names, name)
        return self.names[at] if at < len(self.names) else ""

    def below(self, folder: Path) -> tuple[Path, ...]:
        """Return the files and submodules in `folder`."""
        paths = (self.top / name for name in self.names)
        return tuple(path for path in paths if path.is_relative_to(folder) and path.exists())


_tracked: dict[Path, tuple[float, int, TrackedFiles]] = {}


def find_tracked(places: GitPlaces) -> TrackedFiles:
    """Return the files that git tracks although it ignores them; none on a timeout. Blocks."""
    try:
        changed = (places.folder / "index").stat().st_mtime_ns
    except OSError:  # no index: nothing was ever added
        return TrackedFiles()
    if has_timed_out(places.top, _SECONDS):
        return TrackedFiles()
    cached = _tracked.get(places.top)
    if cached is not None and (
        monotonic() < cached[0] or (cached[1] == changed and monotonic() - cached[0] < _FRESH)
    ):
        return cached[2]
    environment = {
        name: os.environ[name] for name in ("HOME", "PATH", "XDG_CONFIG_HOME") if name in os.environ
    }
    try:
        result = subprocess.run(
            [find_program("git", (places.top,)) or "git", *_LIST],
            cwd=places.top,
            env=environment | _QUIET,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, subprocess.TimeoutExpired):
            note_timeout(places.top, _SECONDS)
            return TrackedFiles()
        _tracked[places.top] = (monotonic() + _REFUSED, changed, TrackedFiles())
        return TrackedFiles()
    names = tuple(sorted(os.fsdecode(name) for name in result.stdout.split(b"\0") if name))
    _tracked[places.top] = (monotonic(), changed, TrackedFiles(places.top, names))
    return _tracked[places.top][2]


def _iter_parents(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition("/")[0]


def may_be_repository(root: Path) -> bool:
    """Return True if `root` or a folder above it has a `.git`. Cheap: only a few file system calls."""
    return bool(_find_top(root))


def _find_top(folder: Path) -> str:
    """Return the nearest folder with a `.git` at or above `folder`; empty if there is none."""
    current = os.path.realpath(folder)
    while not os.path.lexists(os.path.join(current, ".git")):  # noqa: PTH118  # strings are ten times as fast as Paths
        above = os.path.dirname(current)  # noqa: PTH120  # likewise
        if above == current:
            return ""
        current = above
    return current


def _check_places(root: Path, roots: tuple[Path, ...], objects: bool) -> GitPlaces | str | None:
    if not (nearest := _find_top(root)):
        return None
    top = Path(nearest)
    entry = top / ".git"
    folder = _find_git_folder(entry)
    if folder is None:
        return "its .git is neither a folder nor a file that names one"
    if not _is_inside(top, roots) and any(is_within(home, top) for home in find_homes()):
        return "the nearest repository is that of your whole home folder"
    shared = _read_first_line(folder / "commondir")
    common = (folder / shared).resolve() if shared else folder
    own_folder = folder == entry and not entry.is_symlink() and common == folder
    if not (
        own_folder
        or (_is_inside(folder, roots) and _is_inside(common, roots))
        or _points_back(entry, folder, common)
    ):
        return f"its data lies outside the workspace, in {common}, and does not name this folder as its work tree"
    allowed = (*roots, folder, common)
    if (outside := next(_iter_outside_links(folder, common, allowed, objects), None)) or (
        outside := _find_outside_alternate(common, allowed)
    ):
        return f"part of it is a link out of the workspace ({outside})"
    for settings in (common / "config", folder / "config.worktree"):
        if included := _find_outside_include(settings, allowed):
            return f"its settings read a file outside the workspace ({included})"
    return GitPlaces(top, folder, common)


def _find_git_folder(entry: Path) -> Path | None:
    if entry.is_dir():
        return entry.resolve()
    line = _read_first_line(entry)
    if not line.startswith("gitdir:"):
        return None
    folder = (entry.parent / line.removeprefix("gitdir:").strip()).resolve()
    return folder if folder.is_dir() else None


def _points_back(entry: Path, folder: Path, common: Path) -> bool:
    """Return True if the git folder names the work tree of `entry`: a linked work tree or a submodule."""
    if entry.is_symlink() or not (common / "HEAD").is_file():
        return False
    if folder.parent == common / "worktrees":
        back = _read_first_line(folder / "gitdir")
        return bool(back) and (folder / back).resolve() == entry.resolve()
    if common == folder and "modules" in folder.parts:
        setting = _WORK_TREE.search(_read_text(folder / "config"))
        return (
            setting is not None
            and (folder / _strip_quotes(setting["value"])).resolve() == entry.parent.resolve()
        )
    return False


def _iter_outside_links(
    folder: Path, common: Path, allowed: tuple[Path, ...], objects: bool
) -> Iterator[str]:
    """Yield links in the git folders that lead out of `allowed`; with `objects`, also of single objects."""
    places = [folder, common, common / "objects", common / "objects" / "info"]
    if objects:
        with suppress(OSError), os.scandir(common / "objects") as entries:
            places += [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    for place in dict.fromkeys(places):
        with suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                if entry.is_symlink() and not _is_inside(Path(entry.path).resolve(), allowed):
                    yield entry.path


def _find_outside_alternate(common: Path, allowed: tuple[Path, ...]) -> str:
    pending = [common / "objects"]
    visited: set[Path] = set()
    while pending:
        objects = pending.pop()
        for line in _read_text(objects / "info" / "alternates").splitlines():
            if not line.strip() or line.startswith("#"):
                continue
            other = (objects / line.strip().strip('"')).resolve()
            if not _is_inside(other, allowed) or len(visited) > MOST_ALTERNATES:
                return line.strip()
            if other not in visited:
                visited.add(other)
                pending.append(other)
    return ""


def _find_outside_include(settings: Path, allowed: tuple[Path, ...]) -> str:
    for section in _INCLUDE.finditer(_read_text(settings)):
        for setting in _PATH.finditer(section["body"]):
            value = _strip_quotes(setting["value"])
            place = Path(value).expanduser() if value.startswith("~") else settings.parent / value
            if not _is_inside(place.resolve(), allowed) or value.endswith("\\"):
                return value
    return ""


def _strip_quotes(text: str) -> str:
    return text.strip().strip('"').strip()


def _is_inside(place: Path, folders: tuple[Path, ...]) -> bool:
    return any(is_within(place, folder) for folder in folders)


def _read_first_line(file: Path) -> str:
    return next(iter(_read_text(file).splitlines()), "").strip()


def _read_text(file: Path) -> str:
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return ""
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
