"""Build context items for a document range: the selection, its enclosing definition, its diagnostics."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path, PurePath

from pydantic import BaseModel, ConfigDict

from daiku.domain.errors import DaikuError
from daiku.domain.runs import ContextItem, Position, Range
from daiku.edits.rules.positions import find_line_starts, to_offset
from daiku.fronts.lsp.connection import ClientConnection
from daiku.fronts.lsp.documents.editor_queries import ClientEditor
from daiku.fronts.lsp.documents.notebooks import document_name
from daiku.fronts.lsp.initialize import to_path
from daiku.run.rules.outside import Diagnostic
from daiku.texts.rules.truncate import truncate_middle
from daiku.tools.files.tags import read_tags
from daiku.tools.rules.code.repomap import find_enclosing_definition

AROUND = 20
"""Lines before and after a place outside any definition."""
LARGEST = 400_000
"""Maximum characters of a text that is searched for definitions."""
MOST_PROBLEMS = 100
"""Maximum number of problems in a context item."""
SEVERITIES = {1: "error", 2: "warning", 3: "info", 4: "hint"}


class LspDiagnostic(BaseModel):
    """An LSP diagnostic, without unused fields."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    range: Range
    message: str
    severity: int | None = None
    source: str | None = None
    code: int | str | None = None

    def line(self) -> str:
        """Return the problem in the format of a compiler."""
        mark = " ".join(str(part) for part in (self.source, self.code) if part is not None)
        level = SEVERITIES.get(self.severity or 1, "error")
        return f"{self.range.start.line + 1}: {level}: {self.message}{f' ({mark})' if mark else ''}"


async def context_items(
    c: ClientConnection,
    uri: str,
    where: Range | None,
    problems: tuple[LspDiagnostic, ...],
    *,
    look: bool = False,
) -> tuple[ContextItem, ...]:
    """Return the context items for a place in a document.

    `look`: if no problems are given, request them from the editor.
    """
    text = await _document_text(c, uri)
    name = await document_name(c.protocol, uri) if c.offer.editor else uri
    items = [] if where is None or text is None else await _code_items(c, name, text, where)
    if not items:
        kind = "selection" if where is not None and where.start != where.end else "file"
        items = [ContextItem(kind=kind, uri=name, range=where)]
    lines = [problem.line() for problem in problems] or (
        await _editor_problems(c, uri, where) if look else []
    )
    if lines:
        items.append(ContextItem(kind="diagnostics", uri=name, text="\n".join(lines[:MOST_PROBLEMS])))
    return tuple(items)


async def _document_text(c: ClientConnection, uri: str) -> str | None:
    """Return the document as the user sees it, or None if it cannot be read."""
    open_text = next((d.displayed_text for d in c.documents.all() if d.uri == uri), None)
    if open_text is not None:
        return open_text
    path = to_path(uri) if uri.startswith("file:") else None
    if path is None:
        return None
    try:
        return (await c.workspace.read(path)).text
    except DaikuError:
        return None


async def _code_items(c: ClientConnection, uri: str, text: str, where: Range) -> list[ContextItem]:
    """Return the selection, and the definition (else the lines) around it."""
    lines = text.splitlines()
    starts = find_line_starts(text)
    start, end = (to_offset(text, starts, p, c.documents.encoding) for p in (where.start, where.end))
    selected = text[start:end]
    items = (
        [ContextItem(kind="selection", uri=uri, range=where, text=truncate_middle(selected))]
        if selected
        else []
    )
    first = where.start.line
    last = max(first, where.end.line - (1 if where.end.character == 0 else 0))
    around = await asyncio.to_thread(_definition, PurePath(uri).suffix.lower(), text, lines, first, last)
    kind = "symbol"
    if around is None and last - first < AROUND:
        kind, around = "text", (max(0, first - AROUND), min(len(lines) - 1, last + AROUND))
    if around is not None and around != (first, last) and lines:
        span = Range(
            start=Position(line=around[0], character=0), end=Position(line=around[1] + 1, character=0)
        )
        block = truncate_middle("\n".join(lines[around[0] : around[1] + 1]))
        items.append(ContextItem(kind=kind, uri=uri, range=span, text=block))
    return items


def _definition(suffix: str, text: str, lines: list[str], first: int, last: int) -> tuple[int, int] | None:
    if len(text) > LARGEST:
        return None
    return find_enclosing_definition(lines, first, last, read_tags(text.encode("utf-8", "replace"), suffix))


async def _editor_problems(c: ClientConnection, uri: str, where: Range | None) -> list[str]:
    """Return the editor's problems of a file: those at the place, else all."""
    path = to_path(uri) if uri.startswith("file:") else None
    if path is None or not c.offer.editor:
        return []
    editor = ClientEditor(c.protocol, c.documents, c.workspace)
    try:
        diagnostics = await editor.diagnostics(str(Path(path)))
    except DaikuError:
        return []
    at_place = [d for d in diagnostics if where is not None and _touches(d, where)]
    return list(_problem_lines(at_place or diagnostics))


def _touches(diagnostic: Diagnostic, where: Range) -> bool:
    return diagnostic.range.start.line <= where.end.line and where.start.line <= diagnostic.range.end.line


def _problem_lines(diagnostics: Iterable[Diagnostic]) -> Iterable[str]:
    for diagnostic in diagnostics:
        mark = f" ({diagnostic.source})" if diagnostic.source else ""
        yield f"{diagnostic.range.start.line + 1}: {diagnostic.severity}: {diagnostic.message}{mark}"
