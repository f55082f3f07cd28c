"""Apply an edit: take a checkpoint, change the files, and report the result and the editor's problems."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError, Failure, StaleVersionError
from daiku.domain.events import CheckpointEvent, Edit, Notice
from daiku.domain.tools import ToolResult
from daiku.domain.work.patches import FileChange, FileStat, Patch
from daiku.edits.rules.changes.diagnostics import ProblemDelta, compute_problem_delta, format_problem_delta
from daiku.edits.rules.changes.diff import render_patch, stat
from daiku.edits.rules.matching.refusal import Refusal
from daiku.run.rules.outside import Diagnostic
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import text
from daiku.tools.files.seen import SeenTexts
from daiku.tools.rules.notebooks.celltext import (
    EMPTY,
    is_notebook,
    merge_cell_text,
    parse_notebook,
    to_cell_change,
    to_cell_text,
)
from daiku.tools.tool import ToolContext


def to_editable(path: str, text: str) -> str:
    """Return the text in which a model edits a file: of a notebook, the text of its cells."""
    cells = to_cell_text(text) if is_notebook(path) else None
    return text if cells is None else cells


async def to_notebook_json(patch: Patch, context: ToolContext) -> Patch | Refusal:
    """Replace the cell text of notebooks in `patch` with JSON.

    Raises StaleVersionError if a notebook has changed since the patch was built.
    """
    changes: list[FileChange] = []
    for change in patch.files:
        converted = await _to_json_change(change, context) if is_notebook(change.path) else change
        if isinstance(converted, Refusal):
            return converted.within(change.path)
        changes.append(converted)
    return Patch(files=tuple(changes))


async def _to_json_change(change: FileChange, context: ToolContext) -> FileChange | Refusal:
    new = change.new
    if change.old is None:
        if new is None or not new.strip() or parse_notebook(new) is not None:
            return change
        merged = merge_cell_text(EMPTY, new)
        return merged if isinstance(merged, Refusal) else change.model_copy(update={"new": merged})
    raw = (await context.workspace.read(change.path)).text
    if change.old == raw:  # moved or deleted as a file, or no notebook inside
        return change
    if change.old != to_cell_text(raw):
        failure = Failure(
            kind="stale", message=text("files.notebook_changed", path=change.path), retryable=True
        )
        raise StaleVersionError(failure)
    if new is not None and parse_notebook(new) is None:
        merged_json = merge_cell_text(raw, new)
        if isinstance(merged_json, Refusal):
            return merged_json
        new = merged_json
    return change.model_copy(update={"old": raw, "new": new})


SETTLE_SECONDS = 8.0
"""Seconds to wait for the editor's problems. The editor's own limit is lower."""
_SHOWN_FORMATTING = 2000
"""Characters of the formatter's diff that the model gets."""
_MAX_FILES = 20
"""Files of one edit that the editor opens to collect problems. It reports others only if they are open."""


@dataclass(frozen=True, slots=True)
class SavedEdit:
    """An edit after the editor saved it.

    `patch`: from the old texts to the saved ones; `further`: from the written texts to the saved ones.
    """

    patch: Patch
    further: Patch


async def read_saved(patch: Patch, context: ToolContext) -> SavedEdit:
    """Read the changed files again, because an editor may format them when it saves."""
    if context.editor is None:
        return SavedEdit(patch, Patch(files=()))
    saved: list[FileChange] = []
    further: list[FileChange] = []
    for change in patch.files:
        text = await _read_text(change.to or change.path, context) if change.new is not None else None
        if text is None or text == change.new:
            saved.append(change)
            continue
        saved.append(change.model_copy(update={"new": text}))
        if is_notebook(change.path) and to_cell_text(text) == to_cell_text(change.new or ""):
            continue  # the editor formats JSON differently
        further.append(FileChange(path=change.to or change.path, kind="edit", old=change.new, new=text))
    return SavedEdit(
        Patch(files=tuple(saved)), Patch(files=tuple(to_cell_change(change) for change in further))
    )


async def _read_text(path: str, context: ToolContext) -> str | None:
    try:
        return (await context.workspace.read(path)).text
    except DaikuError:
        return None


async def read_problems(patch: Patch, context: ToolContext, *, before: bool) -> tuple[Diagnostic, ...] | None:
    """Return the editor's problems for the texts before or after the patch.

    Returns None if there is no editor or it does not answer within SETTLE_SECONDS.
    """
    if context.editor is None:
        return None
    absent_kind = "create" if before else "delete"
    paths = [c.path if before else c.to or c.path for c in patch.files if c.kind != absent_kind][:_MAX_FILES]
    try:
        async with asyncio.timeout(SETTLE_SECONDS):
            return await context.editor.settled(paths)
    except (DaikuError, TimeoutError):
        return None


def compare_problems(
    before: Sequence[Diagnostic] | None, after: Sequence[Diagnostic] | None, patch: Patch
) -> ProblemDelta | None:
    """Return how the patch changed the problems; None if the editor did not report them."""
    return None if before is None or after is None else compute_problem_delta(before, after, patch.files)


def format_edit_note(further: Patch, change: ProblemDelta | None) -> str:
    """Format the formatter's changes and the problems for the model; empty if there are none."""
    parts: list[str] = []
    if further.files:
        diff = truncate_middle(render_patch(further), _SHOWN_FORMATTING, "files__read shows the file")
        parts.append(f"When it was saved, the editor changed it further (its formatter):\n{diff.rstrip()}")
    if change is not None:
        parts.append(format_problem_delta(change))
    return "\n".join(part for part in parts if part)


STORED_DIFF = 60_000
"""Characters of a diff that an edit event stores."""
_SHOWN_DIFF = 4000
"""Characters of an edit's diff that the model gets."""


async def make_edit(label: str, patch: Patch, context: ToolContext, seen_texts: SeenTexts) -> ToolResult:
    """Take a checkpoint, apply the edit, and report the files and their problems to the model."""
    before = await read_problems(patch, context, before=True)
    async with context.checkpoints.change_lock:
        applied = await _apply_patch(label, patch, context)
    for file_change in applied.patch.files:
        seen_texts.note(context.session, context.workspace.locate(file_change.path), None)
        name = file_change.to or file_change.path
        text = to_editable(name, file_change.new) if file_change.new is not None else None
        seen_texts.note(context.session, context.workspace.locate(name), text)
    after = None if before is None else await read_problems(patch, context, before=False)
    change = await asyncio.to_thread(compare_problems, before, after, applied.patch)
    text = "\n".join(
        part
        for part in (_format_summary(applied.stats, applied.diff), format_edit_note(applied.further, change))
        if part
    )
    return ToolResult(ok=True, text=text, data=_build_data(applied.stats, applied.checkpoint, change))


class _AppliedEdit(NamedTuple):
    """An applied edit: `patch` in cell text, its diff and statistics, and what the editor changed further."""

    patch: Patch
    diff: str
    stats: tuple[FileStat, ...]
    further: Patch
    checkpoint: str


async def _apply_patch(label: str, patch: Patch, context: ToolContext) -> _AppliedEdit:
    paths = [path for change in patch.files for path in (change.path, change.to) if path]
    checkpoint = await context.checkpoints.take(context.session, context.run, paths, patch)
    # Before the change, so that it can be undone.
    context.emit(CheckpointEvent(checkpoint_id=checkpoint, files=tuple(paths)))
    await context.workspace.apply(patch, label)
    if expired := context.checkpoints.swept():
        context.emit(Notice(level="info", text=text("checkpoints.old_went", count=expired)))
    saved = await read_saved(patch, context)
    if saved.patch != patch:
        await context.checkpoints.settle(checkpoint, saved.patch)
    applied_patch = Patch(files=tuple(to_cell_change(change) for change in saved.patch.files))
    diff = await asyncio.to_thread(render_patch, applied_patch)
    stats = tuple(stat(change) for change in applied_patch.files)
    context.emit(
        Edit(
            files=stats,
            checkpoint_id=checkpoint,
            call_id=context.call_id,
            diff=truncate_middle(diff, STORED_DIFF),
        )
    )
    return _AppliedEdit(applied_patch, diff, stats, saved.further, checkpoint)


def _format_summary(stats: tuple[FileStat, ...], diff: str) -> str:
    verbs = {"create": "Made", "edit": "Changed", "delete": "Deleted", "rename": "Moved to"}
    lines = [f"{verbs[s.kind]} {s.path} (+{s.added} -{s.removed})" for s in stats]
    has_whole_file = any(s.kind in ("create", "delete") for s in stats)
    shown_diff = (
        ""
        if has_whole_file and len(stats) == 1
        else truncate_middle(diff, _SHOWN_DIFF, "files__read shows the file")
    )
    return "\n".join([*lines, shown_diff]).rstrip()


def _build_data(stats: tuple[FileStat, ...], checkpoint: str, change: ProblemDelta | None) -> dict[str, Any]:
    data: dict[str, Any] = {"files": [s.model_dump(by_alias=True) for s in stats], "checkpointId": checkpoint}
    if change is not None:
        counts = Counter(problem.severity for problem in change.new)
        data["problems"] = {"new": dict(counts), "fixed": change.fixed}
    return data
