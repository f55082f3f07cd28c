"""The work tree of a work item on its own branch: checkout, snapshots as commits, and changed files."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from uuid import uuid4

from daiku.dataclass import dataclass
from daiku.store.copyfolders import delete_folder
from daiku.team.rules.proof.tree_changes import TreeChanges, parse_tree_changes
from daiku.tools.git.mirror import has_branches, lock_mirror
from daiku.tools.git.ownrun import (
    COMMIT_ID,
    TIMEOUT_SECONDS,
    GitRefusal,
    OwnGit,
    find_refusal,
    is_branch,
    make_refusal,
)
from daiku.tools.git.remote import PRIVATE

logger = logging.getLogger(__name__)
MAX_FILE_BYTES = 100_000_000
"""Bytes of the largest file that is committed. GitHub rejects a push with a larger one."""
_REPLACED_REFS = f"{PRIVATE}left/"
_SUBMODULE_MODE = "160000"
"""Mode of a submodule's index entry."""
_NO_COMMIT = "0" * 40
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
_DIFF = ("diff", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
_SETTINGS = (("core.quotePath", "false"), ("core.bigFileThreshold", "2m"))
"""Settings of a diff. A file above the threshold counts as binary: its lines are not searched."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Name and email of a committer."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class ItemTree:
    """A work tree at `place` on `branch` of the bare repository `mirror`; `git_folder`: its git folder there.

    `taken_over`: it existed already, perhaps with uncommitted changes.
    """

    place: Path
    mirror: Path
    branch: str
    git_folder: Path
    taken_over: bool = False

    @property
    def git(self) -> OwnGit:
        return OwnGit(self.git_folder, self.place)

    @property
    def ref(self) -> str:
        return f"refs/heads/{self.branch}"


async def checkout(
    mirror: Path,
    branch: str,
    start: str,
    place: Path,
    identity: Identity,
    *,
    pushed: str = "",
    recreate: bool = False,
) -> ItemTree | GitRefusal:
    """Return the work tree at `place` on `branch`: the existing one, or a new one.

    A new one starts at the mirror's branch, or at the commit `start` if there is no such branch. `pushed`:
    the item's last commit on the server. A branch that is not based on it is outdated: it is stored below
    `refs/daiku/left`, and the tree is recreated, as with `recreate`. Refusal `exists`: the branch is in use
    elsewhere, or `place` is occupied.
    """
    start_commit = pushed or start
    if not is_branch(branch) or (start_commit and not COMMIT_ID.fullmatch(start_commit)):
        return make_refusal("unusable")
    async with lock_mirror(mirror) as is_locked:
        if not is_locked:
            return make_refusal("unreachable")
        git = OwnGit(mirror)
        branch_commit = await git.find_commit(f"refs/heads/{branch}")
        target = branch_commit or start_commit
        if recreate or (pushed and branch_commit and not await git.is_descendant(branch_commit, pushed)):
            target = start_commit
        if not target:
            return make_refusal("unusable" if await has_branches(mirror) else "empty")
        if not await git.find_commit(target):
            return make_refusal("gone")
        for setting, value in (("user.name", identity.name), ("user.email", identity.email)):
            await git.run("config", setting, value)
        if refusal := await asyncio.to_thread(_check_branch_free, mirror, branch, place):
            return refusal
        git_folder = await asyncio.to_thread(find_git_folder, mirror, place)
        if git_folder and target == branch_commit and await _is_usable(git_folder, place, branch):
            return ItemTree(place, mirror, branch, git_folder, taken_over=True)
        if refusal := await asyncio.to_thread(_clear, mirror, place):
            return refusal
        return await _create(git, ItemTree(place, mirror, branch, mirror), branch_commit, target)


async def _create(git: OwnGit, tree: ItemTree, branch_commit: str, target: str) -> ItemTree | GitRefusal:
    if branch_commit and branch_commit != target:
        await git.run("update-ref", f"{_REPLACED_REFS}{branch_commit}", branch_commit)
    if branch_commit != target:
        update = await git.run("update-ref", tree.ref, target, branch_commit or _NO_COMMIT)
        if (refusal := find_refusal(update)) is not None:
            return refusal
    tree.place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    result = await git.run("worktree", "add", "--quiet", "--no-guess-remote", str(tree.place), tree.branch)
    if (refusal := find_refusal(result)) is not None:
        await asyncio.to_thread(_clear, tree.mirror, tree.place)
        return refusal
    git_folder = await asyncio.to_thread(find_git_folder, tree.mirror, tree.place)
    return (
        ItemTree(tree.place, tree.mirror, tree.branch, git_folder) if git_folder else make_refusal("damaged")
    )


async def snapshot(tree: ItemTree, message: str, identity: Identity) -> str | GitRefusal:
    """Commit all changes on the item's branch. Returns the commit; empty if nothing has changed.

    Ignored files, nested repositories, special files, and files too large for a forge are left out.
    """
    await asyncio.to_thread(_remove_stale_lock, tree.git_folder)
    if (refusal := await stage_all(tree)) is not None:
        return refusal
    head = await tree.git.find_commit(tree.ref)
    new_tree = await tree.git.run("write-tree")
    if (refusal := find_refusal(new_tree)) is not None:
        return refusal
    old_tree = (await tree.git.run("rev-parse", "--verify", "--quiet", f"{head}^{{tree}}")).text.strip()
    if not head or not old_tree:
        return make_refusal("damaged")
    if old_tree == new_tree.text.strip():
        return ""
    author_env = {f"GIT_{role}_NAME": identity.name for role in ("AUTHOR", "COMMITTER")}
    author_env |= {f"GIT_{role}_EMAIL": identity.email for role in ("AUTHOR", "COMMITTER")}
    message_text = message.replace("\0", "").encode("utf-8", "replace").decode().strip() or tree.branch
    committed = await tree.git.run(
        "commit-tree", new_tree.text.strip(), "-p", head, "-F", "-", stdin=message_text, env=author_env
    )
    if (refusal := find_refusal(committed)) is not None:
        return refusal
    commit = committed.text.strip()
    return find_refusal(await tree.git.run("update-ref", tree.ref, commit, head)) or commit


async def stage_all(tree: ItemTree, env: Mapping[str, str] = NO_VARIABLES) -> GitRefusal | None:
    """Stage everything that a snapshot contains in the tree's index, or in the index that `env` names."""
    excluded = await _list_excluded(tree)
    if isinstance(excluded, GitRefusal):
        return excluded
    paths = "\0".join([":(top)", *(f":(top,exclude,literal){name}" for name in excluded)])
    add = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
    return find_refusal(await tree.git.run(*add, stdin=paths, env=env))


async def list_changed_paths(tree: ItemTree, base: str, commit: str) -> tuple[str, ...] | GitRefusal:
    """Return the paths changed by `commit` since it left `base`; both names of a rename."""
    if not COMMIT_ID.fullmatch(base) or not COMMIT_ID.fullmatch(commit):
        return make_refusal("unusable")
    argv = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
    result = await tree.git.run(*argv, "--ignore-submodules=none", f"{base}...{commit}", "--")
    return find_refusal(result) or tuple(filter(None, result.text.split("\0")))


async def remove_tree(mirror: Path, place: Path) -> None:
    """Remove the work tree of `mirror` at `place`; its branch stays. A folder that is not a work tree stays."""
    async with lock_mirror(mirror) as is_locked:
        if is_locked:
            await asyncio.to_thread(_clear, mirror, place)


async def _list_excluded(tree: ItemTree) -> list[str] | GitRefusal:
    """Return the paths that are never part of a snapshot.

    Git would read nested repositories with their own settings, and fails at files that it cannot add.
    """
    tracked = await tree.git.run("ls-files", "-z", "--stage")
    untracked = await tree.git.run("ls-files", "-z", "--others", "--exclude-standard")
    for result in (tracked, untracked):
        if (refusal := find_refusal(result)) is not None:
            return refusal
    entries = [entry.partition("\t") for entry in tracked.text.split("\0") if entry]
    submodules = [name for mode, _, name in entries if mode.startswith(_SUBMODULE_MODE)]
    others = [name for name in untracked.text.split("\0") if name]
    nested = [name.rstrip("/") for name in others if name.endswith("/")]
    names = [*(name for _, _, name in entries), *(name for name in others if not name.endswith("/"))]
    return [*submodules, *nested, *await asyncio.to_thread(_find_unsuitable, tree.place, names)]


def _find_unsuitable(place: Path, names: list[str]) -> list[str]:
    """Return the names that are special files (a pipe, a socket), or larger than a forge accepts.

    Git would take minutes to read such a file, at every step.
    """
    unsuitable: list[str] = []
    for name in names:
        with suppress(OSError):
            status = os.lstat(os.path.join(place, name))  # noqa: PTH118  # faster: this runs for every file
            if stat.S_ISREG(status.st_mode) and status.st_size > MAX_FILE_BYTES:
                logger.warning("%s is left out of the commit: it has %d bytes", name, status.st_size)
                unsuitable.append(name)
            elif not (
                stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode)
            ):
                unsuitable.append(name)
    return unsuitable


def _list_trees(mirror: Path) -> list[tuple[Path, Path]]:
    """Return the git folder and the place of each work tree of the mirror."""
    trees: list[tuple[Path, Path]] = []
    for git_folder in mirror.glob("worktrees/*"):
        with suppress(OSError):
            trees.append((git_folder, Path((git_folder / "gitdir").read_text("utf-8").strip()).parent))
    return trees


def find_git_folder(mirror: Path, place: Path) -> Path | None:
    """Return the git folder in `mirror` of the work tree at `place`; None if there is none."""
    return next(
        (
            git_folder
            for git_folder, tree_place in _list_trees(mirror)
            if tree_place.resolve() == place.resolve()
        ),
        None,
    )


def _check_branch_free(mirror: Path, branch: str, place: Path) -> GitRefusal | None:
    """Return `exists` if another work tree has the branch. Entries of missing trees are removed."""
    for git_folder, tree_place in _list_trees(mirror):
        if tree_place.resolve() == place.resolve():
            continue
        if not (tree_place / ".git").exists():
            shutil.rmtree(git_folder, ignore_errors=True)
        elif _read_branch(git_folder) == branch:
            return make_refusal("exists")
    return None


def _read_branch(git_folder: Path) -> str:
    """Return the branch of a work tree."""
    with suppress(OSError):
        return (git_folder / "HEAD").read_text("utf-8").partition("refs/heads/")[2].strip()
    return ""


async def _is_usable(git_folder: Path, place: Path, branch: str) -> bool:
    """Return True if the tree at `place` is complete and on `branch`. Locks of a killed git are removed."""
    if not await asyncio.to_thread(_is_complete, git_folder, place, branch):
        return False
    return (
        await OwnGit(git_folder, place).run("ls-files", "-z", "--stage", "--error-unmatch", "--", ".")
    ).code == 0


def _is_complete(git_folder: Path, place: Path, branch: str) -> bool:
    # Git marks an incomplete work tree as `locked`.
    if (git_folder / "locked").exists() or not (git_folder / "index").is_file():
        return False
    entry = place / ".git"
    if entry.is_symlink() or not entry.is_file() or _read_branch(git_folder) != branch:
        return False
    for lock in (git_folder / "index.lock", git_folder / "HEAD.lock"):
        lock.unlink(missing_ok=True)
    return _read_git_link(entry).resolve() == git_folder.resolve()


def _remove_stale_lock(git_folder: Path) -> None:
    """Remove the lock of a killed git in this tree: a live git of ours does not take so long."""
    lock = git_folder / "index.lock"
    with suppress(OSError):
        if time.time() - lock.stat().st_mtime > TIMEOUT_SECONDS:
            lock.unlink()


def _clear(mirror: Path, place: Path) -> GitRefusal | None:
    """Remove the work tree of `mirror` at `place`, even if incomplete.

    Returns `exists` if it is something else.
    """
    git_folder = find_git_folder(mirror, place)
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        return make_refusal("exists")
    if place.is_dir() and git_folder is None and any(place.iterdir()) and not _is_own_tree(mirror, place):
        return make_refusal("exists")
    if place.is_dir():
        delete_folder(place)
    if git_folder is not None:
        shutil.rmtree(git_folder, ignore_errors=True)
    return make_refusal("unusable") if place.exists() else None


def _is_own_tree(mirror: Path, place: Path) -> bool:
    """Return True if the folder is a work tree whose git folder was lost when the mirror was recreated."""
    return _read_git_link(place / ".git").parent.resolve() == (mirror / "worktrees").resolve()


def _read_git_link(entry: Path) -> Path:
    """Return the git folder that a work tree's file `.git` names."""
    with suppress(OSError, ValueError):
        return Path(entry.read_text("utf-8").partition(":")[2].strip())
    return Path()


async def diff_commits(git: OwnGit, base: str, commit: str) -> TreeChanges | GitRefusal:
    """Return the changes of `commit` since it left `base`, as `git diff base...commit`."""
    if not COMMIT_ID.fullmatch(base) or not COMMIT_ID.fullmatch(commit):
        return make_refusal("unusable")
    return await _read_changes(git, (f"{base}...{commit}",))


async def diff_work_tree(mirrors: Path, place: Path, base: str) -> TreeChanges | GitRefusal:
    """Return the changes of the work tree at `place` since the commit `base`, committed or not.

    `mirrors`: the folder of the mirrors, one of which the tree belongs to. The tree and its index do not
    change.
    """
    tree = await asyncio.to_thread(_find_tree, mirrors, place)
    if tree is None or not COMMIT_ID.fullmatch(base):
        return make_refusal("unusable")
    index = tree.git_folder / f"look-{uuid4().hex}"
    env = {"GIT_INDEX_FILE": str(index)}
    try:
        with suppress(FileNotFoundError):
            await asyncio.to_thread(shutil.copyfile, tree.git_folder / "index", index)
        return await stage_all(tree, env) or await _read_changes(tree.git, ("--cached", base), env)
    except OSError:
        return make_refusal("full")
    finally:
        for temporary in (index, index.with_name(f"{index.name}.lock")):
            temporary.unlink(missing_ok=True)


async def _read_changes(
    git: OwnGit, revisions: tuple[str, ...], env: Mapping[str, str] = NO_VARIABLES
) -> TreeChanges | GitRefusal:
    names = await git.run(*_DIFF, "-z", "--raw", "--numstat", *revisions, "--", env=env, settings=_SETTINGS)
    if (refusal := find_refusal(names)) is not None:
        return refusal
    diff = await git.run(*_DIFF, "-U0", *revisions, "--", env=env, settings=_SETTINGS)
    return find_refusal(diff) or parse_tree_changes(names.text, diff.text)


def _find_tree(mirrors: Path, place: Path) -> ItemTree | None:
    for mirror in sorted(mirrors.glob("*")):
        if mirror.is_dir() and (git_folder := find_git_folder(mirror, place)) is not None:
            return ItemTree(place, mirror, "", git_folder)
    return None
