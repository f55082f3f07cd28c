"""Tools that find: search/text here, search/symbols and search/map beside it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pathspec import GitIgnoreSpec
from pydantic import Field

from daiku.core.guard.referenced_paths import is_kept_output
from daiku.core.protected.paths import holds_secrets
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.files.mapping import MapArgs, SymbolArgs, search_map, search_symbols
from daiku.tools.files.outputs import search_output
from daiku.tools.files.reading import visible_path
from daiku.tools.files.ripgrep import Hit, Query, find_ripgrep, ripgrep
from daiku.tools.tool import Args, Tool, ToolContext, failed
from daiku.workspace.encodings import decode
from daiku.workspace.ignores import Ignores
from daiku.workspace.paths import root_of
from daiku.workspace.walk import files

MAX_HITS = 200
MORE = f"[… more than {MAX_HITS} lines match; narrow it with path, glob or a longer pattern …]"
SECONDS = 30
_LARGEST = 5_000_000
_LONG = 400


class TextArgs(Args):
    pattern: str = Field(min_length=1, description="regular expression, or plain text with literal")
    path: str | None = Field(default=None, description="only in this folder or file")
    glob: str | None = Field(default=None, description="only files that match, such as *.py or src/**")
    literal: bool = Field(default=False, description="take the pattern as plain text")
    regex: bool | None = Field(default=None, description="false means literal")
    ignore_case: bool = Field(default=False, description="upper and lower case are the same")


async def search_text(args: TextArgs, context: ToolContext) -> ToolResult:
    """Lines that match, in the files that the agent may see. What is found nowhere is looked for as plain text
    and then in any case, and the answer says which of it was found."""
    if args.path is not None and is_kept_output(args.path):
        return await asyncio.to_thread(
            search_output, args.path, args.pattern, literal=args.literal, context=context
        )
    roots = context.workspace.roots
    places = roots if args.path in (None, "", ".") else (visible_path(context, args.path or "."),)
    if missing := next((place for place in places if not place.exists()), None):
        return failed(f"There is no file or folder {context.workspace.relative(missing)}.")
    literal = args.literal or args.regex is False
    wrong = "" if literal else _unreadable(args.pattern)
    tries = _readings(args, literal=literal or bool(wrong))
    until = asyncio.get_running_loop().time() + SECONDS
    try:
        for number, reading in enumerate(tries):
            found = await _found(reading.query, places, context, until)
            if found.lines or found.more:
                return _answered(found, _because(wrong), reading.note if number else "")
    except ValueError as error:
        return failed(f"The search cannot be made: {error}")
    ways = " nor ".join(reading.way for reading in tries)
    return ToolResult(ok=True, text=f"{_because(wrong)}Nothing matches {args.pattern!r}: neither {ways}.")


class _Reading(NamedTuple):
    """One way to read the pattern: what is looked for, its name, and what is told where it was found only so."""

    query: Query
    way: str
    note: str


def _readings(args: TextArgs, *, literal: bool) -> tuple[_Reading, ...]:
    """The ways to read the pattern, the one that was asked for first; each differs from those before."""
    plain = re.escape(args.pattern) == args.pattern or args.pattern.isalnum()
    glob = args.glob or ""
    found: list[_Reading] = []
    if not literal:
        query = Query(args.pattern, regex=True, ignore_case=args.ignore_case, glob=glob)
        found.append(_Reading(query, "as a regular expression", ""))
    if literal or not plain:
        query = Query(args.pattern, regex=False, ignore_case=args.ignore_case, glob=glob)
        note = "No line matches it as a regular expression; these hold it as plain text:"
        found.append(_Reading(query, "as plain text", note))
    if not args.ignore_case:
        note = "No line matches it in this case; these do where upper and lower case count as the same:"
        found.extend(
            _Reading(replace(first.query, ignore_case=True), f"{first.way} in any case", note)
            for first in tuple(found)
        )
    return tuple(found)


class _Found(NamedTuple):
    lines: tuple[str, ...]
    more: str = ""


async def _found(query: Query, places: tuple[Path, ...], context: ToolContext, until: float) -> _Found:
    """The lines that match, as they are told; those found so far when the clock of the event loop shows `until`. Raises ValueError where the search cannot be made."""
    roots = context.workspace.roots
    program = find_ripgrep(roots)
    hits = ripgrep(program, query, places) if program else _python(query, roots, places)
    ignores = {root: Ignores(root) for root in roots}
    hidden: dict[Path, bool] = {}
    secret: dict[Path, bool] = {}
    lines: list[str] = []
    try:
        async with asyncio.timeout_at(until), aclosing(hits):
            async for hit in hits:
                root = root_of(roots, hit.path)
                if root is None or hidden.setdefault(hit.path, ignores[root].hides(hit.path, folder=False)):
                    continue
                if secret.setdefault(hit.path, _secret(hit.path, places, context)):
                    continue
                if len(lines) >= MAX_HITS:
                    return _Found(tuple(lines), MORE)
                lines.append(f"{context.workspace.relative(hit.path)}:{hit.line}: {hit.text.strip()[:_LONG]}")
    except TimeoutError:
        return _Found(tuple(lines), f"[… stopped after {SECONDS} s; narrow it with path or glob …]")
    return _Found(tuple(lines))


def _secret(path: Path, places: tuple[Path, ...], context: ToolContext) -> bool:
    """True for a file of secrets, unless the search named it or a folder of such: then the guard has asked.
    Nothing is said of it: that a pattern is found there would tell what is in it."""
    if not holds_secrets(context.workspace.relative(path)):
        return False
    named = (p for p in places if holds_secrets(context.workspace.relative(p)))
    return not any(path == place or place in path.parents for place in named)


def _answered(found: _Found, because: str, note: str) -> ToolResult:
    head = f"{because}{note}".strip()
    return ToolResult(ok=True, text="\n".join(part for part in (head, *found.lines, found.more) if part))


def _because(wrong: str) -> str:
    return f"The pattern is no regular expression ({wrong}) and was taken as plain text.\n" if wrong else ""


def _unreadable(pattern: str) -> str:
    """Why Python cannot read the expression; ripgrep's own words come from ripgrep. A repetition in a
    repetition is refused only where Python would have to run it, see `_python`."""
    try:
        re.compile(pattern)
    except re.error as error:
        # ripgrep knows some that Python does not (`\p{L}`): leave those to it.
        return "" if "bad escape" in str(error) else str(error)
    except (OverflowError, RecursionError):
        return "it is too large"
    return ""


_NESTED = re.compile(r"[+*}]\)[+*{]|\((?:[^()\\]|\\.)*[+*](?:[^()\\]|\\.)*\)[+*{]")


async def _python(query: Query, roots: tuple[Path, ...], places: tuple[Path, ...]) -> AsyncGenerator[Hit]:
    """The same search without ripgrep, a file at a time in a thread."""
    if query.regex and _NESTED.search(query.pattern):
        raise ValueError("a repetition inside a repetition may never end; write it without")
    try:
        source = query.pattern if query.regex else re.escape(query.pattern)
        expression = re.compile(source, re.IGNORECASE if query.ignore_case else 0)
    except re.error as error:
        raise ValueError(str(error)) from None
    spec = GitIgnoreSpec.from_lines([query.glob]) if query.glob else None
    for place in places:
        root = root_of(roots, place) or place
        for path in files(roots, place):
            if spec is not None and not spec.match_file(path.relative_to(root).as_posix()):
                continue
            for hit in await asyncio.to_thread(_matches, path, expression):
                yield hit


def _matches(path: Path, expression: re.Pattern[str]) -> list[Hit]:
    try:
        decoded = decode(path.read_bytes()) if path.stat().st_size <= _LARGEST else None
    except OSError:
        return []
    if decoded is None:
        return []
    return list(_lines_that_match(path, decoded.text, expression))


def _lines_that_match(path: Path, text: str, expression: re.Pattern[str]) -> Iterator[Hit]:
    for number, line in enumerate(text.split("\n"), 1):
        if expression.search(line[:10_000]):
            yield Hit(path, number, line)


SEARCH_TOOLS = (
    Tool(
        "search/text", "read", TextArgs, search_text, parallel=True,
        face=Face("search", Label("Search", "検索"), "{pattern}[ · {path|glob}]", answer="size"),
        description="Search the files of the workspace for lines that match `pattern`, a regular expression (`class \\w+|def add\\(`); with `literal` it is plain text. `path` narrows it to a folder or file, `glob` to matching files. Answers `path:line: text`, hidden and binary files left out. Where nothing matches, it says what was tried: as plain text and in any case too.",
    ),
    Tool(
        "search/symbols", "read", SymbolArgs, search_symbols, parallel=True, timeout=120,
        face=Face("symbol-method", Label("Find symbol", "シンボルを検索"), "{name}", answer="size"),
        description="Find where a class, function, method or type is defined.",
    ),
    Tool(
        "search/map", "read", MapArgs, search_map, parallel=True, timeout=120,
        face=Face("type-hierarchy", Label("Map the repository", "リポジトリの地図"), answer="size"),
        description="A map of the repository: its most important files with the signatures of what they define, ranked by how much the rest refers to them, in `budget` tokens. A good first look at an unknown project.",
    ),
)  # fmt: skip
