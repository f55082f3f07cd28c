"""Notebooks that are open in the editor: their unsaved cells are the truth, edits go through the editor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ValidationError

from daiku.api import EditNotebookParams, EditNotebookResult, EditorFileParams, EditorNotebook, NewCell
from daiku.dataclass import dataclass
from daiku.fronts.lsp.documents.open_documents import to_uri
from daiku.fronts.lsp.wire.protocol import Protocol
from daiku.fronts.lsp.wire.refused import Refused
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.rules.notebooks.celltext import EMPTY, Cell, match_cells, parse_notebook, write_cells

CELL_SCHEME = "vscode-notebook-cell"
MARKDOWN, RAW = "markdown", "raw"


@dataclass(frozen=True, slots=True)
class OpenNotebook:
    """A notebook in the editor: `cells` as it has them, `raw` the JSON that would be written now."""

    uri: str
    dirty: bool
    cells: tuple[Cell, ...]
    raw: str


async def open_notebook(protocol: Protocol, place: Path, on_disk: str | None) -> OpenNotebook | None:
    """The notebook of a file where the editor has it open; None where it has not, or cannot tell."""
    uri = to_uri(place)
    params = EditorFileParams(uri=uri).model_dump(by_alias=True)
    try:
        found = EditorNotebook.model_validate(await protocol.ask("daiku/editor/notebook", params))
    except (Refused, ValidationError):
        return None
    if found.cells is None:
        return None
    cells = tuple(
        Cell(None, _kind(cell.kind, cell.language), cell.text, cell.language, cell.id) for cell in found.cells
    )
    raw = on_disk if on_disk is not None and not found.dirty else _unsaved(on_disk, cells)
    return None if raw is None else OpenNotebook(uri, found.dirty, cells, raw)


def _unsaved(on_disk: str | None, cells: Sequence[Cell]) -> str | None:
    former = parse_notebook(on_disk or EMPTY)
    return None if former is None else write_cells(former, match_cells([p.cell for p in former.cells], cells))


async def place_of(protocol: Protocol, uri: str) -> str:
    """How a document is named to a model: a cell by its notebook and number (`file:///n.ipynb#cell=2`)."""
    parts = urlsplit(uri)
    if parts.scheme != CELL_SCHEME:
        return uri
    name = f"file://{parts.path}"
    try:
        answer = await protocol.ask("daiku/editor/notebook", {"uri": name})
        cells = EditorNotebook.model_validate(answer).cells or ()
    except (Refused, ValidationError):
        return name
    number = next((n for n, cell in enumerate(cells, 1) if cell.uri == uri), None)
    return name if number is None else f"{name}#cell={number}"


async def edit_notebook(protocol: Protocol, notebook: OpenNotebook, new: str) -> Text:
    """Bring the cells of an open notebook to those of the JSON `new`; why not, where it could not be done."""
    target = parse_notebook(new)
    if target is None:
        return text("editor.no_notebook")
    now = parse_notebook(
        notebook.raw
    )  # cell by cell what the editor has, with the ids that the edit was made with
    former = [placed.cell for placed in now.cells] if now is not None else []
    wanted = match_cells(former, [placed.cell for placed in target.cells])
    params = EditNotebookParams(
        uri=notebook.uri,
        expected=tuple(cell.source for cell in notebook.cells),
        cells=tuple(_new(cell, notebook) for cell in wanted),
    )
    try:
        answer = await protocol.ask("daiku/editor/editNotebook", params.model_dump(by_alias=True))
        result = EditNotebookResult.model_validate(answer)
    except Refused as error:
        return text("editor.refused", what=error.message)
    except ValidationError:
        return text("editor.notebook_bad_answer")
    if result.applied:
        return NO_TEXT
    return Text(result.reason) if result.reason else text("editor.not_applied")


def _new(cell: Cell, notebook: OpenNotebook) -> NewCell:
    at = None if cell.number is None else cell.number - 1
    former = notebook.cells[at].language if at is not None and at < len(notebook.cells) else ""
    if cell.kind == "markdown":
        return NewCell(at=at, kind="markup", language=MARKDOWN, text=cell.source)
    if cell.kind == "raw":
        return NewCell(at=at, kind="code", language=RAW, text=cell.source)
    same = former not in ("", RAW, MARKDOWN)
    return NewCell(
        at=at, kind="code", language=former if same else cell.language or "python", text=cell.source
    )


def _kind(kind: str, language: str) -> str:
    if kind == "markup":
        return "markdown"
    return "raw" if language == RAW else "code"
