"""Search engines of search/text: ripgrep, or RE2 file by file if ripgrep is not installed."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from daiku.dataclass import dataclass
from daiku.workspace.encodings import decode
from daiku.workspace.globs import build_matcher
from daiku.workspace.ignores import Ignores
from daiku.workspace.programs import find_program
from daiku.workspace.walk import HEAVY_FOLDERS, walk_files

MAX_BYTES = 10_000_000
"""Bytes of the largest file that is searched."""
HEAVY = ("node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".pytest_cache")
"""Folders that are searched only if they are named, even if no ignore file lists them."""


@dataclass(frozen=True, slots=True)
class Query:
    """A search. `globs`: empty for all files. `context`: lines before and after each match."""

    pattern: str
    regex: bool = False
    ignore_case: bool = False
    multiline: bool = False
    globs: tuple[str, ...] = ()
    context: int = 0


class Place(NamedTuple):
    """A file or folder to search.

    `base`: the folder that globs are relative to. `everything`: include ignored files.
    """

    path: Path
    base: Path
    everything: bool = False


class Hit(NamedTuple):
    """A line that matches, or a context line."""

    path: Path
    line: int
    text: str
    is_match: bool = True


class FileCount(NamedTuple):
    """Matching lines of a file, or matches if they may span lines."""

    path: Path
    matches: int


class Engine(Protocol):
    """A search engine. Both methods raise ValueError, with the reason, for an invalid pattern."""

    def lines(self, query: Query, place: Place) -> AsyncGenerator[Hit]:
        """Yield the matching lines and their context, ordered by path."""
        ...

    def counts(self, query: Query, place: Place) -> AsyncGenerator[FileCount]:
        """Yield the files with a match, ordered by path."""
        ...


_LONGEST_LINE = 100_000
"""Characters of a line that are searched."""


@dataclass(frozen=True, slots=True)
class PythonSearch:
    """The engine without an external program. `roots`: the folders whose ignore files count."""

    roots: tuple[Path, ...]

    async def lines(self, query: Query, place: Place) -> AsyncGenerator[Hit]:
        """See Engine."""
        expression = compile_query(query)
        async for path in self._iterate_files(query, place):
            for hit in await asyncio.to_thread(_find_hits, path, expression, query):
                yield hit

    async def counts(self, query: Query, place: Place) -> AsyncGenerator[FileCount]:
        """See Engine."""
        expression = compile_query(query)
        async for path in self._iterate_files(query, place):
            if count := await asyncio.to_thread(_count_matches, path, expression, query):
                yield FileCount(path, count)

    async def _iterate_files(self, query: Query, place: Place) -> AsyncGenerator[Path]:
        matches = build_matcher(query.globs)
        # ripgrep's order: folders and files sorted together by name
        paths = await asyncio.to_thread(
            lambda: sorted(walk_files(self.roots, place.path), key=lambda p: p.parts)
        )
        for path in paths:
            if matches(path.relative_to(place.base).as_posix()):
                yield path


_ASCII_CLASS = re.compile(r"\\[wWdDsSbB]")


def find_ascii_note(query: Query) -> str:
    """Return a note on character classes that RE2 limits to ASCII; empty if the query has none."""
    if not query.regex or not _ASCII_CLASS.search(query.pattern):
        return ""
    return r" Here \w, \d, \s and \b match ASCII only; \pL and \pN match any letter and digit."


def compile_query(query: Query) -> Any:
    """Compile the query with RE2, which matches in linear time. Raises ValueError with the reason."""
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


def _read_text(path: Path) -> str:
    try:
        decoded = decode(path.read_bytes()) if path.stat().st_size <= MAX_BYTES else None
    except OSError:
        return ""
    return "" if decoded is None else decoded.text.replace("\r\n", "\n")


def _find_hits(path: Path, expression: Any, query: Query) -> list[Hit]:
    text = _read_text(path)
    match_numbers = sorted(set(_find_lines(text, expression, query)))
    if not match_numbers:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    numbers: dict[int, bool] = {}
    for number in match_numbers:
        for neighbor in range(max(0, number - query.context), min(len(lines), number + query.context + 1)):
            numbers.setdefault(neighbor, False)
        numbers[number] = True
    return [
        Hit(path, number + 1, lines[number], numbers[number])
        for number in sorted(numbers)
        if number < len(lines)
    ]


def _count_matches(path: Path, expression: Any, query: Query) -> int:
    text = _read_text(path)
    if query.multiline:
        return sum(1 for _ in expression.finditer(text))
    return len(set(_find_lines(text, expression, query)))


def _find_lines(text: str, expression: Any, query: Query) -> Iterator[int]:
    """Yield the numbers (from 0) of the lines that match or that a match covers."""
    # Lines are searched one by one, so these anchor to a line.
    anchors_text = r"\A" in query.pattern or r"\z" in query.pattern
    if not anchors_text and expression.search(text) is None:
        return
    if query.multiline:
        for match in expression.finditer(text):
            first = text.count("\n", 0, match.start())
            inside = text.count("\n", match.start(), max(match.start(), match.end() - 1))
            yield from range(first, first + inside + 1)
        return
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    yield from (number for number, line in enumerate(lines) if expression.search(line[:_LONGEST_LINE]))


_LINE_NUMBER = re.compile(rb"(\d+)([:-])")
_MAX_COLUMNS = 2000
"""Characters of a line that ripgrep prints."""
_MAX_PATHS = 500
"""Files that are passed to one process."""


def find_ripgrep(roots: tuple[Path, ...]) -> str:
    """Return the path of ripgrep; "" if it is not installed. The folder of this Python counts too."""
    return find_program("rg", roots, last=str(Path(sys.executable).parent))


def build_arguments(query: Query, *, everything: bool = False) -> list[str]:
    """Build ripgrep's arguments. Only the ignore files that Daiku reads apply.

    Each value is bound to its flag, so that none is parsed as a flag.
    """
    flags = ["--no-config", "--no-messages", "--color=never", "--with-filename", "--null", "--crlf"]
    flags += ["--hidden", f"--max-filesize={MAX_BYTES}", "--sort=path"]
    flags += ["--no-require-git", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"]
    flags.append("--no-ignore" if everything else "--no-ignore-parent")
    if not query.regex:
        flags.append("--fixed-strings")
    if query.multiline:
        flags += ["--multiline", "--multiline-dotall"]
    flags.append("--ignore-case" if query.ignore_case else "--case-sensitive")
    flags += [f"--glob={glob}" for glob in query.globs]
    flags += [f"--glob=!{name}" for name in (".git", ".hg", ".svn", *HEAVY)]
    return [*flags, "--regexp", query.pattern]  # after "=" ripgrep would drop a leading "=" of the pattern


@dataclass(frozen=True, slots=True)
class Ripgrep:
    """The ripgrep engine. `program`: its path."""

    program: str

    async def lines(self, query: Query, place: Place) -> AsyncGenerator[Hit]:
        """See Engine."""
        flags = ["--no-heading", "--line-number", f"--max-columns={_MAX_COLUMNS}", "--max-columns-preview"]
        flags += [f"--context={query.context}"]
        async with aclosing(self._run_all(flags, query, place)) as answers:
            async for path, rest in answers:
                if (match := _LINE_NUMBER.match(rest)) is not None:
                    text = rest[match.end() :].decode("utf-8", "replace")
                    yield Hit(path, int(match[1]), text, match[2] == b":")

    async def counts(self, query: Query, place: Place) -> AsyncGenerator[FileCount]:
        """See Engine."""
        async with aclosing(self._run_all(["--count"], query, place)) as answers:
            async for path, rest in answers:
                if rest.isdigit():
                    yield FileCount(path, int(rest))

    async def _run_all(
        self, flags: list[str], query: Query, place: Place
    ) -> AsyncGenerator[tuple[Path, bytes]]:
        """Yield the path and the rest of each output line.

        ripgrep leaves out ignored files that git tracks, so they are passed by name.
        """
        tracked = [] if place.everything else await asyncio.to_thread(_list_tracked, query, place)
        tracked_paths = frozenset(tracked)
        async for result in self._run(flags, query, place.base, [place.path], everything=place.everything):
            if result[0] not in tracked_paths:  # ripgrep does not apply ignore rules from outside the tree
                yield result
        for start in range(0, len(tracked), _MAX_PATHS):
            batch = tracked[start : start + _MAX_PATHS]
            async for result in self._run(flags, query, place.base, batch, everything=True):
                yield result

    async def _run(
        self, flags: list[str], query: Query, base: Path, paths: list[Path], *, everything: bool
    ) -> AsyncGenerator[tuple[Path, bytes]]:
        """Run ripgrep on `paths`. The process ends when the caller stops iterating."""
        process = await asyncio.create_subprocess_exec(
            self.program,
            *flags,
            *build_arguments(query, everything=everything),
            "--",
            *paths,
            cwd=base,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={name: os.environ[name] for name in ("LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ},
            limit=1 << 20,
        )
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            while line := await process.stdout.readline():
                path, separator, remainder = line.rstrip(b"\r\n").partition(b"\0")
                if separator:
                    yield Path(os.fsdecode(path)), remainder
            error_output = await process.stderr.read()
            if await process.wait() == 2 and error_output:
                raise ValueError(_extract_reason(error_output.decode("utf-8", "replace")))
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


def _list_tracked(query: Query, place: Place) -> list[Path]:
    if not place.path.is_dir():
        return []
    matches = build_matcher(query.globs)
    tracked = Ignores.of(place.base).tracked().below(place.path)
    return [
        path
        for path in tracked
        if HEAVY_FOLDERS.isdisjoint(path.parts)
        and (path.is_dir() or matches(path.relative_to(place.base).as_posix()))
    ]


def _extract_reason(output: str) -> str:
    """Return the error in the pattern, without ripgrep's drawing of its position."""
    lines = [line.strip() for line in output.strip().split("\n") if line.strip(" ^")]
    errors = [line for line in lines if line.startswith("error: ")]
    return (errors or lines or [output])[-1].removeprefix("error: ")
