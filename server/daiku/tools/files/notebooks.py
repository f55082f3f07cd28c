"""Convert notebooks for the file tools: models edit the text of cells, files contain JSON."""

from __future__ import annotations

from daiku.domain.errors import Failure, StaleVersionError
from daiku.domain.work.patches import FileChange, Patch
from daiku.edits.rules.matching.refusal import Refusal
from daiku.texts.text import text
from daiku.tools.rules.notebooks.celltext import (
    EMPTY,
    is_notebook,
    merge_cell_text,
    parse_notebook,
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
