"""Git worktrees: copies of the project for parallel work, their changes as patches, and their removal."""

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
from daiku.tools.git.repository import open_repository

if TYPE_CHECKING:
    from daiku.tools.git.repository import GitRepository

MAX_DIFF = 2_000_000
"""Characters of the largest diff of a worktree."""
RETRY_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Seconds between attempts to remove a folder."""
IDENTITY = {
    "GIT_AUTHOR_NAME": "Daiku",
    "GIT_AUTHOR_EMAIL": "daiku@localhost",
    "GIT_COMMITTER_NAME": "Daiku",
    "GIT_COMMITTER_EMAIL": "daiku@localhost",
}


class WorktreeError(Exception):
    """A git command failed; the message is git's."""


@dataclass(frozen=True, slots=True)
class WorktreeBase:
    """The commit that worktrees are made from. It contains the project's current state."""

    repository: GitRepository
    top: Path
    commit: str

    @property
    def subfolder(self) -> Path:
        """The project's folder, relative to the repository."""
        return self.repository.root.resolve().relative_to(self.top)


@dataclass(frozen=True, slots=True)
class Worktree:
    """A copy of the repository. `place`: its folder; `root`: the project's folder in it."""

    base: WorktreeBase
    place: Path

    @property
    def root(self) -> Path:
        return self.place / self.base.subfolder


@dataclass(frozen=True, slots=True)
class WorktreeChanges:
    """The changes of a worktree as a unified diff, relative to the project.

    `unfit`: files that a text patch cannot contain (binary ones).
    """

    diff: str
    unfit: tuple[str, ...] = ()


async def find_base(roots: tuple[Path, ...], own_files: Collection[str], folder: Path) -> WorktreeBase | Text:
    """Return the commit to make worktrees from, or the reason that none can be made.

    Uncommitted changes of the files `own_files` (relative to the project) are included. `folder` is for
    temporary files. Raises OSError, WorktreeError.
    """
    if len(roots) != 1:
        return text("git.several_folders") if roots else text("git.no_folder")
    opened = await open_repository(roots[0], roots)
    if isinstance(opened, str):
        return text("git.no_repository")
    top = Path((await _run_git(opened, "rev-parse", "--show-toplevel")).strip())
    code, head = await opened.run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])
    if code != 0:
        return text("git.no_commit")
    if await asyncio.to_thread((top / ".gitmodules").exists):
        return text("git.submodules")
    uncommitted = await _list_uncommitted(opened)
    subfolder = opened.root.resolve().relative_to(top).as_posix()
    own_paths = {name if subfolder == "." else f"{subfolder}/{name}" for name in own_files}
    if foreign := [name for name in uncommitted if name not in own_paths]:
        if len(foreign) == 1:
            return text("git.uncommitted", name=foreign[0])
        return text("git.uncommitted_more", name=foreign[0], count=len(foreign) - 1)
    commit = await _commit_snapshot(opened, top, head.strip(), folder) if uncommitted else head.strip()
    return WorktreeBase(opened, top, commit)


async def _list_uncommitted(opened: GitRepository) -> list[str]:
    """Return the paths, from the repository's top, that differ from the last commit; both names of a rename."""
    text = await _run_git(opened, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames")
    return [entry[3:] for entry in text.split("\0") if len(entry) > 3]


async def _commit_snapshot(opened: GitRepository, top: Path, head: str, folder: Path) -> str:
    """Commit the project's current state outside any branch, without changing the index."""
    from daiku.tools.git.repository import GitRepository  # when used

    folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # noqa: ASYNC240
    index = folder / f"index-{os.getpid()}-{id(opened)}"
    top_repository = GitRepository(opened.git, top, opened.roots, opened.off)
    env = {"GIT_INDEX_FILE": str(index), **IDENTITY}
    try:
        await _run_git(top_repository, "read-tree", head, env=env)
        await _run_git(top_repository, "add", "--all", "--", ".", env=env)
        tree = (await _run_git(top_repository, "write-tree", env=env)).strip()
        return (
            await _run_git(
                top_repository, "commit-tree", tree, "-p", head, "-m", "Daiku: work under way", env=env
            )
        ).strip()
    finally:
        index.unlink(missing_ok=True)


async def add_worktree(base: WorktreeBase, place: Path) -> Worktree:
    """Add a worktree at `place`, which must not exist, without a branch. Raises OSError, WorktreeError."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    await _run_git(base.repository, "worktree", "add", "--detach", "--quiet", str(place), base.commit)
    return Worktree(base, place)


async def read_changes(tree: Worktree) -> WorktreeChanges:
    """Return the changes in the worktree since it was made. Raises OSError, WorktreeError."""
    from daiku.tools.git.repository import GitRepository  # when used

    checked_out = GitRepository(tree.base.repository.git, tree.root, (tree.place,), tree.base.repository.off)
    await _run_git(checked_out, "add", "--all", "--", ".")
    diff_command = [
        "diff",
        "--cached",
        "--relative",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
    ]
    stat_output = await _run_git(checked_out, *diff_command, "--numstat", "-z", tree.base.commit)
    entries = (entry.split("\t", 2) for entry in stat_output.split("\0") if entry.count("\t") >= 2)
    unfit = tuple(name for added, _, name in entries if added == "-")
    out = tree.place.with_suffix(".diff")
    try:
        await _run_git(checked_out, *diff_command, f"--output={out}", tree.base.commit)
        text = await asyncio.to_thread(out.read_text, "utf-8", "surrogateescape")
    finally:
        out.unlink(missing_ok=True)
    if len(text) > MAX_DIFF:
        return WorktreeChanges("", (*unfit, "(too much)"))
    if any("\ud800" <= char <= "\udfff" for char in text):
        return WorktreeChanges("", (*unfit, "(not UTF-8)"))
    return WorktreeChanges(text, unfit)


async def remove_worktree(tree: Worktree) -> None:
    """Remove the worktree, even if only parts are left."""
    place = tree.place
    with suppress(WorktreeError, OSError):
        await _run_git(tree.base.repository, "worktree", "remove", "--force", "--force", str(place))
    await asyncio.to_thread(discard_worktree, place, tree.base.top)


def discard_worktree(place: Path, top: Path, *, settle: float = 0.0) -> bool:
    """Remove a worktree of the repository at `top` without git. Returns True if it is gone.

    Removes its folder and its entry in the repository. A program whose parent was killed may still write
    there: removal is retried, and the folder must stay away for `settle` seconds.
    """
    for pause in RETRY_SECONDS:
        shutil.rmtree(place, ignore_errors=True)
        if not place.exists():
            time.sleep(settle)
        if not place.exists():
            break
        time.sleep(pause)
    entries_folder = _find_common_folder(top) / "worktrees"
    for entry in _list_folder(entries_folder):
        with suppress(OSError):
            if Path((entry / "gitdir").read_text("utf-8").strip()) == place / ".git":
                shutil.rmtree(entry, ignore_errors=True)
    with suppress(OSError):
        entries_folder.rmdir()  # git recreates it; it stays if it has other entries
    return not place.exists()


def _list_folder(folder: Path) -> list[Path]:
    """Return the entries of `folder`; empty if it is gone.

    Git removes the folder with its last worktree, also while another one is being discarded.
    """
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _find_common_folder(top: Path) -> Path:
    """Return the repository's common git folder: the project may be a worktree, or have it elsewhere."""
    git = top / ".git"
    if git.is_dir():
        return git
    try:
        git_folder = (top / git.read_text("utf-8").partition("gitdir:")[2].strip()).resolve()
        common = git_folder / "commondir"
        return (git_folder / common.read_text("utf-8").strip()).resolve() if common.is_file() else git_folder
    except OSError:
        return git


async def _run_git(opened: GitRepository, *argv: str, env: dict[str, str] | None = None) -> str:
    code, text = await opened.run(list(argv), env=env)
    if code != 0:
        raise WorktreeError(f"git {argv[0]}: {text.strip()}")
    return text
