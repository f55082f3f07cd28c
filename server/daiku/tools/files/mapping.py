"""Tools that tell what is defined where: search/symbols, and search/map with the map of a repository."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import Field

from daiku.domain.tools import ToolResult
from daiku.models.tokens import estimate
from daiku.run.rules.outside import Workspace
from daiku.tools.files.tags import SourceIndex
from daiku.tools.rules.code.commonnames import COMMON_NAMES
from daiku.tools.rules.code.manifests import Manifests, is_manifest
from daiku.tools.rules.code.mapview import render_map
from daiku.tools.rules.code.modules import Modules
from daiku.tools.rules.code.repomap import SourceFile, Tag, rank
from daiku.tools.rules.code.sidefiles import side_of
from daiku.tools.tool import Args, ToolContext
from daiku.workspace.walk import files

MAX_SYMBOLS = 60
MAP_TOKENS = 2000
SECONDS = 30
"""How long files are read for; those that were not read by then are left out."""
_INDEX = SourceIndex()
"""One for the process: it is keyed by real path and time, so workspaces can share it."""
_LARGEST_MANIFEST = 200_000
_BESIDE = frozenset({"test", "foreign", "generated"})
"""Files that the map leaves out unless the request names them or there are no others."""
_WORD = re.compile(r"[A-Za-z_$][\w$]*(?:[./:-]+[\w$]+)*")
_SHORTEST = 4
_FEW = 4
"""A name that more files define, or are called by, does not tell which of them was meant."""


class SymbolArgs(Args):
    name: str = Field(min_length=1, description="the name, or a part of it")


class MapArgs(Args):
    budget: int | None = Field(default=None, ge=100, le=50_000, description="tokens; else 2000")


async def search_symbols(args: SymbolArgs, context: ToolContext) -> ToolResult:
    """Where something of that name is defined: exact names first, then those that hold it."""
    found = await asyncio.to_thread(_defined, args.name, context.workspace)
    if not found:
        return ToolResult(
            ok=True, text=f"Nothing named {args.name!r} is defined here. search__text finds its uses."
        )
    if found[0][0] <= 1:  # with the name itself at hand, names that merely hold it are noise
        found = [item for item in found if item[0] <= 1]
    lines = [f"{path}:{tag.line}: {tag.kind} {tag.signature}" for _, path, tag in found[:MAX_SYMBOLS]]
    if len(found) > MAX_SYMBOLS:
        lines.append(f"[… {len(found) - MAX_SYMBOLS} more; give a longer name …]")
    return ToolResult(ok=True, text="\n".join(lines))


def _defined(name: str, workspace: Workspace) -> list[tuple[int, str, Tag]]:
    """The definitions whose name holds the last part of `name`, with how near it is (0: the same), in order."""
    wanted = name.rpartition(".")[2].rpartition("::")[2].strip("() ").lower()
    until = time.monotonic() + SECONDS
    found: list[tuple[int, str, Tag]] = []
    for path in files(workspace.roots):
        file = _INDEX.file(path, until)
        for tag in file.tags if file is not None else ():
            if tag.is_definition and wanted in (lower := tag.name.lower()):
                near = (
                    0 if tag.name == name else 1 if lower == wanted else 2 if lower.startswith(wanted) else 3
                )
                found.append((near, workspace.relative(path), tag))
    found.sort(key=lambda item: (item[0], side_of(item[1]) == "test", item[1], item[2].line))
    return found


async def search_map(args: MapArgs, context: ToolContext) -> ToolResult:
    """The files that matter most and what they define; what the request names first."""
    known = {stat.path for stat in context.done().files}
    if context.editor is not None:
        known |= set(context.editor.open_files())
    text = await repository_map(context.workspace, known, args.budget or MAP_TOKENS, context.asked)
    return ToolResult(ok=True, text=text or "There is no source code that can be mapped.")


async def repository_map(workspace: Workspace, known: Collection[str], budget: int, asked: str = "") -> str:
    """The map of the workspace's source in at most `budget` tokens. Files of `known` (paths) are not listed,
    those near them come sooner; first comes what `asked` names. Empty where no source code can be mapped."""
    return await asyncio.to_thread(_map, workspace, known, budget, asked)


def _map(workspace: Workspace, known: Collection[str], budget: int, asked: str) -> str:
    places = {workspace.relative(path): path for path in files(workspace.roots)}
    manifests = {name: _text(path) for name, path in places.items() if is_manifest(name)}
    code = {
        name: path for name, path in places.items() if side_of(name) not in _BESIDE or _is_named(name, asked)
    }
    sources = _read(code) or _read(places)
    modules = Modules(frozenset(places), Manifests(manifests))
    ranks = rank(sources, modules, known, _named(asked, sources))
    return render_map(sources, ranks, known, budget, estimate, len(places))


def _read(places: Mapping[str, Path]) -> dict[str, SourceFile]:
    until = time.monotonic() + SECONDS
    read = ((name, _INDEX.file(path, until)) for name, path in places.items())
    return {name: file for name, file in read if file is not None}


def _is_named(path: str, asked: str) -> bool:
    return path in asked or path.rpartition("/")[2] in asked


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace") if path.stat().st_size <= _LARGEST_MANIFEST else ""
    except OSError:
        return ""


def _named(asked: str, sources: dict[str, SourceFile]) -> set[str]:
    """The files that a request names: by their path, by their own name, or by something that they define."""
    words = {word.removeprefix("./") for word in _WORD.findall(asked) if len(word) >= _SHORTEST}
    if not words:
        return set()
    called = Counter(path.rpartition("/")[2].partition(".")[0] for path in sources)
    places: dict[str, set[str]] = {}
    for path, file in sources.items():
        for tag in file.tags:
            if tag.is_definition and tag.name in words and tag.name not in COMMON_NAMES:
                places.setdefault(tag.name, set()).add(path)
    found = {path for those in places.values() if len(those) <= _FEW for path in those}
    for path in sources:
        name = path.rpartition("/")[2]
        stem = name.partition(".")[0]
        by_stem = stem in words and stem not in COMMON_NAMES and called[stem] <= _FEW
        if (
            by_stem
            or name in words
            or any("/" in word and path.endswith(f"/{word}") for word in words)
            or path in words
        ):
            found.add(path)
    return found
