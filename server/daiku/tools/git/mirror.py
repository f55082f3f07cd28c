"""A bare copy of a remote repository, one for all work on it: made or brought up to date, by one process at a time."""

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
from daiku.tools.git.ownrun import GitRefusal, OwnGit, is_branch, refusal_of, refused, run_git
from daiku.tools.git.remote import PRIVATE, Remote, address_of, fetch
from daiku.workspace.repository import MIRROR_MARK

FETCH_SECONDS = 1800.0
LOCK_SECONDS = 1800.0
"""How long another process that works on the same copy is waited for."""
_PAUSE = 0.05
_BRANCHES = "refs/remotes/origin/"
_KEPT = f"{PRIVATE}items/"
_FETCHED = f"{PRIVATE}fetched/"


async def mirror(folder: Path, remote: Remote, *, kept: str = "") -> Path | GitRefusal:
    """The bare copy of `remote` below `folder`, with the branches that the server has now, and with what is kept there
    of the item whose folder is called `kept` (`kept_ref`)."""
    if not address_of(remote) or (kept and not is_branch(kept)):
        return refused("unusable")
    place = place_of(folder, remote.url)
    refspecs = (f"+refs/heads/*:{_BRANCHES}*",)
    if kept:  # a pattern: that it matches nothing is no failure
        refspecs += (f"+{_KEPT}{kept}/*:{_FETCHED}{kept}/*",)
    async with holding(place) as held:
        if not held:
            return refused("unreachable")
        if await _whole(place):
            why = await _brought_up_to_date(place, remote, refspecs)
            if why is None or why.kind != "damaged" or _in_use(place):
                return why or place
        elif _in_use(place):
            return refused("damaged")
        return await _made(place, remote, refspecs) or place


def place_of(folder: Path, url: str) -> Path:
    """Where the copy of the repository at `url` is below `folder`, once it was made."""
    return folder / _name(url)


async def head_of(place: Path, name: str) -> str:
    """The commit of the server's branch `name` when the copy was brought up to date; empty where there was none."""
    return await OwnGit(place).commit_of(f"{_BRANCHES}{name}")


async def has_branches(place: Path) -> bool:
    """Whether the server had any branch when the copy was brought up to date: without one there is no commit."""
    listed = await OwnGit(place).run("for-each-ref", "--count=1", "--format=%(refname)", _BRANCHES)
    return bool(listed.text.strip())


def kept_ref(name: str) -> str:
    """The ref of the server under which the work on the item is kept whose folder is called `name`."""
    return f"{_KEPT}{name}/tree"


async def kept_of(place: Path, name: str) -> str:
    """The commit that was kept of that item when the copy was brought up to date; empty where there was none."""
    return await OwnGit(place).commit_of(f"{_FETCHED}{name}/tree")


@asynccontextmanager
async def holding(place: Path, seconds: float = LOCK_SECONDS) -> AsyncGenerator[bool]:
    """The right to change the copy at `place`, for as long as the block runs; False where another process had it for
    all of `seconds`."""
    lock = SessionLock(place.with_name(f"{place.name}.lock"))
    until = time.monotonic() + seconds
    held = lock.acquire()
    while not held and time.monotonic() < until:
        await asyncio.sleep(_PAUSE)  # the lock is another process's: nothing here is told of its end
        held = lock.acquire()
    try:
        yield held
    finally:
        lock.release()


async def _whole(place: Path) -> bool:
    if not (place / MIRROR_MARK).is_file():
        return False
    return (await OwnGit(place).run("rev-parse", "--git-dir")).code == 0


async def _made(place: Path, remote: Remote, refspecs: tuple[str, ...]) -> GitRefusal | None:
    """Make the copy beside its place and move it there when it is whole: whoever is killed leaves nothing that looks
    like one."""
    for left in place.parent.glob(f"{place.name}.new-*"):
        await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)
    new = place.with_name(f"{place.name}.new-{uuid4().hex}")
    try:
        told = ["init", "--quiet", "--bare", "--template=", "--initial-branch=daiku/none", str(new)]
        if (why := refusal_of(await run_git(told, place.parent))) is not None:
            return why
        if (why := await fetch(new, remote, refspecs, FETCH_SECONDS)) is not None:
            return why
        (new / MIRROR_MARK).write_text("", "utf-8")
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
        new.rename(place)
    except OSError:
        return refused("full")
    finally:
        await asyncio.to_thread(shutil.rmtree, new, ignore_errors=True)
    return None


async def _brought_up_to_date(place: Path, remote: Remote, refspecs: tuple[str, ...]) -> GitRefusal | None:
    await asyncio.to_thread(_without_locks, place)
    if (why := await fetch(place, remote, refspecs, FETCH_SECONDS)) is not None:
        return why
    # Packs of many fetches become one; that this does not work out is no reason not to go on.
    settings = (("gc.auto", "6700"), ("gc.autoPackLimit", "50"), ("gc.autoDetach", "false"))
    await OwnGit(place).run("gc", "--auto", "--quiet", settings=settings, seconds=FETCH_SECONDS)
    return None


def _without_locks(place: Path) -> None:
    """Take away locks of a git that was killed: of what is only changed by who holds the copy."""
    for left in (place / "packed-refs.lock", place / "config.lock", place / "shallow.lock"):
        left.unlink(missing_ok=True)
    for below in (place / _BRANCHES, place / PRIVATE):
        for left in below.rglob("*.lock") if below.is_dir() else ():
            left.unlink(missing_ok=True)


def _in_use(place: Path) -> bool:
    """Whether the work tree of an item stands on this copy."""
    for note in place.glob("worktrees/*/gitdir"):
        with suppress(OSError):
            if Path(note.read_text("utf-8").strip()).exists():
                return True
    return False


def _name(url: str) -> str:
    """A folder's name that a person can read and that no two addresses share."""
    parts = urlsplit(url)
    readable = re.sub(r"[^A-Za-z0-9]+", "-", f"{parts.hostname or ''}{parts.path.removesuffix('.git')}")
    return f"{readable.strip('-')[-60:]}-{hashlib.sha256(url.encode()).hexdigest()[:10]}.git"
