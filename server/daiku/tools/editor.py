"""What the editor's language servers know: diagnostics, definitions, references; offered where there is an editor."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from pydantic import Field, JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.errors import DaikuError
from daiku.domain.labels import Label
from daiku.domain.runs import Position
from daiku.domain.tools import ToolResult
from daiku.edits.rules.changes.diagnostics import format_counts, format_problem, sort_by_severity
from daiku.guard.rules.protected.paths import holds_secrets
from daiku.run.rules.outside import Editor, Location
from daiku.team.rules.proof.evidence import EVERYWHERE, is_within
from daiku.tools.face import Face
from daiku.tools.files.make_edit import SETTLE_SECONDS
from daiku.tools.files.sight import read_text, resolve_visible
from daiku.tools.tool import Args, Tool, ToolContext, failed

NO_EDITOR = "No editor is connected that could tell. Use search__symbols or search__text instead."
SHOWN = 200
"""Places that one answer lists."""


class DiagnosticsArgs(Args):
    path: str | None = Field(default=None, description="one file; all without it")


class PlaceArgs(Args):
    """A place in a file: its line (from 1) and the character in it (from 1), or a name on that line."""

    path: str = Field(description="relative to the workspace")
    line: int = Field(ge=1, description="from 1")
    character: int | None = Field(default=None, ge=1, description="in the line, from 1")
    symbol: str = Field(default="", description="or a name that stands on that line")


async def diagnostics(args: DiagnosticsArgs, context: ToolContext) -> ToolResult:
    """Errors and warnings as the editor shows them, the worst first. `data` = {errors: count by path}."""
    if context.editor is None:
        return failed(NO_EDITOR)
    await _settled(args.path or EVERYWHERE, context.editor, context)
    found = await context.editor.diagnostics(args.path)
    ranked = sort_by_severity(found)
    where = f" in {args.path}" if args.path else ""
    errors: dict[str, JsonValue] = dict(Counter(d.path for d in ranked if d.severity == "error"))
    data: JsonObject = {"errors": errors}
    if not ranked:
        return ToolResult(ok=True, text=f"No problems{where}.", data=data)
    lines = [f"{format_counts(ranked)}{where}:", *_limited([format_problem(d) for d in ranked])]
    return ToolResult(ok=True, text="\n".join(lines), data=data)


async def _settled(place: str, editor: Editor, context: ToolContext) -> None:
    """Wait, bounded, until what the editor tells is about the files as this run has left them: what it
    knew before an edit proves nothing."""
    changed = [f.path for f in context.done().files if f.kind != "delete" and is_within(f.path, place)]
    if changed:
        with suppress(DaikuError, TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await editor.settled(changed)


async def definition(args: PlaceArgs, context: ToolContext) -> ToolResult:
    """Where the thing at a place is defined."""
    return await _places(args, context, lambda e, p: e.definition(args.path, p), "definition")


async def references(args: PlaceArgs, context: ToolContext) -> ToolResult:
    """Where the thing at a place is used."""
    return await _places(args, context, lambda e, p: e.references(args.path, p), "reference")


async def _places(
    args: PlaceArgs,
    context: ToolContext,
    ask: Callable[[Editor, Position], Awaitable[tuple[Location, ...]]],
    what: str,
) -> ToolResult:
    if context.editor is None:
        return failed(NO_EDITOR)
    lines = (await read_text(resolve_visible(context, args.path), args.path, context)).text.splitlines()
    if args.line > len(lines):
        return failed(f"{args.path} has {len(lines)} lines; there is no line {args.line}.")
    line = lines[args.line - 1]
    at = line.find(args.symbol) if args.symbol else (args.character or 1) - 1
    if at < 0:
        return failed(
            f"Line {args.line} of {args.path} does not hold {args.symbol!r}; it reads: {line.strip()}"
        )
    found = await ask(context.editor, Position(line=args.line - 1, character=at))
    if not found:
        return ToolResult(ok=True, text=f"The editor knows no {what} for this place.")
    shown = await _located(found, context)
    if not shown:
        return ToolResult(
            ok=True, text=f"Each {what} is outside the workspace or in a file that is not shown."
        )
    return ToolResult(ok=True, text="\n".join(_limited(shown)))


async def _located(found: Sequence[Location], context: ToolContext) -> list[str]:
    """`path:line:character | the line`, each file read once; places in files that are not shown are left out."""
    texts = {path: await _lines(path, context) for path in {place.path for place in found}}
    return [
        f"{p.path}:{p.range.start.line + 1}:{p.range.start.character + 1} | {_line(lines, p.range.start.line)}"
        for p in found
        if (lines := texts[p.path]) is not None
    ]


async def _lines(path: str, context: ToolContext) -> list[str] | None:
    """The lines of a file that an editor led to; None where nobody may see it without asking for it."""
    try:
        sight = resolve_visible(context, path)
        if holds_secrets(context.workspace.relative(sight.real)):
            return None
        return (await read_text(sight, path, context)).text.splitlines()
    except DaikuError:
        return None


def _line(lines: list[str], number: int) -> str:
    return lines[number].strip()[:200] if number < len(lines) else ""


def _limited(lines: list[str]) -> list[str]:
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], f"… and {more} more"] if more > 0 else lines


EDITOR_TOOLS = (
    Tool(
        "editor/diagnostics", "read", DiagnosticsArgs, diagnostics, parallel=True, timeout=20,
        face=Face("warning", Label("Check problems", "問題を確認"), "{path}"),
        description="Errors and warnings that the editor's language servers show. Look after you edited, before you run anything.",
    ),
    Tool(
        "editor/definition", "read", PlaceArgs, definition, parallel=True, timeout=20,
        face=Face("symbol-reference", Label("Go to definition", "定義へ移動"), "{path}{lines}"),
        description="Where something is defined, by the editor's language server: more exact than a text search.",
    ),
    Tool(
        "editor/references", "read", PlaceArgs, references, parallel=True, timeout=30,
        face=Face("references", Label("Find references", "参照を検索"), "{path}{lines}"),
        description="Every place that uses something, by the editor's language server: more exact than a text search. Ask before you rename or change what others call.",
    ),
)  # fmt: skip
