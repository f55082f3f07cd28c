"""Tools for the editor's language servers: diagnostics, definitions, references."""

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
from daiku.guard.rules.protected.names import holds_secrets
from daiku.run.rules.outside import Editor, Location
from daiku.team.rules.proof.evidence import EVERYWHERE, is_within
from daiku.tools.face import Face
from daiku.tools.files.make_edit import SETTLE_SECONDS
from daiku.tools.files.sight import read_text, resolve_visible
from daiku.tools.tool import Args, Tool, ToolContext, build_failure

NO_EDITOR = "No editor is connected that could tell. Use search__symbols or search__text instead."
MAX_PLACES = 200
"""Places in one answer."""


class DiagnosticsArgs(Args):
    path: str | None = Field(default=None, description="one file; all without it")


class PlaceArgs(Args):
    """A place in a file: its line (from 1), and the character (from 1) or a name on that line."""

    path: str = Field(description="relative to the workspace")
    line: int = Field(ge=1, description="from 1")
    character: int | None = Field(default=None, ge=1, description="in the line, from 1")
    symbol: str = Field(default="", description="or a name that stands on that line")


async def list_diagnostics(args: DiagnosticsArgs, context: ToolContext) -> ToolResult:
    """List the editor's errors and warnings, the worst first. `data` = {errors: count by path}."""
    if context.editor is None:
        return build_failure(NO_EDITOR)
    await _wait_for_editor(args.path or EVERYWHERE, context.editor, context)
    unsorted = await context.editor.diagnostics(args.path)
    ranked = sort_by_severity(unsorted)
    location = f" in {args.path}" if args.path else ""
    errors: dict[str, JsonValue] = dict(Counter(d.path for d in ranked if d.severity == "error"))
    data: JsonObject = {"errors": errors}
    if not ranked:
        return ToolResult(ok=True, text=f"No problems{location}.", data=data)
    lines = [f"{format_counts(ranked)}{location}:", *_limit_lines([format_problem(d) for d in ranked])]
    return ToolResult(ok=True, text="\n".join(lines), data=data)


async def _wait_for_editor(path: str, editor: Editor, context: ToolContext) -> None:
    """Wait until the editor's problems are about the current files: earlier ones prove nothing.

    Waits at most SETTLE_SECONDS.
    """
    changed = [f.path for f in context.done().files if f.kind != "delete" and is_within(f.path, path)]
    if changed:
        with suppress(DaikuError, TimeoutError):
            async with asyncio.timeout(SETTLE_SECONDS):
                await editor.settled(changed)


async def find_definition(args: PlaceArgs, context: ToolContext) -> ToolResult:
    """Find the definition of the name at a place."""
    return await _find_places(args, context, lambda e, p: e.definition(args.path, p), "definition")


async def find_references(args: PlaceArgs, context: ToolContext) -> ToolResult:
    """Find the uses of the name at a place."""
    return await _find_places(args, context, lambda e, p: e.references(args.path, p), "reference")


async def _find_places(
    args: PlaceArgs,
    context: ToolContext,
    request: Callable[[Editor, Position], Awaitable[tuple[Location, ...]]],
    kind: str,
) -> ToolResult:
    if context.editor is None:
        return build_failure(NO_EDITOR)
    lines = (await read_text(resolve_visible(context, args.path), args.path, context)).text.splitlines()
    if args.line > len(lines):
        return build_failure(f"{args.path} has {len(lines)} lines; there is no line {args.line}.")
    line = lines[args.line - 1]
    character = line.find(args.symbol) if args.symbol else (args.character or 1) - 1
    if character < 0:
        return build_failure(
            f"Line {args.line} of {args.path} does not hold {args.symbol!r}; it reads: {line.strip()}"
        )
    locations = await request(context.editor, Position(line=args.line - 1, character=character))
    if not locations:
        return ToolResult(ok=True, text=f"The editor knows no {kind} for this place.")
    place_lines = await _format_places(locations, context)
    if not place_lines:
        return ToolResult(
            ok=True, text=f"Each {kind} is outside the workspace or in a file that is not shown."
        )
    return ToolResult(ok=True, text="\n".join(_limit_lines(place_lines)))


async def _format_places(locations: Sequence[Location], context: ToolContext) -> list[str]:
    """Format each place as `path:line:character | the line`. Places in hidden files are left out."""
    texts = {path: await _read_lines(path, context) for path in {place.path for place in locations}}
    return [
        f"{p.path}:{p.range.start.line + 1}:{p.range.start.character + 1} | {_read_line(lines, p.range.start.line)}"
        for p in locations
        if (lines := texts[p.path]) is not None
    ]


async def _read_lines(path: str, context: ToolContext) -> list[str] | None:
    """Read a file that the editor named; None if the agent may not see it without asking for it."""
    try:
        visible = resolve_visible(context, path)
        if holds_secrets(context.workspace.relative(visible.real)):
            return None
        return (await read_text(visible, path, context)).text.splitlines()
    except DaikuError:
        return None


def _read_line(lines: list[str], number: int) -> str:
    return lines[number].strip()[:200] if number < len(lines) else ""


def _limit_lines(lines: list[str]) -> list[str]:
    omitted = len(lines) - MAX_PLACES
    return [*lines[:MAX_PLACES], f"… and {omitted} more"] if omitted > 0 else lines


EDITOR_TOOLS = (
    Tool(
        "editor/diagnostics", "read", DiagnosticsArgs, list_diagnostics, parallel=True, timeout=20,
        face=Face("warning", Label("Check problems", "問題を確認"), "{path}"),
        description="Errors and warnings that the editor's language servers show. Look after you edited, before you run anything.",
    ),
    Tool(
        "editor/definition", "read", PlaceArgs, find_definition, parallel=True, timeout=20,
        face=Face("symbol-reference", Label("Go to definition", "定義へ移動"), "{path}{lines}"),
        description="Where something is defined, by the editor's language server: more exact than a text search.",
    ),
    Tool(
        "editor/references", "read", PlaceArgs, find_references, parallel=True, timeout=30,
        face=Face("references", Label("Find references", "参照を検索"), "{path}{lines}"),
        description="Every place that uses something, by the editor's language server: more exact than a text search. Ask before you rename or change what others call.",
    ),
)  # fmt: skip
