"""The work tree of one item on a branch of its own: made or taken over, its state kept as commits, what it changed."""

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
from daiku.store.copyfolders import take_away
from daiku.team.rules.proof.tree_changes import TreeChanges, parse_tree_changes
from daiku.tools.git.mirror import has_branches, holding
from daiku.tools.git.ownrun import COMMIT, SECONDS, GitRefusal, OwnGit, is_branch, refusal_of, refused
from daiku.tools.git.remote import PRIVATE

logger = logging.getLogger(__name__)
LARGEST_FILE = 100_000_000
"""Bytes of a file that is committed; GitHub refuses larger ones, and with them the whole push."""
_LEFT = f"{PRIVATE}left/"
_LINK = "160000"
"""The mode of a submodule's entry."""
_NONE = "0" * 40
NO_VARIABLES: Mapping[str, str] = MappingProxyType({})
_DIFF = ("diff", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
_SETTINGS = (("core.quotePath", "false"), ("core.bigFileThreshold", "2m"))
"""A file above the threshold counts as binary: its lines are not searched."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who commits."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class ItemTree:
    """A work tree at `place` on `branch` of the bare copy `mirror`; `notes` is what git notes of it there.
    `taken_over`: it was there, with whatever was not committed in it."""

    place: Path
    mirror: Path
    branch: str
    notes: Path
    taken_over: bool = False

    @property
    def git(self) -> OwnGit:
        return OwnGit(self.notes, self.place)

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
    anew: bool = False,
) -> ItemTree | GitRefusal:
    """The work tree at `place` on `branch`: the one that is there, or a new one from the branch as it stands in the
    copy, or from the commit `start` where there is no such branch. `pushed`: the item's last commit on the server. A
    branch that is not built on it is of an earlier time: it is kept below `refs/daiku/left`, and the tree made
    anew; so is any other where it is to be made `anew`. `exists`: the branch is in use elsewhere, or something else lies at `place`."""
    wanted = pushed or start
    if not is_branch(branch) or (wanted and not COMMIT.fullmatch(wanted)):
        return refused("unusable")
    async with holding(mirror) as held:
        if not held:
            return refused("unreachable")
        own = OwnGit(mirror)
        there = await own.commit_of(f"refs/heads/{branch}")
        target = there or wanted
        if anew or (pushed and there and not await own.descends(there, pushed)):
            target = wanted
        if not target:
            return refused("unusable" if await has_branches(mirror) else "empty")
        if not await own.commit_of(target):
            return refused("gone")
        for who, value in (("user.name", identity.name), ("user.email", identity.email)):
            await own.run("config", who, value)
        if why := await asyncio.to_thread(_elsewhere, mirror, branch, place):
            return why
        notes = await asyncio.to_thread(notes_of, mirror, place)
        if notes and target == there and await _usable(notes, place, branch):
            return ItemTree(place, mirror, branch, notes, taken_over=True)
        if why := await asyncio.to_thread(_cleared, mirror, place):
            return why
        return await _made(own, ItemTree(place, mirror, branch, mirror), there, target)


async def _made(own: OwnGit, tree: ItemTree, there: str, target: str) -> ItemTree | GitRefusal:
    if there and there != target:
        await own.run("update-ref", f"{_LEFT}{there}", there)
    if there != target:
        moved = await own.run("update-ref", tree.ref, target, there or _NONE)
        if (why := refusal_of(moved)) is not None:
            return why
    tree.place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    done = await own.run("worktree", "add", "--quiet", "--no-guess-remote", str(tree.place), tree.branch)
    if (why := refusal_of(done)) is not None:
        await asyncio.to_thread(_cleared, tree.mirror, tree.place)
        return why
    notes = await asyncio.to_thread(notes_of, tree.mirror, tree.place)
    return ItemTree(tree.place, tree.mirror, tree.branch, notes) if notes else refused("damaged")


async def snapshot(tree: ItemTree, message: str, identity: Identity) -> str | GitRefusal:
    """Make all that is not committed one commit on the item's branch; its id, empty where nothing has changed. Ignored
    files stay out, and so do repositories within the tree, what is neither file nor link, and what no forge takes."""
    await asyncio.to_thread(_without_old_lock, tree.notes)
    if (why := await stage_all(tree)) is not None:
        return why
    head = await tree.git.commit_of(tree.ref)
    written = await tree.git.run("write-tree")
    if (why := refusal_of(written)) is not None:
        return why
    before = (await tree.git.run("rev-parse", "--verify", "--quiet", f"{head}^{{tree}}")).text.strip()
    if not head or not before:
        return refused("damaged")
    if before == written.text.strip():
        return ""
    who = {f"GIT_{role}_NAME": identity.name for role in ("AUTHOR", "COMMITTER")}
    who |= {f"GIT_{role}_EMAIL": identity.email for role in ("AUTHOR", "COMMITTER")}
    said = message.replace("\0", "").encode("utf-8", "replace").decode().strip() or tree.branch
    made = await tree.git.run("commit-tree", written.text.strip(), "-p", head, "-F", "-", stdin=said, env=who)
    if (why := refusal_of(made)) is not None:
        return why
    commit = made.text.strip()
    return refusal_of(await tree.git.run("update-ref", tree.ref, commit, head)) or commit


async def stage_all(tree: ItemTree, env: Mapping[str, str] = NO_VARIABLES) -> GitRefusal | None:
    """Add all that a snapshot would hold to the tree's index, or to the one that `env` names."""
    left_out = await _left_out(tree)
    if isinstance(left_out, GitRefusal):
        return left_out
    paths = "\0".join([":(top)", *(f":(top,exclude,literal){name}" for name in left_out)])
    add = ("add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul")
    return refusal_of(await tree.git.run(*add, stdin=paths, env=env))


async def changed_paths(tree: ItemTree, base: str, commit: str) -> tuple[str, ...] | GitRefusal:
    """The paths that `commit` has changed since it left `base`, both names of what was renamed."""
    if not COMMIT.fullmatch(base) or not COMMIT.fullmatch(commit):
        return refused("unusable")
    told = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
    done = await tree.git.run(*told, "--ignore-submodules=none", f"{base}...{commit}", "--")
    return refusal_of(done) or tuple(filter(None, done.text.split("\0")))


async def remove(mirror: Path, place: Path) -> None:
    """Take the work tree of `mirror` at `place` away; its branch stays in the copy. What is nobody's tree stays."""
    async with holding(mirror) as held:
        if held:
            await asyncio.to_thread(_cleared, mirror, place)


async def _left_out(tree: ItemTree) -> list[str] | GitRefusal:
    """What is never part of a snapshot: git would look into repositories within the tree with the settings that lie
    there, and stops at what it cannot add."""
    tracked = await tree.git.run("ls-files", "-z", "--stage")
    strange = await tree.git.run("ls-files", "-z", "--others", "--exclude-standard")
    for done in (tracked, strange):
        if (why := refusal_of(done)) is not None:
            return why
    entries = [entry.partition("\t") for entry in tracked.text.split("\0") if entry]
    links = [name for what, _, name in entries if what.startswith(_LINK)]
    others = [name for name in strange.text.split("\0") if name]
    inner = [name.rstrip("/") for name in others if name.endswith("/")]
    names = [*(name for _, _, name in entries), *(name for name in others if not name.endswith("/"))]
    return [*links, *inner, *await asyncio.to_thread(_odd, tree.place, names)]


def _odd(place: Path, names: list[str]) -> list[str]:
    """Those of `names` that are neither file, folder nor link any more (a pipe, a socket), or larger than a forge takes:
    to look through such a file takes git minutes, at every step."""
    found: list[str] = []
    for name in names:
        with suppress(OSError):
            there = os.lstat(os.path.join(place, name))  # noqa: PTH118  # as many as there are files
            if stat.S_ISREG(there.st_mode) and there.st_size > LARGEST_FILE:
                logger.warning("%s is left out of the commit: it has %d bytes", name, there.st_size)
                found.append(name)
            elif not (
                stat.S_ISREG(there.st_mode) or stat.S_ISLNK(there.st_mode) or stat.S_ISDIR(there.st_mode)
            ):
                found.append(name)
    return found


def _notes(mirror: Path) -> list[tuple[Path, Path]]:
    """What the copy notes of work trees, and where each one lies."""
    found: list[tuple[Path, Path]] = []
    for note in mirror.glob("worktrees/*"):
        with suppress(OSError):
            found.append((note, Path((note / "gitdir").read_text("utf-8").strip()).parent))
    return found


def notes_of(mirror: Path, place: Path) -> Path | None:
    """Return the folder in which the copy `mirror` notes the work tree at `place`; None if there is none."""
    return next((note for note, where in _notes(mirror) if where.resolve() == place.resolve()), None)


def _elsewhere(mirror: Path, branch: str, place: Path) -> GitRefusal | None:
    """`exists` where another work tree has the branch. Notes of trees that are gone are taken away."""
    for note, where in _notes(mirror):
        if where.resolve() == place.resolve():
            continue
        if not (where / ".git").exists():
            shutil.rmtree(note, ignore_errors=True)
        elif _branch(note) == branch:
            return refused("exists")
    return None


def _branch(note: Path) -> str:
    """The branch that a work tree stands on, by its notes."""
    with suppress(OSError):
        return (note / "HEAD").read_text("utf-8").partition("refs/heads/")[2].strip()
    return ""


async def _usable(notes: Path, place: Path, branch: str) -> bool:
    """Whether the tree at `place` was wholly made, on `branch`. A lock that a killed git left is taken away."""
    if not await asyncio.to_thread(_stands, notes, place, branch):
        return False
    return (
        await OwnGit(notes, place).run("ls-files", "-z", "--stage", "--error-unmatch", "--", ".")
    ).code == 0


def _stands(notes: Path, place: Path, branch: str) -> bool:
    # While git makes a work tree it is `locked`.
    if (notes / "locked").exists() or not (notes / "index").is_file():
        return False
    entry = place / ".git"
    if entry.is_symlink() or not entry.is_file() or _branch(notes) != branch:
        return False
    for lock in (notes / "index.lock", notes / "HEAD.lock"):
        lock.unlink(missing_ok=True)
    return _named(entry).resolve() == notes.resolve()


def _without_old_lock(notes: Path) -> None:
    """Take away the lock of a git that was killed in this tree: none of ours takes so long."""
    lock = notes / "index.lock"
    with suppress(OSError):
        if time.time() - lock.stat().st_mtime > SECONDS:
            lock.unlink()


def _cleared(mirror: Path, place: Path) -> GitRefusal | None:
    """Take away a work tree of `mirror` at `place`, whatever is left of it; `exists` where something else is there."""
    notes = notes_of(mirror, place)
    if place.is_symlink() or (place.exists() and not place.is_dir()):
        return refused("exists")
    if place.is_dir() and notes is None and any(place.iterdir()) and not _was_ours(mirror, place):
        return refused("exists")
    if place.is_dir():
        take_away(place)
    if notes is not None:
        shutil.rmtree(notes, ignore_errors=True)
    return refused("unusable") if place.exists() else None


def _was_ours(mirror: Path, place: Path) -> bool:
    """Whether the folder is a work tree whose notes were lost, with a copy that was made anew."""
    return _named(place / ".git").parent.resolve() == (mirror / "worktrees").resolve()


def _named(entry: Path) -> Path:
    """The git folder that the file `.git` of a work tree names."""
    with suppress(OSError, ValueError):
        return Path(entry.read_text("utf-8").partition(":")[2].strip())
    return Path()


async def changes_between(git: OwnGit, base: str, commit: str) -> TreeChanges | GitRefusal:
    """Return what `commit` has changed since it left `base`, as `git diff base...commit` shows it."""
    if not COMMIT.fullmatch(base) or not COMMIT.fullmatch(commit):
        return refused("unusable")
    return await _read_changes(git, (f"{base}...{commit}",))


async def changes_since(mirrors: Path, place: Path, base: str) -> TreeChanges | GitRefusal:
    """Return what the work tree at `place` has changed since the commit `base`, committed or not. `mirrors` is the
    folder of the bare copies, one of which it belongs to. The tree and its index stay as they are."""
    tree = await asyncio.to_thread(_tree_at, mirrors, place)
    if tree is None or not COMMIT.fullmatch(base):
        return refused("unusable")
    index = tree.notes / f"look-{uuid4().hex}"
    env = {"GIT_INDEX_FILE": str(index)}
    try:
        with suppress(FileNotFoundError):
            await asyncio.to_thread(shutil.copyfile, tree.notes / "index", index)
        return await stage_all(tree, env) or await _read_changes(tree.git, ("--cached", base), env)
    except OSError:
        return refused("full")
    finally:
        for left in (index, index.with_name(f"{index.name}.lock")):
            left.unlink(missing_ok=True)


async def _read_changes(
    git: OwnGit, what: tuple[str, ...], env: Mapping[str, str] = NO_VARIABLES
) -> TreeChanges | GitRefusal:
    listed = await git.run(*_DIFF, "-z", "--raw", "--numstat", *what, "--", env=env, settings=_SETTINGS)
    if (why := refusal_of(listed)) is not None:
        return why
    shown = await git.run(*_DIFF, "-U0", *what, "--", env=env, settings=_SETTINGS)
    return refusal_of(shown) or parse_tree_changes(listed.text, shown.text)


def _tree_at(mirrors: Path, place: Path) -> ItemTree | None:
    for mirror in sorted(mirrors.glob("*")):
        if mirror.is_dir() and (notes := notes_of(mirror, place)) is not None:
            return ItemTree(place, mirror, "", notes)
    return None
