"""ripgrep as the engine of search/text, where there is one outside the workspace."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.tools.files.engines.hits import HEAVY, LARGEST, FileCount, Hit, Place, Query
from daiku.workspace.globs import matcher
from daiku.workspace.ignores import Ignores
from daiku.workspace.programs import find_program
from daiku.workspace.walk import HEAVY_FOLDERS

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
