"""The search of search/text without ripgrep: RE2, which reads its dialect, on a file at a time, in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

from daiku.dataclass import dataclass
from daiku.tools.files.engines.hits import LARGEST, FileCount, Hit, Place, Query
from daiku.workspace.encodings import decode
from daiku.workspace.globs import matcher
from daiku.workspace.walk import files

_LONGEST_LINE = 100_000
"""Characters of a line that are searched."""


@dataclass(frozen=True, slots=True)
class PythonSearch:
    """The engine that needs no program. `roots`: the folders whose ignore files count."""

    roots: tuple[Path, ...]

    async def lines(self, query: Query, place: Place) -> AsyncGenerator[Hit]:
        """See Engine."""
        expression = compile_query(query)
        async for path in self._files(query, place):
            for hit in await asyncio.to_thread(_hits, path, expression, query):
                yield hit

    async def counts(self, query: Query, place: Place) -> AsyncGenerator[FileCount]:
        """See Engine."""
        expression = compile_query(query)
        async for path in self._files(query, place):
            if count := await asyncio.to_thread(_count, path, expression, query):
                yield FileCount(path, count)

    async def _files(self, query: Query, place: Place) -> AsyncGenerator[Path]:
        matches = matcher(query.globs)
        # In the order of ripgrep: by the names of folders and files alike.
        found = await asyncio.to_thread(lambda: sorted(files(self.roots, place.path), key=lambda p: p.parts))
        for path in found:
            if matches(path.relative_to(place.base).as_posix()):
                yield path


def compile_query(query: Query) -> Any:
    """Return the query as an expression of RE2, which matches in linear time. Raises ValueError with the reason."""
    import re2  # when used

    engine: Any = re2  # it has no types
    options = engine.Options()
    options.log_errors, options.case_sensitive, options.dot_nl = False, not query.ignore_case, query.multiline
    try:
        return engine.compile(
            f"(?m){query.pattern}" if query.regex else engine.escape(query.pattern), options
        )
    except engine.error as error:
        raise ValueError(
            f"{error.args[0].decode()}; look-around (look-ahead, look-behind) and backreferences are not supported"
        ) from None


def _text(path: Path) -> str:
    try:
        decoded = decode(path.read_bytes()) if path.stat().st_size <= LARGEST else None
    except OSError:
        return ""
    return "" if decoded is None else decoded.text.replace("\r\n", "\n")


def _hits(path: Path, expression: Any, query: Query) -> list[Hit]:
    text = _text(path)
    matching = sorted(set(_matching(text, expression, query)))
    if not matching:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    shown: dict[int, bool] = {}
    for number in matching:
        for beside in range(max(0, number - query.context), min(len(lines), number + query.context + 1)):
            shown.setdefault(beside, False)
        shown[number] = True
    return [
        Hit(path, number + 1, lines[number], shown[number]) for number in sorted(shown) if number < len(lines)
    ]


def _count(path: Path, expression: Any, query: Query) -> int:
    text = _text(path)
    if query.multiline:
        return sum(1 for _ in expression.finditer(text))
    return len(set(_matching(text, expression, query)))


def _matching(text: str, expression: Any, query: Query) -> Iterator[int]:
    """The numbers (from 0) of the lines that match, or that a match goes over."""
    ends = r"\A" in query.pattern or r"\z" in query.pattern  # of a line, where each is searched
    if not ends and expression.search(text) is None:
        return
    if query.multiline:
        for found in expression.finditer(text):
            first = text.count("\n", 0, found.start())
            inside = text.count("\n", found.start(), max(found.start(), found.end() - 1))
            yield from range(first, first + inside + 1)
        return
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    yield from (number for number, line in enumerate(lines) if expression.search(line[:_LONGEST_LINE]))
