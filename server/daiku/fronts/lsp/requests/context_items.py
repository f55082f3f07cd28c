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
from daiku.fronts.lsp.documents.notebooks import place_of
from daiku.fronts.lsp.initialize import to_path
from daiku.run.rules.outside import Diagnostic
from daiku.texts.rules.truncate import truncate_middle
from daiku.tools.files.tags import read_tags
from daiku.tools.rules.code.enclosing import find_enclosing_definition

AROUND = 20
"""Lines before and after a place that no definition holds."""
LARGEST = 400_000
"""Characters of a text that is looked through for definitions."""
MOST_PROBLEMS = 100
SEVERITIES = {1: "error", 2: "warning", 3: "info", 4: "hint"}


class Problem(BaseModel):
    """A diagnostic of LSP; what we do not need of it is left out."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    range: Range
    message: str
    severity: int | None = None
    source: str | None = None
    code: int | str | None = None

    def line(self) -> str:
        """As a compiler would print it."""
        mark = " ".join(str(part) for part in (self.source, self.code) if part is not None)
        level = SEVERITIES.get(self.severity or 1, "error")
        return f"{self.range.start.line + 1}: {level}: {self.message}{f' ({mark})' if mark else ''}"


async def context_items(
    c: ClientConnection, uri: str, where: Range | None, problems: tuple[Problem, ...], *, look: bool = False
) -> tuple[ContextItem, ...]:
    """The items for a place in a document; `look`: the editor is asked for its problems where none are given."""
    text = await _text(c, uri)
    name = await place_of(c.protocol, uri) if c.offer.editor else uri
    items = [] if where is None or text is None else await _code(c, name, text, where)
    if not items:
        kind = "selection" if where is not None and where.start != where.end else "file"
        items = [ContextItem(kind=kind, uri=name, range=where)]
    lines = [problem.line() for problem in problems] or (await _known(c, uri, where) if look else [])
    if lines:
        items.append(ContextItem(kind="diagnostics", uri=name, text="\n".join(lines[:MOST_PROBLEMS])))
    return tuple(items)


async def _text(c: ClientConnection, uri: str) -> str | None:
    """The document as the person sees it; None where it cannot be read."""
    shown = next((d.shown for d in c.documents.all() if d.uri == uri), None)
    if shown is not None:
        return shown
    path = to_path(uri) if uri.startswith("file:") else None
    if path is None:
        return None
    try:
        return (await c.workspace.read(path)).text
    except DaikuError:
        return None


async def _code(c: ClientConnection, uri: str, text: str, where: Range) -> list[ContextItem]:
    """The selection itself, and the definition around it (else the lines around it)."""
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


async def _known(c: ClientConnection, uri: str, where: Range | None) -> list[str]:
    """The editor's problems of a file: those of the place, else all."""
    path = to_path(uri) if uri.startswith("file:") else None
    if path is None or not c.offer.editor:
        return []
    editor = ClientEditor(c.protocol, c.documents, c.workspace)
    try:
        found = await editor.diagnostics(str(Path(path)))
    except DaikuError:
        return []
    here = [d for d in found if where is not None and _touches(d, where)]
    return list(_lines(here or found))


def _touches(one: Diagnostic, where: Range) -> bool:
    return one.range.start.line <= where.end.line and where.start.line <= one.range.end.line


def _lines(found: Iterable[Diagnostic]) -> Iterable[str]:
    for one in found:
        mark = f" ({one.source})" if one.source else ""
        yield f"{one.range.start.line + 1}: {one.severity}: {one.message}{mark}"
