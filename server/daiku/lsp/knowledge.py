"""What the editor knows beyond files: diagnostics, definitions, references, open files."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from daiku.api import EditorDiagnosticsResult, EditorLocationsResult
from daiku.core.ports import Diagnostic, Location, Workspace
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.runs import Position, Range
from daiku.lsp.documents import Documents, to_uri
from daiku.lsp.opening import Json, to_path
from daiku.lsp.positions import line_starts, offset_of, position_of
from daiku.lsp.wire import Protocol, Refused

Answer = TypeVar("Answer", bound=BaseModel)


class ClientEditor:
    """Implements ports.Editor over `daiku/editor/*`. Positions of the port count characters."""

    def __init__(self, protocol: Protocol, documents: Documents, workspace: Workspace) -> None:
        self._protocol = protocol
        self._documents = documents
        self._workspace = workspace

    async def diagnostics(self, path: str | None) -> tuple[Diagnostic, ...]:
        params = {} if path is None else {"uri": self._uri(path)}
        answer = await self._ask("daiku/editor/diagnostics", params, EditorDiagnosticsResult)
        found: list[Diagnostic] = []
        for item in answer.diagnostics:
            place = self._named(item.uri)
            if place is not None:
                span = await self._characters(place, item.range)
                found.append(Diagnostic(place, span, item.severity, item.message, item.source))
        return tuple(found)

    async def definition(self, path: str, position: Position) -> tuple[Location, ...]:
        return await self._places("daiku/editor/definition", path, position)

    async def references(self, path: str, position: Position) -> tuple[Location, ...]:
        return await self._places("daiku/editor/references", path, position)

    def open_files(self) -> tuple[str, ...]:
        paths = (self._named(document.uri) for document in self._documents.all())
        return tuple(path for path in paths if path is not None)

    async def _places(self, method: str, path: str, position: Position) -> tuple[Location, ...]:
        text = (await self._workspace.read(path)).text
        starts = line_starts(text)
        offset = offset_of(text, starts, position, "utf-32")
        units = position_of(text, starts, offset, self._documents.encoding)
        params = {"uri": self._uri(path), "position": units.model_dump()}
        answer = await self._ask(method, params, EditorLocationsResult)
        named = [(self._named(item.uri), item.range) for item in answer.locations]
        return tuple(
            [
                Location(place, await self._characters(place, span))
                for place, span in named
                if place is not None
            ]
        )

    async def _characters(self, path: str, span: Range) -> Range:
        """A range in the editor's units as one in characters."""
        encoding = self._documents.encoding
        if encoding == "utf-32":
            return span
        try:
            text = (await self._workspace.read(path)).text
        except DaikuError:
            return span
        starts = line_starts(text)
        start, end = (offset_of(text, starts, p, encoding) for p in (span.start, span.end))
        return Range(
            start=position_of(text, starts, start, "utf-32"), end=position_of(text, starts, end, "utf-32")
        )

    def _uri(self, path: str) -> str:
        place = self._workspace.locate(path)
        document = self._documents.at(place)
        return document.uri if document is not None else to_uri(place)

    def _named(self, uri: str) -> str | None:
        """The workspace's name of a file; None where it is outside."""
        path = to_path(uri) if uri.startswith("file:") else None
        if path is None:
            return None
        try:
            return self._workspace.relative(self._workspace.locate(str(Path(path))))
        except DaikuError:
            return None

    async def _ask(self, method: str, params: Json, kind: type[Answer]) -> Answer:
        try:
            return kind.model_validate(await self._protocol.ask(method, params))
        except (Refused, ValidationError) as error:
            why = error.message if isinstance(error, Refused) else "its answer has a wrong form"
            raise UsageError(Failure(kind="tool", message=f"The editor could not tell: {why}.")) from None
