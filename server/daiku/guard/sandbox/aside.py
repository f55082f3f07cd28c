"""Quarantine changes that a sandboxed command made to protected files, until the person approves."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import get_args

from daiku.dataclass import dataclass
from daiku.guard.rules.protected.effects import (
    LARGEST_TEXT,
    READABLE,
    describe_effect,
    is_manifest,
    new_effects,
)
from daiku.guard.sandbox.gitfolder import harmless
from daiku.guard.sandbox.tree import Found, Kind, Mark, Role, topmost, tree_of
from daiku.texts.text import Text, text
from daiku.workspace.encodings import decode
from daiku.workspace.paths import is_within

MOST_KEPT = 24
"""Places that are mounted for reading only; each costs time, and what is beyond is restored afterwards."""
LARGEST_COPY = 1_000_000
MOST_COPIED = 16_000_000
CLOCK_NS = 20_000_000
"""How far the times of files may lie behind the clock."""
_GIT_PARTS = ("hooks", "info")
_texts: dict[tuple[str, Mark], bytes] = {}


@dataclass(frozen=True, slots=True)
class Before:
    """State of protected files before a command.

    `kept` are mounted for reading only; `texts` are those of the others, to be restored. `at` is when, in nanoseconds
    of the clock.
    """

    trees: tuple[tuple[Path, Role], ...]
    marks: Mapping[Kind, Mapping[str, Mark]]
    complete: bool
    kept: tuple[Path, ...]
    at: int
    lineage: Mapping[str, tuple[int, ...]]
    texts: Mapping[str, bytes]

    def list_places(self, kind: Kind) -> tuple[Path, ...]:
        """Return the places of one kind in the trees."""
        return tuple(map(Path, self.marks[kind]))


@dataclass(frozen=True, slots=True)
class QuarantinedFile:
    """One protected place that a command made or changed: where it was, and where it lies now."""

    place: Path
    kept: Path


def before(roots: tuple[Path, ...], repositories: tuple[Path, ...] = ()) -> Before:
    """Look at the roots, and at git folders outside them, before a command runs. Blocks for a moment."""
    wanted: dict[tuple[Path, Role], None] = {(root.resolve(), "plain"): None for root in roots}
    for folder in repositories:
        wanted[(folder.resolve(), "git")] = None
    trees = tuple(wanted)
    real = tuple(folder for folder, _ in trees)
    at = time.time_ns()
    found = tuple(tree_of(folder, role).look() for folder, role in trees)
    marks = {kind: {k: m for each in found for k, m in each.marks[kind].items()} for kind in get_args(Kind)}
    kept = _to_keep(real, marks["protected"])
    lineage = {str(place): _lineage(place, real) for place in kept}
    open_marks = {path: mark for path, mark in marks["protected"].items() if not _is_kept(path, lineage)}
    copies = _copies(open_marks | marks["judged"])
    return Before(trees, marks, all(each.complete for each in found), kept, at, lineage, copies)


def _to_keep(roots: tuple[Path, ...], marks: dict[str, Mark]) -> tuple[Path, ...]:
    """Return the places to mount read-only, outermost first, without symbolic links."""
    wanted: dict[str, None] = {}
    for path in marks:
        place = Path(path)
        parts = place.parts
        # hooks and info of a git folder as a whole: what is not there yet cannot be made there either
        at = next((i for i, part in enumerate(parts) if part == ".git"), 0)
        part = parts[at + 1] if 0 < at < len(parts) - 2 else ""
        wanted[str(Path(*parts[: at + 2])) if part in _GIT_PARTS else path] = None
    kept: list[Path] = []
    for path in topmost(wanted):
        place = Path(path)
        if place.exists() and place.resolve() == place and any(is_within(place, root) for root in roots):
            kept.append(place)
    return tuple(kept[:MOST_KEPT])


def _is_kept(path: str, kept: Collection[str]) -> bool:
    return path in kept or any(path.startswith(f"{place}/") for place in kept)


def _lineage(place: Path, roots: tuple[Path, ...]) -> tuple[int, ...]:
    """Return the inode numbers of the folders that contain `place`."""
    found: list[int] = []
    for folder in (place, *place.parents) if place.is_dir() else place.parents:
        with suppress(OSError):
            found.append(folder.lstat().st_ino)
        if folder in roots:
            break
    return tuple(found)


def _copies(marks: dict[str, Mark]) -> dict[str, bytes]:
    copied: dict[str, bytes] = {}
    size = 0
    for path, mark in marks.items():
        if mark.link or not mark.changed or mark.size > LARGEST_COPY or size + mark.size > MOST_COPIED:
            continue
        data = _texts.get((path, mark))
        if data is None:
            with suppress(OSError):
                data = Path(path).read_bytes()
        if data is not None:
            copied[path] = data
            size += len(data)
    _texts.clear()
    _texts.update({(path, marks[path]): data for path, data in copied.items()})
    return copied


@dataclass(frozen=True, slots=True)
class ActingFile:
    """A changed file that makes tools do something new. `restores`: its state before the command is known."""

    root: Path
    place: Path
    why: Text
    runs_code: bool
    restores: bool
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """Protected places that are new or different, each with the root that it lies in; the uppermost of each.

    `acting`: files that are judged by their text. `programs`: what editors run of installed packages. `complete`: no
    part of the trees was left out, before or afterwards.
    """

    places: tuple[tuple[Path, Path], ...]
    complete: bool
    acting: tuple[ActingFile, ...] = ()
    programs: tuple[Path, ...] = ()


def changed_since(earlier: Before) -> Changed:
    """Return the changes a command made to protected places since `earlier`. Raises OSError."""
    found: list[tuple[Path, Path]] = []
    complete = earlier.complete
    roots = tuple(root for root, _ in earlier.trees)
    kept = {path for path, ids in earlier.lineage.items() if _lineage(Path(path), roots) == ids}
    acting: list[ActingFile] = []
    programs: list[Path] = []
    for root, role in earlier.trees:
        now = tree_of(root, role).look()
        complete = complete and now.complete
        made = [path for path in _changed("protected", now, earlier) if not _is_kept(path, kept)]
        found += [(root, Path(path)) for path in topmost(path for path in made if not _git_made(Path(path)))]
        acting += _acting(root, _changed("judged", now, earlier), earlier, roots)
        programs += map(Path, _changed("program", now, earlier))
    return Changed(tuple(found), complete, tuple(acting), tuple(programs))


def _changed(kind: Kind, now: Found, earlier: Before) -> list[str]:
    old = earlier.marks[kind]
    new = [path for path, mark in now.marks[kind].items() if old.get(path) != mark]
    return [path for path in new if earlier.complete or _younger(path, earlier.at)]


def _acting(root: Path, changed: list[str], earlier: Before, roots: tuple[Path, ...]) -> Iterator[ActingFile]:
    """Return the files of `changed` that make tools do what they did not do before."""
    for path in changed:
        place = Path(path)
        known = earlier.texts.get(path)
        restores = path not in earlier.marks["judged"] or known is not None
        name = place.relative_to(root).as_posix()
        if place.is_symlink():
            yield from _check_link(root, place, restores, roots)
            continue
        before = None if known is None else _decoded(known)
        with suppress(OSError):
            if place.stat().st_size <= LARGEST_TEXT:
                new = new_effects(name, _decoded(place.read_bytes()), name, before)
                if new:
                    runs = any(effect.runs_code for effect in new)
                    yield ActingFile(root, place, describe_effect(new[0]), runs, restores)


def _check_link(root: Path, place: Path, restores: bool, roots: tuple[Path, ...]) -> Iterator[ActingFile]:
    """Yield a link that leaves the roots, or whose name makes tools read a text that they did not read before."""
    real = Path(os.path.realpath(place))
    target = os.readlink(place)  # noqa: PTH115  # shown as it is
    if not any(is_within(real, each) for each in roots):
        why = text("protected.link_out", target=target)
        yield ActingFile(root, place, why, False, restores, is_link=True)
    elif READABLE.search(place.name) and real.is_file() and real.name.lower() != place.name.lower():
        runs = is_manifest(place.name)
        if runs or real.suffix.lower() != place.suffix.lower():
            yield ActingFile(root, place, text("protected.link_renames", target=target), runs, restores)


def _decoded(data: bytes) -> str:
    found = decode(data)
    return found.text if found is not None else data.decode("utf-8", "replace")


def _younger(path: str, than: int) -> bool:
    """Report whether `path` was created or changed after the time `than`.

    Used only if the tree was not scanned completely before, so that older files do not count as new.
    """
    try:
        return max(os.lstat(path).st_ctime_ns, Path(path).parent.lstat().st_ctime_ns) >= than - CLOCK_NS
    except OSError:
        return False


def quarantine(
    earlier: Before, places: Iterable[tuple[Path, Path]], folder: Path
) -> tuple[QuarantinedFile, ...]:
    """Move files that a command changed since `earlier` below `folder`, and restore their old text.

    Each of `places` is a root and a file in it. Raises OSError.
    """
    moved: list[QuarantinedFile] = []
    for root, place in places:
        if os.path.realpath(place.parent) != str(place.parent):
            continue  # moved meanwhile; what is behind a link is not touched
        target = folder / f"{time.time_ns():x}" / place.relative_to(root)
        _move(place, target)
        old = earlier.texts.get(str(place))
        if old is not None:
            place.write_bytes(old)
        moved.append(QuarantinedFile(place, target))
    return tuple(moved)


def _git_made(place: Path) -> bool:
    if ".git" not in place.parts[:-1]:
        return False
    if place.is_dir() and not place.is_symlink():
        inner = list(place.iterdir())
        return all(_git_made(each) for each in inner)
    return harmless(place)


def release(moved: QuarantinedFile) -> None:
    """Move a file that was put aside back to its place, after the person approved. Raises OSError."""
    if moved.place.is_symlink() or moved.place.is_file():
        moved.place.unlink()
    moved.place.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(moved.kept, moved.place)


def _move(place: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        shutil.move(place, target)
    except (OSError, shutil.Error):
        # What cannot be carried to another disk (a pipe, a file that may not be read) does not stay either.
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
