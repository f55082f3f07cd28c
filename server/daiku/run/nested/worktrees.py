"""Parallel work: each piece in a copy of the project, merged as one patch, in order."""

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
from daiku.run.nested.handoff import Nested, abandon, find_result, nest, run_all
from daiku.run.rules.outside import Workspace
from daiku.run.services import RunServices
from daiku.store.copyfolders import remove_trial_data
from daiku.store.lock import SessionLock
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.git.worktrees import (
    Worktree,
    WorktreeBase,
    WorktreeChanges,
    WorktreeError,
    add_worktree,
    discard_worktree,
    find_base,
    read_changes,
    remove_worktree,
)
from daiku.workspace.checkpoints import CheckpointStore
from daiku.workspace.disk import DiskWorkspace, is_closed

GRANTED = ("edits", "sandbox", "all")
"""Approval modes that allow parallel work; in others each edit would be asked about twice."""
MOST = 4
"""Copies in use at the same time, at most."""
AGAIN, BACK = ":again", ":back"
"""Suffixes of a call's id: for the run that repeats a piece here, and the one that applies its patch."""
OLD = 3600.0
"""Seconds after which a scratch file is deleted."""
OUTLIVE, SETTLE = 0.4, 0.1
"""Seconds that programs of a killed process get to end, and that their copy must then stay deleted."""
LOST = text("runs.copy_lost")


@dataclass(frozen=True, slots=True)
class Piece:
    """Result of one piece of work, and why it was repeated here (empty: it was not)."""

    back: HandoffEnd
    repeated_because: Text = Text("")


async def side_by_side(
    parent: LiveRun, call: str, works: Sequence[Nested], *, only_apart: bool = False
) -> tuple[Piece, ...] | Text:
    """Run `works` and return their results in order; continue after a restart.

    If possible they run in parallel, each in a copy of the project, and each is merged as one patch by the
    guard. A piece whose patch does not apply is repeated. Otherwise they run one after the other, or, with
    `only_apart`, the reason is returned. Raises HandoffDepthExceeded, Paused.
    """
    keys = [f"{call}:{n}" for n in range(len(works))]
    if any(_has_begun(parent, key + end) for key in keys for end in ("", AGAIN)):  # started before a restart
        results = [_recover(parent, key, work) for key, work in zip(keys, works, strict=True)]
    else:
        base = await _prepare_base(parent, works)
        if isinstance(base, str):
            if base:
                parent.record(Notice(level="info", text=text("runs.one_by_one", why=base)))
            if only_apart:
                return base or Text("there is nothing to do at once")
            results = [_CopyResult(None)] * len(works)
        else:
            slots, git_lock = asyncio.Semaphore(MOST), asyncio.Lock()
            results = await run_all(
                _run_in_copy(parent, key, work, base, slots, git_lock)
                for key, work in zip(keys, works, strict=True)
            )
    return tuple(
        [
            await _merge_piece(parent, key, work, each)
            for key, work, each in zip(keys, works, results, strict=True)
        ]
    )


def _has_begun(parent: LiveRun, key: str) -> bool:
    return key in parent.record.state.nested.open or find_result(parent, key) is not None


def _recover(parent: LiveRun, key: str, work: Nested) -> _CopyResult:
    """Recover a piece after a restart: its copy is gone."""
    if key in parent.record.state.nested.open:
        abandon(parent, key, replace(work, services=parent.log.services))  # its changes in the copy are lost
    return _CopyResult(None, problem=LOST if find_result(parent, key) is not None else Text(""))


async def _prepare_base(parent: LiveRun, works: Sequence[Nested]) -> WorktreeBase | Text:
    """Return the base for copies, or the reason that there is none; empty if it needs no notice."""
    services = parent.log.services
    if len(works) < 2 or services.worktrees is None:
        return NO_TEXT
    if parent.tree.approvals not in GRANTED:
        return text("runs.approvals_in_the_way", mode=repr(parent.tree.approvals))
    changed_paths = [file.path for file in parent.record.state.done.files]
    try:
        return await find_base(services.roots, changed_paths, services.worktrees)
    except (WorktreeError, OSError) as error:
        return text("runs.no_copy", detail=str(error))


# ---- one piece


@dataclass(frozen=True, slots=True)
class _CopyResult:
    """Result of a piece in its copy; unusable if there is a `problem`."""

    back: HandoffEnd | None
    changes: WorktreeChanges = WorktreeChanges("")
    problem: Text = Text("")


async def _run_in_copy(
    parent: LiveRun,
    key: str,
    work: Nested,
    base: WorktreeBase,
    slots: asyncio.Semaphore,
    git_lock: asyncio.Lock,
) -> _CopyResult:
    """Run the piece in a copy, which is deleted afterwards."""
    folder = parent.log.services.worktrees
    assert folder is not None, "there is a base only where there is a folder"
    async with slots:
        copy = Worktree(base, folder / long_id("wt"))
        lock = SessionLock(copy.place.with_suffix(".lock"))
        lock.acquire()
        try:
            await asyncio.to_thread(_marker_of(copy.place).write_text, str(base.top), "utf-8")
            async with git_lock:  # git adds one worktree at a time
                await add_worktree(base, copy.place)
            result = await nest(
                parent, key, replace(work, services=_services_in_copy(parent.log.services, copy))
            )
            return _CopyResult(result, await read_changes(copy), _failure_reason(result))
        except (WorktreeError, OSError) as error:
            return _CopyResult(None, problem=text("runs.copy_unusable", detail=str(error)))
        finally:
            await asyncio.shield(_remove_copy(copy, lock, git_lock))


def _failure_reason(back: HandoffEnd) -> Text:
    if has_answer(back.status) and not back.problem:
        return Text("")
    return back.problem or text("runs.ended_in_copy", status=back.status)


async def _merge_piece(parent: LiveRun, key: str, work: Nested, copy_result: _CopyResult) -> Piece:
    """Apply the piece's patch here; repeat the piece here if that fails."""
    result, problem = copy_result.back or find_result(parent, key), copy_result.problem
    if copy_result.changes.unfit:
        problem = text("runs.no_text_changed", names=", ".join(copy_result.changes.unfit))
    if _has_begun(parent, key + BACK) or (not problem and copy_result.changes.diff):
        problem = await _apply_patch(parent, key + BACK, work, copy_result.changes.diff)
    if result is not None and (not problem or parent.tree.budget.refused is not None):
        return Piece(result)  # without budget it cannot be repeated
    if problem and not _has_begun(parent, key + AGAIN):
        parent.record(Notice(level="info", text=text("runs.done_again", why=problem)))
    return Piece(await nest(parent, key + AGAIN, work), problem)


async def _apply_patch(parent: LiveRun, key: str, work: Nested, diff: str) -> Text:
    """Apply the patch as a regular tool call; return the reason if that failed, else empty."""
    from daiku.team.coding.tasks import BRINGER  # when used

    patch = ToolCall(id=long_id("call"), tool="files/patch", args={"patch": diff})
    merge_work = Nested(BRINGER, f"Bring back: {work.request}", work.brief, calls=(patch,))
    if not diff and key in parent.record.state.nested.open:
        run = parent.record.state.nested.open[key].run
        if not any(chunk.run == run for chunk in parent.log.read_chunks()):  # its call was never recorded
            abandon(parent, key, merge_work)
    result = await nest(parent, key, merge_work)
    if result.deeds is not None and result.deeds.files:
        return Text("")
    return result.problem or text("runs.does_not_fit")


# ---- the copies


def _services_in_copy(services: RunServices, tree: Worktree) -> RunServices:
    """Return the services of a run in a copy: its own files and checkpoints, no editor, no MCP servers."""
    workspace = DiskWorkspace((tree.root,))

    def policy(mode: Mode, approvals: ApprovalMode, attended: bool) -> Policy:
        base = services.policy(mode, approvals, attended)
        return replace(
            base,
            approvals=base.approvals.model_copy(update={"mcp": "deny"}),
            resolve=partial(_resolve_path, workspace),
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


def _resolve_path(workspace: Workspace, path: str) -> str | None:
    try:
        return workspace.relative(workspace.locate(path))
    except (DaikuError, OSError, ValueError):  # an invalid path is not inside
        return None


def _marker_of(place: Path) -> Path:
    """Return the path of the marker that names a copy's repository, for cleanup after a crash."""
    return place.with_suffix(".of")


async def _remove_copy(tree: Worktree, lock: SessionLock, git_lock: asyncio.Lock) -> None:
    # git deletes its worktrees folder with the last worktree, even while it adds a new one.
    async with git_lock:
        await remove_worktree(tree)
        await asyncio.to_thread(_delete_copy, tree.place, tree.base.top, lock)


def _delete_copy(place: Path, top: Path, lock: SessionLock, settle: float = 0.0) -> None:
    """Delete a copy and its marker files; if that fails, the next start tries again."""
    removed = [discard_worktree(place, top, settle=settle), discard_worktree(place.with_suffix(".kept"), top)]
    lock.release()
    for suffix in (".diff", ".of", ".lock") if all(removed) else ():
        with suppress(OSError):
            place.with_suffix(suffix).unlink()


def sweep(folder: Path) -> None:
    """Delete the copies of processes that have ended. Touches only what its markers name."""
    for index in folder.glob("index-*"):
        with suppress(OSError):
            if time.time() - index.stat().st_mtime > OLD:
                index.unlink()
    markers = {note: SessionLock(note.with_suffix(".lock")) for note in folder.glob("*.of")}
    orphans = {note: lock for note, lock in markers.items() if _try_acquire(lock)}
    if orphans:
        time.sleep(OUTLIVE)
    for note, lock in orphans.items():
        with suppress(OSError, ValueError):
            _delete_copy(note.with_suffix(""), Path(note.read_text("utf-8")), lock, SETTLE)
        lock.release()


def sweep_copies(home: Path) -> None:
    """Delete project copies of ended processes below Daiku's home, and trial data of earlier versions."""
    sweep(home / "worktrees")
    remove_trial_data(home)


def _try_acquire(lock: SessionLock) -> bool:
    try:
        return lock.acquire()
    except OSError:
        return False
