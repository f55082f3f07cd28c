"""Search tools: search/text here; search/symbols and search/map in mapping.py."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from daiku.dataclass import replace
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.guard.rules.protected.names import holds_secrets
from daiku.guard.rules.referenced_paths import is_kept_output
from daiku.tools.face import Face
from daiku.tools.files.engines import (
    Engine,
    FileCount,
    Hit,
    Place,
    PythonSearch,
    Query,
    Ripgrep,
    compile_query,
    find_ascii_note,
    find_ripgrep,
)
from daiku.tools.files.mapping import MapArgs, SymbolArgs, search_map, search_symbols
from daiku.tools.files.sight import VisiblePath, resolve_visible
from daiku.tools.tool import Args, Tool, ToolContext, build_failure
from daiku.workspace.globs import split_globs
from daiku.workspace.ignores import Ignores
from daiku.workspace.paths import find_root

LINE_LENGTH = 400
"""Characters of a line that are shown."""
_MAX_ANSWER = 28_000
"""Characters of an answer."""


class Page:
    """The formatted lines of an answer, grouped by file, up to a size limit."""

    def __init__(self, query: Query, limit: int, name: Callable[[Path], str]) -> None:
        self.lines: list[str] = []
        self.matches: dict[Path, int] = {}
        """Number of matching lines shown, by file."""
        self.is_full = False
        self._limit = limit
        self._context = query.context
        self._name = name
        self._room = _MAX_ANSWER
        self._last: tuple[Path, int] | None = None
        self._pending: list[Hit] = []
        """Context lines before the next match. They are shown only with that match."""
        self._last_match: tuple[Path, int] | None = None

    def add(self, hit: Hit) -> bool:
        """Add a line. Returns False if there is no room for a match."""
        if not hit.is_match:
            if (
                self._last_match is None
                or self._last_match[0] != hit.path
                or hit.line > self._last_match[1] + self._context
            ):
                self._pending.append(hit)
            else:
                self._append(hit)
            return True
        pending = [line for line in self._pending if line.path == hit.path]
        self._pending.clear()
        size = sum(min(len(line.text), LINE_LENGTH) + 8 for line in (*pending, hit))
        if sum(self.matches.values()) >= self._limit or (size > self._room and self.lines):
            self.is_full = True
            return False
        for line in (*pending, hit):
            self._append(line)
        self.matches[hit.path] = self.matches.get(hit.path, 0) + 1
        self._last_match = (hit.path, hit.line)
        return True

    def _append(self, hit: Hit) -> None:
        if self._last is None or self._last[0] != hit.path:
            self.lines += [*([""] if self.lines else []), self._name(hit.path)]
        elif self._context and hit.line > self._last[1] + 1:
            self.lines.append("--")
        self._last = (hit.path, hit.line)
        text = hit.text if len(hit.text) <= LINE_LENGTH else f"{hit.text[:LINE_LENGTH]} [… line cut …]"
        self.lines.append(f"{hit.line}{':' if hit.is_match else '-'}{text}")
        self._room -= len(self.lines[-1]) + 1

    def text(self) -> str:
        return "\n".join(self.lines)


MAX_LINES = 200
"""Matching lines shown of a command's output."""
OUTPUT_LINE_LENGTH = 400
"""Characters of an output line that are shown."""
SEARCHED_LENGTH = 2000
"""Characters of an output line that are searched."""


def search_output(path: str, pattern: str, *, literal: bool, context: ToolContext) -> ToolResult:
    """Return the matching lines of a command's output, with their numbers. Blocks.

    An invalid expression is searched as plain text. If nothing matches, the case is ignored, then the pattern
    is searched as plain text.
    """
    text = context.outputs.read(context.session, path) if context.outputs is not None else None
    if text is None:
        return build_failure(f"There is no {path} here, or no longer. Run the command again.")
    query = Query(pattern, regex=not literal)
    try:
        requested = compile_query(query)
    except ValueError:
        query = replace(query, regex=False)
        requested = compile_query(query)
    lines = text.removesuffix("\n").split("\n")
    ignoring_case = compile_query(replace(query, ignore_case=True))
    as_plain_text = compile_query(Query(pattern, ignore_case=True))
    for expression in (requested, ignoring_case, as_plain_text):
        matches = [index for index, line in enumerate(lines) if expression.search(line[:SEARCHED_LENGTH])]
        if matches:
            excerpts = [
                f"{path}:{index + 1}: {lines[index][:OUTPUT_LINE_LENGTH]}" for index in matches[:MAX_LINES]
            ]
            note = [f"[… {len(matches) - MAX_LINES} more lines match …]"] if len(matches) > MAX_LINES else []
            return ToolResult(ok=True, text="\n".join([*excerpts, *note]))
    nothing = (
        f"No line of the {len(lines)} of {path} matches {pattern!r}, in any case.{find_ascii_note(query)}"
    )
    return ToolResult(ok=True, text=nothing)


MAX_HITS = 200
"""Default number of matches or files in an answer."""
_MAX_LIMIT = 2000
"""Largest number of matches that a call may request."""
_MAX_CONTEXT = 50
"""Largest number of context lines that a call may request."""
TIMEOUT_SECONDS = 30
"""Seconds after which a search stops."""
_LINE_BREAK = re.compile(r"(?<!\\)(?:\\\\)*\\n|\n")
_Answer = TypeVar("_Answer", Hit, FileCount)
TIMEOUT_NOTE = f"[… stopped after {TIMEOUT_SECONDS} s; narrow it with path or glob …]"


class TextArgs(Args):
    pattern: str = Field(min_length=1, description="regular expression")
    path: str | None = Field(default=None, description="folder or file")
    glob: str | None = Field(default=None, description="*.py, src/**/*.{ts,tsx}")
    literal: SkipJsonSchema[bool] = Field(default=False, description="the pattern is plain text")
    ignore_case: bool = Field(default=False, description="upper case as lower")
    multiline: SkipJsonSchema[bool] = Field(default=False, description="a match may span lines")
    mode: Literal["content", "files", "count"] = Field(default="content", description="what to answer")
    context: int = Field(default=0, ge=0, description="lines around each match")
    limit: SkipJsonSchema[int | None] = Field(default=None, ge=1, description="matches; else 200")


async def search_text(args: TextArgs, context: ToolContext) -> ToolResult:
    """Return the matching lines of the files that the agent may see.

    Without matches, it tries plain text and then ignores case. The answer says which reading matched.
    """
    if args.path is not None and is_kept_output(args.path):
        return await asyncio.to_thread(
            search_output, args.path, args.pattern, literal=args.literal, context=context
        )
    roots = context.workspace.roots
    visible = (
        VisiblePath(roots[0])
        if not roots or args.path in (None, "", ".", "./")
        else resolve_visible(context, args.path or ".")
    )
    if not visible.real.exists():
        return build_failure(f"There is no file or folder {context.workspace.relative(visible.real)}.")
    search = _Search(args, context, visible, asyncio.get_running_loop().time() + TIMEOUT_SECONDS)
    explanation = reason = ""
    failed_readings: list[_PatternReading] = []
    for reading in _list_readings(args):
        if explanation and reading.query.regex:
            continue  # it is not a valid expression
        try:
            answer = await search.search(reading.query)
        except ValueError as error:
            reason = str(error)
            explanation = f"The pattern is no regular expression ({error}) and was taken as plain text."
            continue
        if answer:
            notes = (
                explanation,
                reading.note if failed_readings else "",
                f"[{visible.note}]" if visible.note else "",
            )
            return ToolResult(ok=True, text="\n".join(part for part in (*notes, answer) if part))
        failed_readings.append(reading)
    if not failed_readings:
        return build_failure(f"The search cannot be made: {reason}")
    ways = " nor ".join(reading.way for reading in failed_readings)
    nothing = f"Nothing matches {args.pattern!r}: neither {ways}.{search.note_on(failed_readings[0].query)}"
    return ToolResult(ok=True, text=f"{explanation}\n{nothing}" if explanation else nothing)


class _PatternReading(NamedTuple):
    """One way to interpret the pattern: its query, its name, and the note for a match that only it found."""

    query: Query
    way: str
    note: str


def _list_readings(args: TextArgs) -> tuple[_PatternReading, ...]:
    """Return the ways to interpret the pattern, without duplicates, the requested one first."""
    literal = args.literal
    is_plain = re.escape(args.pattern) == args.pattern or args.pattern.isalnum()
    query = Query(
        args.pattern,
        regex=not literal,
        ignore_case=args.ignore_case,
        multiline=args.multiline or (not literal and bool(_LINE_BREAK.search(args.pattern))),
        globs=split_globs(args.glob or ""),
        context=min(args.context, _MAX_CONTEXT),
    )
    readings = [_PatternReading(query, "as plain text" if literal else "as a regular expression", "")]
    if not literal and not is_plain:
        note = "No line matches it as a regular expression; these hold it as plain text:"
        readings.append(_PatternReading(replace(query, regex=False, multiline=False), "as plain text", note))
    if not args.ignore_case:
        note = "No line matches it in this case; these do where upper and lower case count as the same:"
        readings.extend(
            _PatternReading(replace(first.query, ignore_case=True), f"{first.way} in any case", note)
            for first in tuple(readings)
        )
    return tuple(readings)


class _Search:
    """One search: its places, what it may show, and its deadline (event loop time)."""

    def __init__(self, args: TextArgs, context: ToolContext, visible: VisiblePath, deadline: float) -> None:
        self._args = args
        self._context = context
        self._visible = visible
        self._deadline = deadline
        self._allowed: dict[Path, bool] = {}
        self._ignores = {root: Ignores.of(root, steady=True) for root in context.workspace.roots}
        self._limit = min(args.limit or MAX_HITS, _MAX_LIMIT)
        roots = context.workspace.roots
        program = find_ripgrep(roots)
        self._engine: Engine = Ripgrep(program) if program else PythonSearch(roots)
        self._places = self._list_places(roots)

    def _list_places(self, roots: tuple[Path, ...]) -> tuple[Place, ...]:
        if self._args.path in (None, "", ".", "./"):
            return tuple(Place(root, root) for root in roots)
        real = self._visible.real
        base = self._visible.folder or find_root(roots, real) or real
        return (Place(real, base, everything=bool(self._visible.note)),)

    def note_on(self, query: Query) -> str:
        """Return a note if this engine matches less than ripgrep; empty otherwise."""
        return find_ascii_note(query) if isinstance(self._engine, PythonSearch) else ""

    async def search(self, query: Query) -> str:
        """Return the formatted matches; empty if there are none. Raises ValueError for an invalid pattern."""
        if self._args.mode == "content":
            return await self._format_matches(query)
        counts, timed_out = await self._collect_counts(query)
        if not counts:
            return TIMEOUT_NOTE if timed_out else ""
        listed = counts[: self._limit]
        name = self._context.workspace.relative
        lines = [
            name(each.path) if self._args.mode == "files" else f"{name(each.path)}: {each.matches}"
            for each in listed
        ]
        total = sum(each.matches for each in counts)
        if self._args.mode == "count":
            lines.append(
                f"{total:,} {_pluralize(total, 'match', 'matches')} in {len(counts):,} {_pluralize(len(counts), 'file', 'files')}"
            )
        omitted = counts[self._limit :]
        if omitted:
            lines.append(f"[… {_count_rest(omitted)}; narrow it with path, glob or a longer pattern …]")
        return "\n".join([*lines, TIMEOUT_NOTE] if timed_out else lines)

    async def _format_matches(self, query: Query) -> str:
        page = Page(query, self._limit, self._context.workspace.relative)
        timed_out = await self._collect(self._engine.lines, query, page.add)
        if timed_out:
            page.lines.append(TIMEOUT_NOTE)
        elif page.is_full:
            page.lines.append(await self._format_rest(query, page))
        return page.text()

    async def _format_rest(self, query: Query, page: Page) -> str:
        counts, timed_out = await self._collect_counts(query)
        listed = page.matches
        if query.multiline:  # matches are counted, but lines are shown
            omitted = [each for each in counts if each.path not in listed]
            summary = (
                f"more matches in files already shown, and {_count_rest(omitted)}"
                if omitted
                else "more matches in files already shown"
            )
        else:
            omitted = [each._replace(matches=each.matches - listed.get(each.path, 0)) for each in counts]
            summary = _count_rest([each for each in omitted if each.matches > 0])
        return f"[… {'at least ' if timed_out else ''}{summary}; narrow it with path, glob or a longer pattern …]"

    async def _collect_counts(self, query: Query) -> tuple[list[FileCount], bool]:
        counts: list[FileCount] = []

        def add(count: FileCount) -> bool:
            counts.append(count)
            return True

        return counts, await self._collect(self._engine.counts, query, add)

    async def _collect(
        self,
        search: Callable[[Query, Place], AsyncGenerator[_Answer]],
        query: Query,
        take: Callable[[_Answer], bool],
    ) -> bool:
        """Pass each visible result to `take` until it returns False. Returns True after a timeout."""
        try:
            async with asyncio.timeout_at(self._deadline):
                for place in self._places:
                    async with aclosing(search(query, place)) as results:
                        async for result in results:
                            if self._may_be_shown(result.path) and not take(result):
                                return False
        except TimeoutError:
            return True
        return False

    def _may_be_shown(self, path: Path) -> bool:
        if path not in self._allowed:
            self._allowed[path] = self._is_visible(path)
        return self._allowed[path]

    def _is_visible(self, path: Path) -> bool:
        """Return True if the search may show a file: not one that is closed or, unless named, ignored.

        A match reveals a secret's content, so files of secrets count only if the search named them or their
        folder (then the guard has asked).
        """
        workspace = self._context.workspace
        root = find_root(workspace.roots, path)
        if root is None:
            return self._visible.folder is not None and not holds_secrets(path.as_posix())
        ignores = self._ignores[root]
        if ignores.hidden(path, workspace.relative(path)) or (
            not self._visible.note and ignores.leaves_out(path)
        ):
            return False
        if not holds_secrets(workspace.relative(path)):
            return True
        if self._args.path in (None, "", ".", "./"):
            return False
        return holds_secrets(workspace.relative(self._visible.real))


def _pluralize(count: int, one: str, several: str) -> str:
    return one if count == 1 else several


def _count_rest(rest: list[FileCount]) -> str:
    """Return how many matches in how many files are not shown."""
    total = sum(count.matches for count in rest)
    return f"{total:,} more {_pluralize(total, 'match', 'matches')} in {len(rest):,} {_pluralize(len(rest), 'file', 'files')}"


SEARCH_TOOLS = (
    Tool(
        "search/text", "read", TextArgs, search_text, parallel=True,
        face=Face("search", Label("Search", "検索"), "{pattern}[ · {path|glob}]", answer="size"),
        description="Find lines by a regular expression, as ripgrep does; what git ignores only if `path` names it.",
    ),
    Tool(
        "search/symbols", "read", SymbolArgs, search_symbols, parallel=True, timeout=120,
        face=Face("symbol-method", Label("Find symbol", "シンボルを検索"), "{name}", answer="size"),
        description="Find where a class, function, method or type is defined.",
    ),
    Tool(
        "search/map", "read", MapArgs, search_map, parallel=True, timeout=120,
        face=Face("type-hierarchy", Label("Map repository", "リポジトリの構成を確認"), answer="size"),
        description="The most important files by folder, with what they define: a first look at a project.",
    ),
)  # fmt: skip
