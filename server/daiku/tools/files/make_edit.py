"""Making an edit that was built: its checkpoint, the change itself, what the editor made of it, and the result."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError
from daiku.domain.events import CheckpointEvent, Edit, Notice
from daiku.domain.tools import ToolResult
from daiku.domain.work.patches import FileChange, FileStat, Patch
from daiku.edits.rules.changes.diagnostics import ProblemDelta, problem_delta, problem_delta_text
from daiku.edits.rules.changes.diff import patch_diff, stat
from daiku.run.rules.outside import Diagnostic
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import text
from daiku.tools.files.notebooks import editable
from daiku.tools.files.seen import SeenTexts
from daiku.tools.rules.notebooks.celltext import as_text, is_notebook, with_cell_texts
from daiku.tools.tool import ToolContext

SETTLE_SECONDS = 8.0
"""An editor that takes longer to tell its problems is not waited for; it bounds its own waiting below this."""
_SHOWN_FORMATTING = 2000
_MOST_FILES = 20
"""Files of one edit that the editor opens to look for problems; of more only what it has open anyway."""


@dataclass(frozen=True, slots=True)
class SavedEdit:
    """`patch`: from the old texts to what stands there now. `further`: from what we wrote to that."""

    patch: Patch
    further: Patch


async def read_saved(patch: Patch, context: ToolContext) -> SavedEdit:
    """Read the changed files again: an editor that saves may format them."""
    if context.editor is None:
        return SavedEdit(patch, Patch(files=()))
    now: list[FileChange] = []
    further: list[FileChange] = []
    for change in patch.files:
        text = await _text(change.to or change.path, context) if change.new is not None else None
        if text is None or text == change.new:
            now.append(change)
            continue
        now.append(change.model_copy(update={"new": text}))
        if is_notebook(change.path) and as_text(text) == as_text(change.new or ""):
            continue  # the editor writes the JSON in its own way
        further.append(FileChange(path=change.to or change.path, kind="edit", old=change.new, new=text))
    return SavedEdit(
        Patch(files=tuple(now)), Patch(files=tuple(with_cell_texts(change) for change in further))
    )


async def _text(path: str, context: ToolContext) -> str | None:
    try:
        return (await context.workspace.read(path)).text
    except DaikuError:
        return None


async def problems(patch: Patch, context: ToolContext, *, before: bool) -> tuple[Diagnostic, ...] | None:
    """The editor's problems once they are about the texts `before` or after the patch; None where there
    is no editor or it cannot tell."""
    if context.editor is None:
        return None
    gone = "create" if before else "delete"
    paths = [c.path if before else c.to or c.path for c in patch.files if c.kind != gone][:_MOST_FILES]
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            return await context.editor.settled(paths)
    except (DaikuError, TimeoutError):
        return None


def difference(
    before: Sequence[Diagnostic] | None, after: Sequence[Diagnostic] | None, patch: Patch
) -> ProblemDelta | None:
    """Return how the patch changed the diagnostics; None if the editor could not tell."""
    return None if before is None or after is None else problem_delta(before, after, patch.files)


def edit_note(further: Patch, change: ProblemDelta | None) -> str:
    """Format formatting changes and diagnostics for the model; empty if there are none."""
    parts: list[str] = []
    if further.files:
        diff = truncate_middle(patch_diff(further), _SHOWN_FORMATTING, "files__read shows the file")
        parts.append(f"When it was saved, the editor changed it further (its formatter):\n{diff.rstrip()}")
    if change is not None:
        parts.append(problem_delta_text(change))
    return "\n".join(part for part in parts if part)


STORED_DIFF = 60_000
"""Characters of a diff that an edit event keeps."""
_SHOWN_DIFF = 4000


async def make_edit(label: str, patch: Patch, context: ToolContext, seen: SeenTexts) -> ToolResult:
    """Take a checkpoint, make the edit, and tell the model what became of the files and their problems."""
    before = await problems(patch, context, before=True)
    async with context.checkpoints.change_lock:
        made = await _change(label, patch, context)
    for one in made.seen.files:
        seen.note(context.session, context.workspace.locate(one.path), None)
        name = one.to or one.path
        text = editable(name, one.new) if one.new is not None else None
        seen.note(context.session, context.workspace.locate(name), text)
    after = None if before is None else await problems(patch, context, before=False)
    change = await asyncio.to_thread(difference, before, after, made.seen)
    text = "\n".join(
        part for part in (_summary(made.stats, made.diff), edit_note(made.further, change)) if part
    )
    return ToolResult(ok=True, text=text, data=_data(made.stats, made.checkpoint, change))


class _Made(NamedTuple):
    """An edit that was made: as a person and a model see it, and what the editor changed beyond it."""

    seen: Patch
    diff: str
    stats: tuple[FileStat, ...]
    further: Patch
    checkpoint: str


async def _change(label: str, patch: Patch, context: ToolContext) -> _Made:
    touched = [path for change in patch.files for path in (change.path, change.to) if path]
    checkpoint = await context.checkpoints.take(context.session, context.run, touched, patch)
    context.emit(CheckpointEvent(checkpoint_id=checkpoint, files=tuple(touched)))  # first: it is the way back
    await context.workspace.apply(patch, label)
    if gone := context.checkpoints.swept():
        context.emit(Notice(level="info", text=text("checkpoints.old_went", count=gone)))
    stands = await read_saved(patch, context)
    if stands.patch != patch:
        await context.checkpoints.settle(checkpoint, stands.patch)
    seen = Patch(files=tuple(with_cell_texts(change) for change in stands.patch.files))
    diff = await asyncio.to_thread(patch_diff, seen)
    stats = tuple(stat(change) for change in seen.files)
    context.emit(
        Edit(
            files=stats,
            checkpoint_id=checkpoint,
            call_id=context.call_id,
            diff=truncate_middle(diff, STORED_DIFF),
        )
    )
    return _Made(seen, diff, stats, stands.further, checkpoint)


def _summary(stats: tuple[FileStat, ...], diff: str) -> str:
    verbs = {"create": "Made", "edit": "Changed", "delete": "Deleted", "rename": "Moved to"}
    lines = [f"{verbs[s.kind]} {s.path} (+{s.added} -{s.removed})" for s in stats]
    whole = any(s.kind in ("create", "delete") for s in stats)
    shown = (
        "" if whole and len(stats) == 1 else truncate_middle(diff, _SHOWN_DIFF, "files__read shows the file")
    )
    return "\n".join([*lines, shown]).rstrip()


def _data(stats: tuple[FileStat, ...], checkpoint: str, change: ProblemDelta | None) -> dict[str, Any]:
    data: dict[str, Any] = {"files": [s.model_dump(by_alias=True) for s in stats], "checkpointId": checkpoint}
    if change is not None:
        counts = Counter(found.severity for found in change.new)
        data["problems"] = {"new": dict(counts), "fixed": change.fixed}
    return data
