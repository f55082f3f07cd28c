"""Editor queries beyond files: diagnostics, definitions, references, open files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from daiku.api import EditorDiagnostic, EditorDiagnosticsResult, EditorLocationsResult
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.runs import Position, Range
from daiku.edits.rules.positions import Encoding, find_line_starts, to_offset, to_position
from daiku.fronts.lsp.documents.open_documents import Documents, to_uri
from daiku.fronts.lsp.initialize import Json, to_path
from daiku.fronts.lsp.wire.protocol import Protocol
from daiku.fronts.lsp.wire.refused import RpcError
from daiku.run.rules.outside import Diagnostic, Location, Workspace
from daiku.texts.text import text
from daiku.tools.rules.notebooks.celltext import find_first_lines, format_cells, is_notebook, parse_notebook

ResponseModel = TypeVar("ResponseModel", bound=BaseModel)


class ModelText(NamedTuple):
    """A text as a model reads it; `cells` are the first lines of a notebook's cells."""

    text: str
    starts: list[int]
    cells: tuple[int, ...] = ()


class ClientEditor:
    """The editor (`ports.Editor`), over `daiku/editor/*`. Positions are in characters."""

    def __init__(self, protocol: Protocol, documents: Documents, workspace: Workspace) -> None:
        self._protocol = protocol
        self._documents = documents
        self._workspace = workspace

    async def diagnostics(self, path: str | None) -> tuple[Diagnostic, ...]:
        params = {} if path is None else {"uri": self._uri(path)}
        return await self._problems(params)

    async def settled(self, paths: Sequence[str]) -> tuple[Diagnostic, ...]:
        return await self._problems({"settle": [self._uri(path) for path in paths]})

    async def _problems(self, params: Json) -> tuple[Diagnostic, ...]:
        answer = await self._ask("daiku/editor/diagnostics", params, EditorDiagnosticsResult)
        places = ((self._path_of(item.uri), item) for item in answer.diagnostics)
        inside = [(place, item) for place, item in places if place is not None]
        texts = {place: await self._read_text(place) for place in {place for place, _ in inside}}
        return tuple(
            _diagnostic(place, item, texts[place], self._documents.encoding) for place, item in inside
        )

    async def _read_text(self, path: str) -> ModelText | None:
        """Return a file's text with its line starts, or a notebook's cells; None if it cannot be read."""
        try:
            text = (await self._workspace.read(path)).text
        except DaikuError:
            return None
        notebook = parse_notebook(text) if is_notebook(path) else None
        if notebook is None:
            return ModelText(text, find_line_starts(text))
        cells = tuple(placed.cell for placed in notebook.cells)
        text = format_cells(cells)
        return ModelText(text, find_line_starts(text), find_first_lines(cells))

    async def definition(self, path: str, position: Position) -> tuple[Location, ...]:
        return await self._places("daiku/editor/definition", path, position)

    async def references(self, path: str, position: Position) -> tuple[Location, ...]:
        return await self._places("daiku/editor/references", path, position)

    def open_files(self) -> tuple[str, ...]:
        paths = (self._path_of(document.uri) for document in self._documents.all())
        return tuple(path for path in paths if path is not None)

    async def _places(self, method: str, path: str, position: Position) -> tuple[Location, ...]:
        text = (await self._workspace.read(path)).text
        starts = find_line_starts(text)
        offset = to_offset(text, starts, position, "utf-32")
        units = to_position(text, starts, offset, self._documents.encoding)
        params = {"uri": self._uri(path), "position": units.model_dump()}
        answer = await self._ask(method, params, EditorLocationsResult)
        places = [(self._path_of(item.uri), item.range) for item in answer.locations]
        inside = [(place, span) for place, span in places if place is not None]
        texts = {place: await self._read_text(place) for place in {place for place, _ in inside}}
        return tuple(
            Location(place, _to_characters(span, texts[place], self._documents.encoding))
            for place, span in inside
        )

    def _uri(self, path: str) -> str:
        place = self._workspace.locate(path)
        document = self._documents.at(place)
        return document.uri if document is not None else to_uri(place)

    def _path_of(self, uri: str) -> str | None:
        """Return the workspace path of a file, or None if it is outside."""
        path = to_path(uri) if uri.startswith("file:") else None
        if path is None:
            return None
        try:
            return self._workspace.relative(self._workspace.locate(str(Path(path))))
        except DaikuError:
            return None

    async def _ask(self, method: str, params: Json, kind: type[ResponseModel]) -> ResponseModel:
        try:
            return kind.model_validate(await self._protocol.ask(method, params))
        except (RpcError, ValidationError) as error:
            why = error.message if isinstance(error, RpcError) else text("editor.bad_answer")
            raise UsageError(Failure(kind="tool", message=text("editor.not_opened", why=why))) from None


def _diagnostic(
    path: str, item: EditorDiagnostic, model_text: ModelText | None, encoding: Encoding
) -> Diagnostic:
    span = item.range
    if item.cell is not None and model_text is not None and 0 < item.cell <= len(model_text.cells):
        span = _shift_lines(span, model_text.cells[item.cell - 1])
    characters = _to_characters(span, model_text, encoding)
    return Diagnostic(path, characters, item.severity, item.message, item.source, item.cell)


def _shift_lines(span: Range, lines: int) -> Range:
    start, end = (p.model_copy(update={"line": p.line + lines}) for p in (span.start, span.end))
    return Range(start=start, end=end)


def _to_characters(span: Range, model_text: ModelText | None, encoding: Encoding) -> Range:
    """Convert a range from the editor's position encoding to characters."""
    if encoding == "utf-32" or model_text is None:
        return span
    text, starts = model_text.text, model_text.starts
    start, end = (
        to_position(text, starts, to_offset(text, starts, p, encoding), "utf-32")
        for p in (span.start, span.end)
    )
    return Range(start=start, end=end)
