"""Notebooks for the tools that change files: a model edits the text of their cells, the JSON is what is written."""

from __future__ import annotations

from daiku.domain.errors import Failure, StaleVersionError
from daiku.domain.work.patches import FileChange, Patch
from daiku.edits.rules.matching.refusal import Refusal
from daiku.texts.text import text
from daiku.tools.rules.notebooks.celltext import EMPTY, as_text, is_notebook, merge_text, parse_notebook
from daiku.tools.tool import ToolContext


def editable(path: str, text: str) -> str:
    """The text in which a model reads and edits a file: of a notebook its cells."""
    cells = as_text(text) if is_notebook(path) else None
    return text if cells is None else cells


async def to_notebook_json(patch: Patch, context: ToolContext) -> Patch | Refusal:
    """`patch` with the JSON of notebooks in the place of their cells' text. Raises StaleVersionError where a
    notebook is no longer what the change was made against."""
    changes: list[FileChange] = []
    for change in patch.files:
        written = await _written(change, context) if is_notebook(change.path) else change
        if isinstance(written, Refusal):
            return written.within(change.path)
        changes.append(written)
    return Patch(files=tuple(changes))


async def _written(change: FileChange, context: ToolContext) -> FileChange | Refusal:
    new = change.new
    if change.old is None:
        if new is None or not new.strip() or parse_notebook(new) is not None:
            return change
        made = merge_text(EMPTY, new)
        return made if isinstance(made, Refusal) else change.model_copy(update={"new": made})
    raw = (await context.workspace.read(change.path)).text
    if change.old == raw:  # moved or deleted as a file, or no notebook inside
        return change
    if change.old != as_text(raw):
        failure = Failure(
            kind="stale", message=text("files.notebook_changed", path=change.path), retryable=True
        )
        raise StaleVersionError(failure)
    if new is not None and parse_notebook(new) is None:
        put = merge_text(raw, new)
        if isinstance(put, Refusal):
            return put
        new = put
    return change.model_copy(update={"old": raw, "new": new})
