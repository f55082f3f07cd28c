"""What really came of an edit: the files as they stand once they are saved, and the problems that are new."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from daiku.core.changes.diagnostics import ProblemDelta, problem_delta, problem_delta_text
from daiku.core.changes.diff import patch_diff
from daiku.core.notebooks.celltext import as_text, is_notebook, with_cell_texts
from daiku.core.ports import Diagnostic
from daiku.core.text.truncate import truncate_middle
from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError
from daiku.domain.work.patches import FileChange, Patch
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
