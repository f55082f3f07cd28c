"""Bare mirrors of remote repositories, shared by all work items; one process updates a mirror at a time."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

from daiku.store.lock import SessionLock
from daiku.tools.git.ownrun import GitRefusal, OwnGit, find_refusal, is_branch, make_refusal, run_git
from daiku.tools.git.remote import PRIVATE, Remote, check_address, fetch
from daiku.workspace.repository import MIRROR_MARK

FETCH_SECONDS = 1800.0
"""Seconds that a fetch may take."""
LOCK_SECONDS = 1800.0
"""Seconds to wait for another process that holds the lock of a mirror."""
_RETRY_SECONDS = 0.05
"""Seconds between two attempts to take the lock."""
_BRANCHES = "refs/remotes/origin/"
_KEPT_REFS = f"{PRIVATE}items/"
_FETCHED_REFS = f"{PRIVATE}fetched/"


async def update_mirror(folder: Path, remote: Remote, *, kept_name: str = "") -> Path | GitRefusal:
    """Create or update the bare mirror of `remote` below `folder`.

    It gets the server's branches, and what the server stores of the item whose folder is `kept_name` (see
    `build_kept_ref`).
    """
    if not check_address(remote) or (kept_name and not is_branch(kept_name)):
        return make_refusal("unusable")
    path = find_mirror_path(folder, remote.url)
    refspecs = (f"+refs/heads/*:{_BRANCHES}*",)
    if kept_name:  # a pattern may match nothing without failure
        refspecs += (f"+{_KEPT_REFS}{kept_name}/*:{_FETCHED_REFS}{kept_name}/*",)
    async with lock_mirror(path) as is_locked:
        if not is_locked:
            return make_refusal("unreachable")
        if await _is_complete(path):
            refusal = await _update(path, remote, refspecs)
            if refusal is None or refusal.kind != "damaged" or _has_work_trees(path):
                return refusal or path
        elif _has_work_trees(path):
            return make_refusal("damaged")
        return await _create(path, remote, refspecs) or path


def find_mirror_path(folder: Path, url: str) -> Path:
    """Return the path of the mirror of `url` below `folder`."""
    return folder / _build_folder_name(url)


async def read_head(path: Path, name: str) -> str:
    """Return the commit of the server's branch `name` at the last update; empty if there was none."""
    return await OwnGit(path).find_commit(f"{_BRANCHES}{name}")


async def has_branches(path: Path) -> bool:
    """Return True if the server had any branch, and so a commit, at the last update."""
    result = await OwnGit(path).run("for-each-ref", "--count=1", "--format=%(refname)", _BRANCHES)
    return bool(result.text.strip())


def build_kept_ref(name: str) -> str:
    """Build the ref under which the server stores the work on the item whose folder is `name`."""
    return f"{_KEPT_REFS}{name}/tree"


async def read_kept(path: Path, name: str) -> str:
    """Return the commit that the server stored of that item at the last update; empty if there was none."""
    return await OwnGit(path).find_commit(f"{_FETCHED_REFS}{name}/tree")


@asynccontextmanager
async def lock_mirror(path: Path, seconds: float = LOCK_SECONDS) -> AsyncGenerator[bool]:
    """Hold the lock of the mirror at `path`. Yields False if another process held it for all of `seconds`."""
    lock = SessionLock(path.with_name(f"{path.name}.lock"))
    deadline = time.monotonic() + seconds
    is_locked = lock.acquire()
    while not is_locked and time.monotonic() < deadline:
        await asyncio.sleep(_RETRY_SECONDS)  # no event reports that another process released the lock
        is_locked = lock.acquire()
    try:
        yield is_locked
    finally:
        lock.release()


async def _is_complete(path: Path) -> bool:
    if not (path / MIRROR_MARK).is_file():
        return False
    return (await OwnGit(path).run("rev-parse", "--git-dir")).code == 0


async def _create(path: Path, remote: Remote, refspecs: tuple[str, ...]) -> GitRefusal | None:
    """Create the mirror in a temporary folder and rename it, so an interruption leaves no partial mirror."""
    for leftover in path.parent.glob(f"{path.name}.new-*"):
        await asyncio.to_thread(shutil.rmtree, leftover, ignore_errors=True)
    new = path.with_name(f"{path.name}.new-{uuid4().hex}")
    try:
        argv = ["init", "--quiet", "--bare", "--template=", "--initial-branch=daiku/none", str(new)]
        if (refusal := find_refusal(await run_git(argv, path.parent))) is not None:
            return refusal
        if (refusal := await fetch(new, remote, refspecs, FETCH_SECONDS)) is not None:
            return refusal
        (new / MIRROR_MARK).write_text("", "utf-8")
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)
        new.rename(path)
    except OSError:
        return make_refusal("full")
    finally:
        await asyncio.to_thread(shutil.rmtree, new, ignore_errors=True)
    return None


async def _update(path: Path, remote: Remote, refspecs: tuple[str, ...]) -> GitRefusal | None:
    await asyncio.to_thread(_remove_stale_locks, path)
    if (refusal := await fetch(path, remote, refspecs, FETCH_SECONDS)) is not None:
        return refusal
    # Many packs slow git down. A failure of gc is harmless.
    settings = (("gc.auto", "6700"), ("gc.autoPackLimit", "50"), ("gc.autoDetach", "false"))
    await OwnGit(path).run("gc", "--auto", "--quiet", settings=settings, seconds=FETCH_SECONDS)
    return None


def _remove_stale_locks(path: Path) -> None:
    """Remove locks that a killed git left. Only the holder of the mirror's lock changes these files."""
    for lock in (path / "packed-refs.lock", path / "config.lock", path / "shallow.lock"):
        lock.unlink(missing_ok=True)
    for folder in (path / _BRANCHES, path / PRIVATE):
        for lock in folder.rglob("*.lock") if folder.is_dir() else ():
            lock.unlink(missing_ok=True)


def _has_work_trees(path: Path) -> bool:
    """Return True if a work tree of an item uses this mirror."""
    for note in path.glob("worktrees/*/gitdir"):
        with suppress(OSError):
            if Path(note.read_text("utf-8").strip()).exists():
                return True
    return False


def _build_folder_name(url: str) -> str:
    """Return a readable folder name that is unique for the address."""
    parts = urlsplit(url)
    readable = re.sub(r"[^A-Za-z0-9]+", "-", f"{parts.hostname or ''}{parts.path.removesuffix('.git')}")
    return f"{readable.strip('-')[-60:]}-{hashlib.sha256(url.encode()).hexdigest()[:10]}.git"
