"""The engines of search/text: ripgrep, and RE2 on a file at a time where there is none."""

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
from daiku.workspace.globs import matcher
from daiku.workspace.ignores import Ignores
from daiku.workspace.programs import find_program
from daiku.workspace.walk import HEAVY_FOLDERS, files

LARGEST = 10_000_000
"""Bytes of the largest file that is searched."""
HEAVY = ("node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".pytest_cache")
"""Folders that no one wants searched unless they are named, even where no ignore file names them."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. `globs` empty: in all files. `context`: lines before and after each match."""

    pattern: str
    regex: bool = False
    ignore_case: bool = False
    multiline: bool = False
    globs: tuple[str, ...] = ()
    context: int = 0


class Place(NamedTuple):
    """A file or folder to look in. `base`: the folder that globs begin at. `everything`: what git ignores too."""

    path: Path
    base: Path
    everything: bool = False


class Hit(NamedTuple):
    """One line, which matches or is beside one that does."""

    path: Path
    line: int
    text: str
    is_match: bool = True


class FileCount(NamedTuple):
    """How many lines of a file match; in a search over several lines, how many matches it has."""

    path: Path
    matches: int


class Engine(Protocol):
    """A way to search. Both methods raise ValueError, with the reason, for a pattern that cannot be read."""

    def lines(self, query: Query, place: Place) -> AsyncGenerator[Hit]:
        """The lines that match, and those beside them, file by file in the order of paths."""
        ...

    def counts(self, query: Query, place: Place) -> AsyncGenerator[FileCount]:
        """The files with a match, in the order of paths."""
        ...


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


_ASCII_CLASS = re.compile(r"\\[wWdDsSbB]")


def ascii_note(query: Query) -> str:
    """Return a note on character classes that RE2 limits to ASCII; empty if the query has none."""
    if not query.regex or not _ASCII_CLASS.search(query.pattern):
        return ""
    return r" Here \w, \d, \s and \b match ASCII only; \pL and \pN match any letter and digit."


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


_LINE = re.compile(rb"(\d+)([:-])")
_COLUMNS = 2000
_MOST_NAMED = 500
"""Files that are named to one process."""


def find_ripgrep(roots: tuple[Path, ...]) -> str:
    """Return the path of ripgrep, also from the folder of this Python; "" if there is none."""
    return find_program("rg", roots, last=str(Path(sys.executable).parent))


def arguments(query: Query, *, everything: bool = False) -> list[str]:
    """Build ripgrep's arguments, each value bound to its flag so that none is read as a flag itself. The ignore
    files that count are those that Daiku reads too, and no others."""
    flags = ["--no-config", "--no-messages", "--color=never", "--with-filename", "--null", "--crlf"]
    flags += ["--hidden", f"--max-filesize={LARGEST}", "--sort=path"]
    flags += ["--no-require-git", "--no-ignore-global", "--no-ignore-exclude", "--no-ignore-dot"]
    flags.append("--no-ignore" if everything else "--no-ignore-parent")
    if not query.regex:
        flags.append("--fixed-strings")
    if query.multiline:
        flags += ["--multiline", "--multiline-dotall"]
    flags.append("--ignore-case" if query.ignore_case else "--case-sensitive")
    flags += [f"--glob={glob}" for glob in query.globs]
    flags += [f"--glob=!{name}" for name in (".git", ".hg", ".svn", *HEAVY)]
    return [*flags, "--regexp", query.pattern]  # with "=" it would lose a "=" that the pattern begins with


@dataclass(frozen=True, slots=True)
class Ripgrep:
    """The engine with this program."""

    program: str

    async def lines(self, query: Query, place: Place) -> AsyncGenerator[Hit]:
        """See Engine."""
        shown = ["--no-heading", "--line-number", f"--max-columns={_COLUMNS}", "--max-columns-preview"]
        shown += [f"--context={query.context}"]
        async with aclosing(self._answers(shown, query, place)) as answers:
            async for path, rest in answers:
                if (found := _LINE.match(rest)) is not None:
                    text = rest[found.end() :].decode("utf-8", "replace")
                    yield Hit(path, int(found[1]), text, found[2] == b":")

    async def counts(self, query: Query, place: Place) -> AsyncGenerator[FileCount]:
        """See Engine."""
        async with aclosing(self._answers(["--count"], query, place)) as answers:
            async for path, rest in answers:
                if rest.isdigit():
                    yield FileCount(path, int(rest))

    async def _answers(
        self, how: list[str], query: Query, place: Place
    ) -> AsyncGenerator[tuple[Path, bytes]]:
        """Yield the path and the rest of each line of the answer. Ignored files that git tracks are named, as ripgrep
        leaves them out otherwise."""
        tracked = [] if place.everything else await asyncio.to_thread(_tracked_below, query, place)
        known = frozenset(tracked)
        async for each in self._run(how, query, place.base, [place.path], everything=place.everything):
            if each[0] not in known:  # what rules outside the tree ignore is not left out by ripgrep
                yield each
        for start in range(0, len(tracked), _MOST_NAMED):
            named = tracked[start : start + _MOST_NAMED]
            async for each in self._run(how, query, place.base, named, everything=True):
                yield each

    async def _run(
        self, how: list[str], query: Query, base: Path, paths: list[Path], *, everything: bool
    ) -> AsyncGenerator[tuple[Path, bytes]]:
        """Run ripgrep on `paths`. Ends the process when the caller has enough."""
        process = await asyncio.create_subprocess_exec(
            self.program,
            *how,
            *arguments(query, everything=everything),
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
                path, found, rest = line.rstrip(b"\r\n").partition(b"\0")
                if found:
                    yield Path(os.fsdecode(path)), rest
            wrong = await process.stderr.read()
            if await process.wait() == 2 and wrong:
                raise ValueError(_reason(wrong.decode("utf-8", "replace")))
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()


def _tracked_below(query: Query, place: Place) -> list[Path]:
    if not place.path.is_dir():
        return []
    matches = matcher(query.globs)
    found = Ignores.of(place.base).tracked().below(place.path)
    return [
        path
        for path in found
        if HEAVY_FOLDERS.isdisjoint(path.parts)
        and (path.is_dir() or matches(path.relative_to(place.base).as_posix()))
    ]


def _reason(said: str) -> str:
    """What is wrong with the pattern, without the drawing of where."""
    lines = [line.strip() for line in said.strip().split("\n") if line.strip(" ^")]
    told = [line for line in lines if line.startswith("error: ")]
    return (told or lines or [said])[-1].removeprefix("error: ")
