"""ripgrep as the engine of search/text, where there is one outside the workspace."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from daiku.workspace.paths import root_of


@dataclass(frozen=True, slots=True)
class Hit:
    """One line that matches."""

    path: Path
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. `glob` empty: all files."""

    pattern: str
    regex: bool = False
    ignore_case: bool = False
    glob: str = ""


def find_ripgrep(roots: tuple[Path, ...], path: str | None = None) -> Path | None:
    """`rg` from the absolute folders of PATH, or beside this Python; never one that lies in the workspace."""
    folders = (os.environ.get("PATH", "") if path is None else path).split(os.pathsep)
    name = "rg.exe" if os.name == "nt" else "rg"
    for folder in (*folders, str(Path(sys.executable).parent)):
        if not Path(folder).is_absolute():
            continue
        candidate = Path(folder) / name
        real = Path(os.path.realpath(candidate))
        outside = root_of(roots, real) is None and root_of(roots, candidate) is None
        if (
            outside and os.access(real, os.X_OK) and real.is_file()
        ):  # a folder of PATH may not be ours to read
            return candidate
    return None


def arguments(query: Query) -> list[str]:
    """Build ripgrep's arguments, as `--name=value` so that no pattern or glob is read as a flag."""
    flags = [
        "--no-config",
        "--no-messages",
        "--color=never",
        "--no-heading",
        "--with-filename",
        "--line-number",
    ]
    flags += ["--null", "--hidden", "--no-require-git", "--no-ignore-global", "--glob=!.git"]
    flags += [
        "--max-columns=400",
        "--max-columns-preview",
        "--max-filesize=10M",
        "--max-count=200",
        "--sort=path",
    ]
    if not query.regex:
        flags.append("--fixed-strings")
    flags.append("--ignore-case" if query.ignore_case else "--case-sensitive")
    if query.glob:
        flags.append(f"--glob={query.glob}")
    return [*flags, f"--regexp={query.pattern}"]


async def ripgrep(program: Path, query: Query, places: tuple[Path, ...]) -> AsyncGenerator[Hit]:
    """Lines that match in `places`, as they are found. Raises ValueError with ripgrep's words for a
    pattern that it cannot read. Ends the process when the caller has enough."""
    process = await asyncio.create_subprocess_exec(
        program,
        *arguments(query),
        "--",
        *places,
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
            if (hit := _hit(line)) is not None:
                yield hit
        wrong = await process.stderr.read()
        if await process.wait() == 2 and wrong:
            raise ValueError(wrong.decode("utf-8", "replace").strip())
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _hit(line: bytes) -> Hit | None:
    path, found, rest = line.rstrip(b"\r\n").partition(b"\0")
    number, colon, text = rest.partition(b":")
    if not found or not colon or not number.isdigit():
        return None
    return Hit(Path(os.fsdecode(path)), int(number), text.decode("utf-8", "replace"))
