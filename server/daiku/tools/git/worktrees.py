"""Git worktrees: copies of the project to work in side by side, their changes as patches, and their end."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.dataclass import dataclass
from daiku.texts.text import Text, text
from daiku.tools.git.repository import repository

if TYPE_CHECKING:
    from daiku.tools.git.repository import Repository

LARGEST = 2_000_000
"""Characters of a change that is brought back as one patch."""
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts to take a folder away."""
IDENTITY = {
    "GIT_AUTHOR_NAME": "Daiku",
    "GIT_AUTHOR_EMAIL": "daiku@localhost",
    "GIT_COMMITTER_NAME": "Daiku",
    "GIT_COMMITTER_EMAIL": "daiku@localhost",
}


class WorktreeError(Exception):
    """Git did not do what it was asked for; the message is git's."""


@dataclass(frozen=True, slots=True)
class Base:
    """What copies are made of: a commit that holds the project as it is now."""

    repository: Repository
    top: Path
    commit: str

    @property
    def inside(self) -> Path:
        """Where the project lies in its repository."""
        return self.repository.root.resolve().relative_to(self.top)


@dataclass(frozen=True, slots=True)
class Worktree:
    """A copy: `place` is all of it, `root` the folder of it that corresponds to the project's."""

    base: Base
    place: Path

    @property
    def root(self) -> Path:
        return self.place / self.base.inside


@dataclass(frozen=True, slots=True)
class Changes:
    """What was changed in a copy, as a unified diff with paths from the project's folder. `unfit`: files
    that a text patch cannot bring back (binary ones)."""

    diff: str
    unfit: tuple[str, ...] = ()


async def base_of(roots: tuple[Path, ...], own: Collection[str], folder: Path) -> Base | Text:
    """Return the commit to make worktrees from, or why none can be made. Uncommitted changes of the files
    `own` (relative to the project) are included. `folder` is for temporary files. Raises OSError,
    WorktreeError."""
    if len(roots) != 1:
        return text("git.several_folders") if roots else text("git.no_folder")
    found = await repository(roots[0], roots)
    if isinstance(found, str):
        return text("git.no_repository")
    top = Path((await _git(found, "rev-parse", "--show-toplevel")).strip())
    code, head = await found.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
    if code != 0:
        return text("git.no_commit")
    if await asyncio.to_thread((top / ".gitmodules").exists):
        return text("git.submodules")
    dirty = await _dirty(found)
    inside = found.root.resolve().relative_to(top).as_posix()
    mine = {name if inside == "." else f"{inside}/{name}" for name in own}
    if strange := [name for name in dirty if name not in mine]:
        if len(strange) == 1:
            return text("git.uncommitted", name=strange[0])
        return text("git.uncommitted_more", name=strange[0], count=len(strange) - 1)
    commit = await _snapshot(found, top, head.strip(), folder) if dirty else head.strip()
    return Base(found, top, commit)


async def _dirty(found: Repository) -> list[str]:
    """Paths from the repository's top that differ from the last commit; both names of a rename."""
    text = await _git(found, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    return [entry[3:] for entry in text.split("\0") if len(entry) > 3]


async def _snapshot(found: Repository, top: Path, head: str, folder: Path) -> str:
    """A commit of the project as it is now, beside the history: neither index nor branches change."""
    from daiku.tools.git.repository import Repository  # when used

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # noqa: ASYNC240
    index = folder / f"index-{os.getpid()}-{id(found)}"
    whole = Repository(found.git, top, found.roots, found.off)
    env = {"GIT_INDEX_FILE": str(index), **IDENTITY}
    try:
        await _git(whole, "read-tree", head, env=env)
        await _git(whole, "add", "--all", "--", ".", env=env)
        tree = (await _git(whole, "write-tree", env=env)).strip()
        return (
            await _git(whole, "commit-tree", tree, "-p", head, "-m", "Daiku: work under way", env=env)
        ).strip()
    finally:
        index.unlink(missing_ok=True)


async def add(base: Base, place: Path) -> Worktree:
    """Make a copy at `place`, which must not exist; no branch is made. Raises OSError, WorktreeError."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    await _git(base.repository, "worktree", "add", "--detach", "--quiet", str(place), base.commit)
    return Worktree(base, place)


async def changes(tree: Worktree) -> Changes:
    """What was changed in the copy since it was made. Raises OSError, WorktreeError."""
    from daiku.tools.git.repository import Repository  # when used

    there = Repository(tree.base.repository.git, tree.root, (tree.place,), tree.base.repository.off)
    await _git(there, "add", "--all", "--", ".")
    against = [
        "diff",
        "--cached",
        "--relative",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
    ]
    counted = await _git(there, *against, "--numstat", "-z", tree.base.commit)
    entries = (entry.split("\t", 2) for entry in counted.split("\0") if entry.count("\t") >= 2)
    unfit = tuple(name for added, _, name in entries if added == "-")
    out = tree.place.with_suffix(".diff")
    try:
        await _git(there, *against, f"--output={out}", tree.base.commit)
        text = await asyncio.to_thread(out.read_text, "utf-8", "surrogateescape")
    finally:
        out.unlink(missing_ok=True)
    if len(text) > LARGEST:
        return Changes("", (*unfit, "(too much)"))
    if any("\ud800" <= char <= "\udfff" for char in text):
        return Changes("", (*unfit, "(not UTF-8)"))
    return Changes(text, unfit)


async def remove(tree: Worktree) -> None:
    """Take the copy away, whatever is left of it."""
    place = tree.place
    with suppress(WorktreeError, OSError):
        await _git(tree.base.repository, "worktree", "remove", "--force", "--force", str(place))
    await asyncio.to_thread(discard, place, tree.base.top)


def discard(place: Path, top: Path, *, settle: float = 0.0) -> bool:
    """Take away a copy of the repository at `top` without git: its folder, and what the repository notes of it.
    Whether it is gone. A program whose parent was killed may still be writing there: it is waited for, and
    the folder has to stay away for `settle` seconds."""
    for pause in PAUSES:
        shutil.rmtree(place, ignore_errors=True)
        if not place.exists():
            time.sleep(settle)
        if not place.exists():
            break
        time.sleep(pause)
    notes = _common(top) / "worktrees"
    for note in _entries(notes):
        with suppress(OSError):
            if Path((note / "gitdir").read_text("utf-8").strip()) == place / ".git":
                shutil.rmtree(note, ignore_errors=True)
    with suppress(OSError):
        notes.rmdir()  # git makes it anew; it stays where somebody else's are
    return not place.exists()


def _entries(folder: Path) -> list[Path]:
    """What lies in `folder`; nothing where it is gone: git takes it away together with the last copy, also while
    another copy is being discarded."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _common(top: Path) -> Path:
    """The repository's own folder; the project may itself be a worktree or have it elsewhere."""
    git = top / ".git"
    if git.is_dir():
        return git
    try:
        own = (top / git.read_text("utf-8").partition("gitdir:")[2].strip()).resolve()
        common = own / "commondir"
        return (own / common.read_text("utf-8").strip()).resolve() if common.is_file() else own
    except OSError:
        return git


async def _git(found: Repository, *argv: str, env: dict[str, str] | None = None) -> str:
    code, text = await found.run(list(argv), env=env)
    if code != 0:
        raise WorktreeError(f"git {argv[0]}: {text.strip()}")
    return text
