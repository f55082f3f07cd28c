"""Work side by side: each piece in a copy of the project, brought back as one patch, in order."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from daiku.dataclass import dataclass, replace
from daiku.domain.base import long_id
from daiku.domain.errors import DaikuError
from daiku.domain.events import HandoffEnd, Notice
from daiku.domain.runs import ApprovalMode, Mode, has_answer
from daiku.domain.tools import ToolCall
from daiku.guard.rules.policy import Policy
from daiku.run.live import LiveRun
from daiku.run.nested.handoff import Nested, give_up, nest, returned, together
from daiku.run.rules.outside import Workspace
from daiku.run.services import RunServices
from daiku.store.copyfolders import remove_trial_data
from daiku.store.lock import SessionLock
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.git.worktrees import (
    Base,
    Changes,
    Worktree,
    WorktreeError,
    add,
    base_of,
    changes,
    discard,
    remove,
)
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace, is_closed

GRANTED = ("edits", "sandbox", "all")
"""Approvals with which work goes on side by side: else every edit would be asked about twice."""
MOST = 4
"""Copies that are worked in at the same time."""
AGAIN, BACK = ":again", ":back"
"""Behind a call's id: the run that does a piece again here; the one that brings its patch back."""
OLD = 3600.0
"""Seconds after which a scratch file is nobody's any more."""
OUTLIVE, SETTLE = 0.4, 0.1
"""Seconds that the programs of a killed process are given to end, and for which its copy has to stay away then."""
LOST = text("runs.copy_lost")


@dataclass(frozen=True, slots=True)
class Piece:
    """How one piece of work ended: its run, and why it was done again here (empty: it was not)."""

    back: HandoffEnd
    again: Text = Text("")


async def side_by_side(
    parent: LiveRun, call: str, works: Sequence[Nested], *, only_apart: bool = False
) -> tuple[Piece, ...] | Text:
    """Do the pieces `works` and return their results in order; continue after a restart.

    If possible they run in parallel, each in a copy of the project, and are merged as one patch each by the guard.
    A piece that no longer applies is done again. Otherwise they run one after the other, or, with `only_apart`, the
    reason is returned. Raises HandoffDepthExceeded, Paused."""
    keys = [f"{call}:{n}" for n in range(len(works))]
    if any(_known(parent, key + end) for key in keys for end in ("", AGAIN)):  # before a restart
        done = [_left(parent, key, work) for key, work in zip(keys, works, strict=True)]
    else:
        base = await _base(parent, works)
        if isinstance(base, str):
            if base:
                parent.record(Notice(level="info", text=text("runs.one_by_one", why=base)))
            if only_apart:
                return base or Text("there is nothing to do at once")
            done = [_Done(None)] * len(works)
        else:
            limit, adding = asyncio.Semaphore(MOST), asyncio.Lock()
            done = await together(
                _apart(parent, key, work, base, limit, adding) for key, work in zip(keys, works, strict=True)
            )
    return tuple(
        [await _home(parent, key, work, each) for key, work, each in zip(keys, works, done, strict=True)]
    )


def _known(parent: LiveRun, key: str) -> bool:
    return key in parent.record.state.nested.open or returned(parent, key) is not None


def _left(parent: LiveRun, key: str, work: Nested) -> _Done:
    """What is left of a piece after a restart: its copy is gone."""
    if key in parent.record.state.nested.open:
        give_up(parent, key, replace(work, services=parent.log.services))  # what it did there is not here
    return _Done(None, problem=LOST if returned(parent, key) is not None else Text(""))


async def _base(parent: LiveRun, works: Sequence[Nested]) -> Base | Text:
    """What copies are made of; a reason why none are, empty where there is nothing to say."""
    services = parent.log.services
    if len(works) < 2 or services.worktrees is None:
        return NO_TEXT
    if parent.tree.approvals not in GRANTED:
        return text("runs.approvals_in_the_way", mode=repr(parent.tree.approvals))
    own = [file.path for file in parent.record.state.done.files]
    try:
        return await base_of(services.roots, own, services.worktrees)
    except (WorktreeError, OSError) as error:
        return text("runs.no_copy", detail=str(error))


# ---- one piece


@dataclass(frozen=True, slots=True)
class _Done:
    """What a piece came to in its copy; with `problem` it is of no use here."""

    back: HandoffEnd | None
    found: Changes = Changes("")
    problem: Text = Text("")


async def _apart(
    parent: LiveRun, key: str, work: Nested, base: Base, limit: asyncio.Semaphore, adding: asyncio.Lock
) -> _Done:
    """The piece, done in a copy that is gone afterwards."""
    folder = parent.log.services.worktrees
    assert folder is not None, "there is a base only where there is a folder"
    async with limit:
        tree = Worktree(base, folder / long_id("wt"))
        lock = SessionLock(tree.place.with_suffix(".lock"))
        lock.acquire()
        try:
            await asyncio.to_thread(_note(tree.place).write_text, str(base.top), "utf-8")
            async with adding:  # git makes one at a time
                await add(base, tree.place)
            back = await nest(parent, key, replace(work, services=_within(parent.log.services, tree)))
            return _Done(back, await changes(tree), _of_no_use(back))
        except (WorktreeError, OSError) as error:
            return _Done(None, problem=text("runs.copy_unusable", detail=str(error)))
        finally:
            await asyncio.shield(_away(tree, lock, adding))


def _of_no_use(back: HandoffEnd) -> Text:
    if has_answer(back.status) and not back.problem:
        return Text("")
    return back.problem or text("runs.ended_in_copy", status=back.status)


async def _home(parent: LiveRun, key: str, work: Nested, done: _Done) -> Piece:
    """The piece's patch put in here; done again here where that does not work."""
    first, problem = done.back or returned(parent, key), done.problem
    if done.found.unfit:
        problem = text("runs.no_text_changed", names=", ".join(done.found.unfit))
    if _known(parent, key + BACK) or (not problem and done.found.diff):
        problem = await _brought_back(parent, key + BACK, work, done.found.diff)
    if first is not None and (not problem or parent.tree.budget.refused is not None):
        return Piece(first)  # with nothing left to spend it cannot be done again
    if problem and not _known(parent, key + AGAIN):
        parent.record(Notice(level="info", text=text("runs.done_again", why=problem)))
    return Piece(await nest(parent, key + AGAIN, work), problem)


async def _brought_back(parent: LiveRun, key: str, work: Nested, diff: str) -> Text:
    """Apply the patch as a call like any other; return why it could not be, empty if it was."""
    from daiku.team.coding.tasks import BRINGER  # when used

    patch = ToolCall(id=long_id("call"), tool="files/patch", args={"patch": diff})
    bringing = Nested(BRINGER, f"Bring back: {work.request}", work.brief, calls=(patch,))
    if not diff and key in parent.record.state.nested.open:
        run = parent.record.state.nested.open[key].run
        if not any(chunk.run == run for chunk in parent.log.read_chunks()):  # it never got its call
            give_up(parent, key, bringing)
    back = await nest(parent, key, bringing)
    if back.deeds is not None and back.deeds.files:
        return Text("")
    return back.problem or text("runs.does_not_fit")


# ---- the copies


def _within(services: RunServices, tree: Worktree) -> RunServices:
    """Return the services of a run that works in a copy: its own files and checkpoints, no editor, no MCP servers."""
    workspace = DiskWorkspace((tree.root,))

    def policy(mode: Mode, approvals: ApprovalMode, attended: bool) -> Policy:
        usual = services.policy(mode, approvals, attended)
        return replace(
            usual,
            approvals=usual.approvals.model_copy(update={"mcp": "deny"}),
            resolve=partial(_real, workspace),
            closed=partial(is_closed, workspace),
            roots=(str(tree.root),),
        )

    return replace(
        services,
        workspace=workspace,
        checkpoints=CheckpointStore(tree.place.with_suffix(".kept"), workspace),
        policy=policy,
        editor=None,
        servers=None,
        worktrees=None,
    )


def _real(workspace: Workspace, path: str) -> str | None:
    try:
        return workspace.relative(workspace.locate(path))
    except (DaikuError, OSError, ValueError):  # whatever is wrong with a path, it is not inside
        return None


def _note(place: Path) -> Path:
    """Says which repository a copy belongs to, for whoever finds it left behind."""
    return place.with_suffix(".of")


async def _away(tree: Worktree, lock: SessionLock, adding: asyncio.Lock) -> None:
    async with (
        adding
    ):  # git takes the folder that lists copies away with the last one, also from below a new one
        await remove(tree)
        await asyncio.to_thread(_forget, tree.place, tree.base.top, lock)


def _forget(place: Path, top: Path, lock: SessionLock, settle: float = 0.0) -> None:
    """Take a copy away with all that is noted of it; where that does not work the next start tries again."""
    gone = [discard(place, top, settle=settle), discard(place.with_suffix(".kept"), top)]
    lock.release()
    for suffix in (".diff", ".of", ".lock") if all(gone) else ():
        with suppress(OSError):
            place.with_suffix(suffix).unlink()


def sweep(folder: Path) -> None:
    """Take away the copies of processes that are gone. Touches nothing but what was noted when they were made."""
    for index in folder.glob("index-*"):
        with suppress(OSError):
            if time.time() - index.stat().st_mtime > OLD:
                index.unlink()
    left = {note: SessionLock(note.with_suffix(".lock")) for note in folder.glob("*.of")}
    ours = {note: lock for note, lock in left.items() if _taken(lock)}
    if ours:
        time.sleep(OUTLIVE)
    for note, lock in ours.items():
        with suppress(OSError, ValueError):
            _forget(note.with_suffix(""), Path(note.read_text("utf-8")), lock, SETTLE)
        lock.release()


def sweep_copies(home: Path) -> None:
    """Remove the copies of projects below Daiku's home whose process is gone, and what earlier versions kept for trials."""
    sweep(home / "worktrees")
    remove_trial_data(home)


def _taken(lock: SessionLock) -> bool:
    try:
        return lock.acquire()
    except OSError:
        return False
