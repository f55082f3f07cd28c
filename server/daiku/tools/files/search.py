"""Tools that find: search/text here, search/symbols and search/map beside it."""

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
from daiku.guard.rules.protected.paths import holds_secrets
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
    ascii_note,
    compile_query,
    find_ripgrep,
)
from daiku.tools.files.mapping import MapArgs, SymbolArgs, search_map, search_symbols
from daiku.tools.files.sight import Sight, see
from daiku.tools.tool import Args, Tool, ToolContext, failed
from daiku.workspace.globs import split_globs
from daiku.workspace.ignores import Ignores
from daiku.workspace.paths import root_of

LONG = 400
"""Characters of a line that are shown."""
_ROOM = 28_000
"""Characters of an answer."""


class Page:
    """The lines of an answer, file by file, as long as there is room."""

    def __init__(self, query: Query, limit: int, name: Callable[[Path], str]) -> None:
        self.lines: list[str] = []
        self.matches: dict[Path, int] = {}
        """How many lines that match are shown of each file."""
        self.is_full = False
        self._limit = limit
        self._context = query.context
        self._name = name
        self._room = _ROOM
        self._last: tuple[Path, int] | None = None
        self._waiting: list[Hit] = []
        """Lines before the next match: they are shown with it, or not at all."""
        self._matched: tuple[Path, int] | None = None

    def add(self, hit: Hit) -> bool:
        """Take a line; False where there is no room for a match."""
        if not hit.is_match:
            if (
                self._matched is None
                or self._matched[0] != hit.path
                or hit.line > self._matched[1] + self._context
            ):
                self._waiting.append(hit)
            else:
                self._put(hit)
            return True
        waiting = [each for each in self._waiting if each.path == hit.path]
        self._waiting.clear()
        size = sum(min(len(each.text), LONG) + 8 for each in (*waiting, hit))
        if sum(self.matches.values()) >= self._limit or (size > self._room and self.lines):
            self.is_full = True
            return False
        for each in (*waiting, hit):
            self._put(each)
        self.matches[hit.path] = self.matches.get(hit.path, 0) + 1
        self._matched = (hit.path, hit.line)
        return True

    def _put(self, hit: Hit) -> None:
        if self._last is None or self._last[0] != hit.path:
            self.lines += [*([""] if self.lines else []), self._name(hit.path)]
        elif self._context and hit.line > self._last[1] + 1:
            self.lines.append("--")
        self._last = (hit.path, hit.line)
        text = hit.text if len(hit.text) <= LONG else f"{hit.text[:LONG]} [… line cut …]"
        self.lines.append(f"{hit.line}{':' if hit.is_match else '-'}{text}")
        self._room -= len(self.lines[-1]) + 1

    def text(self) -> str:
        return "\n".join(self.lines)


MOST_LINES = 200
LONGEST = 400
LOOKED_AT = 2000
"""Characters of a line that an expression sees."""


def search_output(path: str, pattern: str, *, literal: bool, context: ToolContext) -> ToolResult:
    """The lines of the output `path` that match, with their numbers: the pattern is an expression, plain text where
    it is none or is asked to be; what is found nowhere is looked for in any case too. Blocks."""
    text = context.outputs.read(context.session, path) if context.outputs is not None else None
    if text is None:
        return failed(f"There is no {path} here, or no longer. Run the command again.")
    query = Query(pattern, regex=not literal)
    try:
        wanted = compile_query(query)
    except ValueError:
        query = replace(query, regex=False)
        wanted = compile_query(query)
    lines = text.removesuffix("\n").split("\n")
    any_case = compile_query(replace(query, ignore_case=True))
    plain = compile_query(Query(pattern, ignore_case=True))
    for expression in (wanted, any_case, plain):
        found = [at for at, line in enumerate(lines) if expression.search(line[:LOOKED_AT])]
        if found:
            shown = [f"{path}:{at + 1}: {lines[at][:LONGEST]}" for at in found[:MOST_LINES]]
            more = [f"[… {len(found) - MOST_LINES} more lines match …]"] if len(found) > MOST_LINES else []
            return ToolResult(ok=True, text="\n".join([*shown, *more]))
    nothing = f"No line of the {len(lines)} of {path} matches {pattern!r}, in any case.{ascii_note(query)}"
    return ToolResult(ok=True, text=nothing)


MAX_HITS = 200
"""Matches or files of an answer, unless the call says otherwise."""
_MOST_HITS = 2000
_MOST_CONTEXT = 50
SECONDS = 30
_LINE_ENDS = re.compile(r"(?<!\\)(?:\\\\)*\\n|\n")
_Answer = TypeVar("_Answer", Hit, FileCount)
SLOW = f"[… stopped after {SECONDS} s; narrow it with path or glob …]"


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
    """Lines that match, in the files that the agent may see. What is found nowhere is looked for as plain text
    and then in any case, and the answer says which of it was found."""
    if args.path is not None and is_kept_output(args.path):
        return await asyncio.to_thread(
            search_output, args.path, args.pattern, literal=args.literal, context=context
        )
    roots = context.workspace.roots
    sight = (
        Sight(roots[0]) if not roots or args.path in (None, "", ".", "./") else see(context, args.path or ".")
    )
    if not sight.real.exists():
        return failed(f"There is no file or folder {context.workspace.relative(sight.real)}.")
    search = _Search(args, context, sight, asyncio.get_running_loop().time() + SECONDS)
    because = reason = ""
    tried: list[_Reading] = []
    for reading in _readings(args):
        if because and reading.query.regex:
            continue  # it was no expression at the first try
        try:
            found = await search.answer(reading.query)
        except ValueError as error:
            reason = str(error)
            because = f"The pattern is no regular expression ({error}) and was taken as plain text."
            continue
        if found:
            notes = (because, reading.note if tried else "", f"[{sight.note}]" if sight.note else "")
            return ToolResult(ok=True, text="\n".join(part for part in (*notes, found) if part))
        tried.append(reading)
    if not tried:
        return failed(f"The search cannot be made: {reason}")
    ways = " nor ".join(reading.way for reading in tried)
    nothing = f"Nothing matches {args.pattern!r}: neither {ways}.{search.note_on(tried[0].query)}"
    return ToolResult(ok=True, text=f"{because}\n{nothing}" if because else nothing)


class _Reading(NamedTuple):
    """One way to read the pattern: what is looked for, its name, and what is told where it was found only so."""

    query: Query
    way: str
    note: str


def _readings(args: TextArgs) -> tuple[_Reading, ...]:
    """The ways to read the pattern, the one that was asked for first; each differs from those before."""
    literal = args.literal
    plain = re.escape(args.pattern) == args.pattern or args.pattern.isalnum()
    query = Query(
        args.pattern,
        regex=not literal,
        ignore_case=args.ignore_case,
        multiline=args.multiline or (not literal and bool(_LINE_ENDS.search(args.pattern))),
        globs=split_globs(args.glob or ""),
        context=min(args.context, _MOST_CONTEXT),
    )
    found = [_Reading(query, "as plain text" if literal else "as a regular expression", "")]
    if not literal and not plain:
        note = "No line matches it as a regular expression; these hold it as plain text:"
        found.append(_Reading(replace(query, regex=False, multiline=False), "as plain text", note))
    if not args.ignore_case:
        note = "No line matches it in this case; these do where upper and lower case count as the same:"
        found.extend(
            _Reading(replace(first.query, ignore_case=True), f"{first.way} in any case", note)
            for first in tuple(found)
        )
    return tuple(found)


class _Search:
    """One search: where it looks, what of it may be shown, and when (by the event loop's clock) it has to end."""

    def __init__(self, args: TextArgs, context: ToolContext, sight: Sight, until: float) -> None:
        self._args = args
        self._context = context
        self._sight = sight
        self._until = until
        self._allowed: dict[Path, bool] = {}
        self._ignores = {root: Ignores.of(root, steady=True) for root in context.workspace.roots}
        self._limit = min(args.limit or MAX_HITS, _MOST_HITS)
        roots = context.workspace.roots
        program = find_ripgrep(roots)
        self._engine: Engine = Ripgrep(program) if program else PythonSearch(roots)
        self._places = self._where(roots)

    def _where(self, roots: tuple[Path, ...]) -> tuple[Place, ...]:
        if self._args.path in (None, "", ".", "./"):
            return tuple(Place(root, root) for root in roots)
        real = self._sight.real
        base = self._sight.folder or root_of(roots, real) or real
        return (Place(real, base, everything=bool(self._sight.note)),)

    def note_on(self, query: Query) -> str:
        """Return a note if this engine reads the query in a narrower way than ripgrep, else an empty text."""
        return ascii_note(query) if isinstance(self._engine, PythonSearch) else ""

    async def answer(self, query: Query) -> str:
        """What is told of the matches; empty where there are none. Raises ValueError for what is no pattern."""
        if self._args.mode == "content":
            return await self._content(query)
        counts, late = await self._counts(query)
        if not counts:
            return SLOW if late else ""
        shown = counts[: self._limit]
        name = self._context.workspace.relative
        lines = [
            name(each.path) if self._args.mode == "files" else f"{name(each.path)}: {each.matches}"
            for each in shown
        ]
        total = sum(each.matches for each in counts)
        if self._args.mode == "count":
            lines.append(
                f"{total:,} {_many(total, 'match', 'matches')} in {len(counts):,} {_many(len(counts), 'file', 'files')}"
            )
        left = counts[self._limit :]
        if left:
            lines.append(f"[… {_more(left)}; narrow it with path, glob or a longer pattern …]")
        return "\n".join([*lines, SLOW] if late else lines)

    async def _content(self, query: Query) -> str:
        page = Page(query, self._limit, self._context.workspace.relative)
        late = await self._collect(self._engine.lines, query, page.add)
        if late:
            page.lines.append(SLOW)
        elif page.is_full:
            page.lines.append(await self._what_is_left(query, page))
        return page.text()

    async def _what_is_left(self, query: Query, page: Page) -> str:
        counts, late = await self._counts(query)
        shown = page.matches
        if query.multiline:  # here matches are counted, and lines are shown
            left = [each for each in counts if each.path not in shown]
            told = (
                f"more matches in files already shown, and {_more(left)}"
                if left
                else "more matches in files already shown"
            )
        else:
            left = [each._replace(matches=each.matches - shown.get(each.path, 0)) for each in counts]
            told = _more([each for each in left if each.matches > 0])
        return f"[… {'at least ' if late else ''}{told}; narrow it with path, glob or a longer pattern …]"

    async def _counts(self, query: Query) -> tuple[list[FileCount], bool]:
        found: list[FileCount] = []

        def add(each: FileCount) -> bool:
            found.append(each)
            return True

        return found, await self._collect(self._engine.counts, query, add)

    async def _collect(
        self,
        look: Callable[[Query, Place], AsyncGenerator[_Answer]],
        query: Query,
        take: Callable[[_Answer], bool],
    ) -> bool:
        """Hand what is found, and may be shown, to `take` until that has enough; True where the time ended it."""
        try:
            async with asyncio.timeout_at(self._until):
                for place in self._places:
                    async with aclosing(look(query, place)) as answers:
                        async for each in answers:
                            if self._may_be_shown(each.path) and not take(each):
                                return False
        except TimeoutError:
            return True
        return False

    def _may_be_shown(self, path: Path) -> bool:
        if path not in self._allowed:
            self._allowed[path] = self._sees(path)
        return self._allowed[path]

    def _sees(self, path: Path) -> bool:
        """Whether the search may tell of a file: not of what is closed or, unless it was named, ignored. Nothing is
        said of secrets, unless the search named the file or a folder of such (then the guard has asked): that a
        pattern is found there would tell what is in it."""
        workspace = self._context.workspace
        root = root_of(workspace.roots, path)
        if root is None:
            return self._sight.folder is not None and not holds_secrets(path.as_posix())
        ignores = self._ignores[root]
        if ignores.hidden(path, workspace.relative(path)) or (
            not self._sight.note and ignores.leaves_out(path)
        ):
            return False
        if not holds_secrets(workspace.relative(path)):
            return True
        if self._args.path in (None, "", ".", "./"):
            return False
        return holds_secrets(workspace.relative(self._sight.real))


def _many(count: int, one: str, several: str) -> str:
    return one if count == 1 else several


def _more(left: list[FileCount]) -> str:
    """How many matches in how many files are not shown."""
    total = sum(each.matches for each in left)
    return f"{total:,} more {_many(total, 'match', 'matches')} in {len(left):,} {_many(len(left), 'file', 'files')}"


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
        face=Face("type-hierarchy", Label("Map the repository", "リポジトリの地図"), answer="size"),
        description="The most important files by folder, with what they define: a first look at a project.",
    ),
)  # fmt: skip
