"""Notebooks that are open in the editor: unsaved cells take precedence, and edits go through the editor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ValidationError

from daiku.api import EditNotebookParams, EditNotebookResult, EditorFileParams, EditorNotebook, NewCell
from daiku.dataclass import dataclass
from daiku.fronts.lsp.documents.open_documents import to_uri
from daiku.fronts.lsp.wire.protocol import Protocol
from daiku.fronts.lsp.wire.refused import RpcError
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.rules.notebooks.celltext import EMPTY, Cell, match_cells, parse_notebook, write_cells

CELL_SCHEME = "vscode-notebook-cell"
MARKDOWN, RAW = "markdown", "raw"


@dataclass(frozen=True, slots=True)
class OpenNotebook:
    """A notebook in the editor: its cells, and `raw`, the JSON that saving would write."""

    uri: str
    dirty: bool
    cells: tuple[Cell, ...]
    raw: str


async def open_notebook(protocol: Protocol, place: Path, on_disk: str | None) -> OpenNotebook | None:
    """Return the notebook of a file if it is open in the editor; else None."""
    uri = to_uri(place)
    params = EditorFileParams(uri=uri).model_dump(by_alias=True)
    try:
        notebook = EditorNotebook.model_validate(await protocol.ask("daiku/editor/notebook", params))
    except (RpcError, ValidationError):
        return None
    if notebook.cells is None:
        return None
    cells = tuple(
        Cell(None, _kind(cell.kind, cell.language), cell.text, cell.language, cell.id)
        for cell in notebook.cells
    )
    raw = on_disk if on_disk is not None and not notebook.dirty else _unsaved_json(on_disk, cells)
    return None if raw is None else OpenNotebook(uri, notebook.dirty, cells, raw)


def _unsaved_json(on_disk: str | None, cells: Sequence[Cell]) -> str | None:
    former = parse_notebook(on_disk or EMPTY)
    return None if former is None else write_cells(former, match_cells([p.cell for p in former.cells], cells))


async def document_name(protocol: Protocol, uri: str) -> str:
    """Return the name of a document for a model; a cell gets its notebook and number (`file:///n.ipynb#cell=2`)."""
    parts = urlsplit(uri)
    if parts.scheme != CELL_SCHEME:
        return uri
    name = f"file://{parts.path}"
    try:
        answer = await protocol.ask("daiku/editor/notebook", {"uri": name})
        cells = EditorNotebook.model_validate(answer).cells or ()
    except (RpcError, ValidationError):
        return name
    number = next((n for n, cell in enumerate(cells, 1) if cell.uri == uri), None)
    return name if number is None else f"{name}#cell={number}"


async def edit_notebook(protocol: Protocol, notebook: OpenNotebook, new: str) -> Text:
    """Edit an open notebook so that its cells match the JSON `new`; return the reason if that failed."""
    target = parse_notebook(new)
    if target is None:
        return text("editor.no_notebook")
    # The editor's cells, with the ids that the edit refers to.
    current = parse_notebook(notebook.raw)
    former = [placed.cell for placed in current.cells] if current is not None else []
    new_cells = match_cells(former, [placed.cell for placed in target.cells])
    params = EditNotebookParams(
        uri=notebook.uri,
        expected=tuple(cell.source for cell in notebook.cells),
        cells=tuple(_to_new_cell(cell, notebook) for cell in new_cells),
    )
    try:
        answer = await protocol.ask("daiku/editor/editNotebook", params.model_dump(by_alias=True))
        result = EditNotebookResult.model_validate(answer)
    except RpcError as error:
        return text("editor.refused", what=error.message)
    except ValidationError:
        return text("editor.notebook_bad_answer")
    if result.applied:
        return NO_TEXT
    return Text(result.reason) if result.reason else text("editor.not_applied")


def _to_new_cell(cell: Cell, notebook: OpenNotebook) -> NewCell:
    index = None if cell.number is None else cell.number - 1
    former = notebook.cells[index].language if index is not None and index < len(notebook.cells) else ""
    if cell.kind == "markdown":
        return NewCell(at=index, kind="markup", language=MARKDOWN, text=cell.source)
    if cell.kind == "raw":
        return NewCell(at=index, kind="code", language=RAW, text=cell.source)
    keeps_language = former not in ("", RAW, MARKDOWN)
    return NewCell(
        at=index,
        kind="code",
        language=former if keeps_language else cell.language or "python",
        text=cell.source,
    )


def _kind(kind: str, language: str) -> str:
    if kind == "markup":
        return "markdown"
    return "raw" if language == RAW else "code"
