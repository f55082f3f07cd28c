"""Code actions without calling a model, and the context items of a document range."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.errors import DaikuError
from daiku.domain.runs import ContextItem, Position, Range
from daiku.edits.rules.positions import find_line_starts, to_offset
from daiku.fronts.lsp.connection import ClientConnection
from daiku.fronts.lsp.documents.editor_queries import ClientEditor
from daiku.fronts.lsp.documents.notebooks import document_name
from daiku.fronts.lsp.initialize import FIX, REWRITE, SOURCE, Json, to_path
from daiku.fronts.lsp.wire.jsontext import write_json
from daiku.run.rules.outside import Diagnostic
from daiku.team.rules.drafting.headings import is_prose
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import render, text
from daiku.tools.files.tags import read_tags
from daiku.tools.rules.code.repomap import find_enclosing_definition

AUTOMATIC = 2
"""Trigger kind of requests that the client sends automatically."""
MOST_FIXES = 20
"""Maximum number of fix actions."""
TITLE = 80
"""Maximum characters of a problem in a title."""


class _Params(BaseModel):
    """LSP params; other keys are ignored."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)


class _DocumentRef(_Params):
    uri: str


class ListedDiagnostic(_Params):
    """A diagnostic, with all its fields to send back."""

    model_config = ConfigDict(extra="allow")

    range: Range
    message: str

    @property
    def all_fields(self) -> JsonObject:
        return {**self.model_dump(), **(self.model_extra or {})}


class _Context(_Params):
    diagnostics: tuple[ListedDiagnostic, ...] = ()
    only: tuple[str, ...] | None = None
    trigger: int | None = Field(default=None, alias="triggerKind")


class ListParams(_Params):
    document: _DocumentRef = Field(alias="textDocument")
    range: Range
    context: _Context = _Context()


class ResolveParams(BaseModel):
    """A listed action; fields that the client added are returned unchanged."""

    model_config = ConfigDict(extra="allow")

    title: str
    command: Any = None
    data: Any = None


async def code_actions(c: ClientConnection, params: Json) -> str:
    """Answer `textDocument/codeAction`. Raises pydantic.ValidationError."""
    list_params = ListParams.model_validate(params if params is not None else {})
    actions = [
        a
        for a in _actions(list_params, c.protocol.language)
        if _matches_kinds(str(a["kind"]), list_params.context.only)
    ]
    if not c.offer.action_literals:
        return write_json([_command(a) for a in actions])
    if not c.offer.lazy_actions:
        return write_json([_resolve(a) for a in actions])
    return write_json(actions)


async def resolve_action(_: ClientConnection, params: Json) -> str:
    """Answer `codeAction/resolve`: the same action with its command. Raises pydantic.ValidationError."""
    action = ResolveParams.model_validate(params if params is not None else {})
    return write_json(_resolve(action.model_dump(exclude_none=True)))


def _actions(list_params: ListParams, language: str) -> Iterator[JsonObject]:
    def translate(key: str) -> str:
        return render(text(key), language)

    uri, where = list_params.document.uri, list_params.range
    yield from _fixes(list_params, language)
    is_automatic = list_params.context.trigger == AUTOMATIC
    place: JsonObject = {"uri": uri, "range": where.model_dump()}
    if where.start != where.end:
        refactor: JsonObject = {**place, "instruction": translate("action.refactor"), "ask": True}
        yield _action(translate("action.refactor_title"), REWRITE, "daiku.generateCode", refactor)
        if is_prose(uri):
            revise: JsonObject = {**place, "instruction": translate("action.revise"), "ask": True}
            yield _action(translate("action.revise_title"), REWRITE, "daiku.document", revise)
        else:
            yield _action(translate("action.document_title"), REWRITE, "daiku.document", place)
        yield _action(translate("action.tests_title"), REWRITE, "daiku.writeTests", place)
        translation: JsonObject = {**place, "instruction": translate("action.translate")}
        yield _action(translate("action.translate_title"), REWRITE, "daiku.generateCode", translation)
    if not is_automatic:
        yield _action(translate("action.explain_title"), SOURCE, "daiku.explain", place)
        yield _action(translate("action.review_title"), SOURCE, "daiku.review", {"uri": uri})


def _fixes(list_params: ListParams, language: str) -> Iterator[JsonObject]:
    """Yield one action per problem, and one for all if there are several."""
    diagnostics = list({(d.message, d.range.start.line): d for d in list_params.context.diagnostics}.values())
    for diagnostic in diagnostics[:MOST_FIXES]:
        yield _fix(
            render(text("action.fix_one", problem=_one_line(diagnostic.message)), language),
            list_params.document.uri,
            [diagnostic],
        )
    if len(diagnostics) > 1:
        yield _fix(
            render(text("action.fix_all", count=len(diagnostics)), language),
            list_params.document.uri,
            diagnostics,
        )


def _fix(title: str, uri: str, problems: list[ListedDiagnostic]) -> JsonObject:
    start = min((p.range.start for p in problems), key=lambda p: (p.line, p.character))
    end = max((p.range.end for p in problems), key=lambda p: (p.line, p.character))
    place: JsonValue = Range(start=start, end=end).model_dump()
    complete: list[JsonValue] = [p.all_fields for p in problems]
    arguments: JsonObject = {"uri": uri, "range": place, "diagnostics": complete}
    return {**_action(title, FIX, "daiku.fix", arguments), "diagnostics": complete}


def _action(title: str, kind: str, command: str, arguments: JsonObject) -> JsonObject:
    return {"title": title, "kind": kind, "data": {"command": command, "arguments": arguments}}


def _resolve(action: JsonObject) -> JsonObject:
    data = action.get("data")
    if action.get("command") is not None or not isinstance(data, dict) or "command" not in data:
        return action
    return {**action, "command": _command(action)}


def _command(action: JsonObject) -> JsonObject:
    data = action["data"]
    assert isinstance(data, dict), "only asked of actions with data"
    return {"title": action["title"], "command": data["command"], "arguments": [data.get("arguments", {})]}


def _matches_kinds(kind: str, only: tuple[str, ...] | None) -> bool:
    """Return True if no kind was requested, or `kind` is or specializes a requested one."""
    return not only or any(not o or kind == o or kind.startswith(f"{o}.") for o in only)


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= TITLE else line[: TITLE - 1] + "…"


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
