"""Tools for definitions: search/symbols, and search/map with the repository map."""

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
from daiku.tools.rules.code.manifests import Manifests, is_manifest
from daiku.tools.rules.code.mapview import render_map
from daiku.tools.rules.code.modules import Modules
from daiku.tools.rules.code.repomap import COMMON_NAMES, SourceFile, Tag, classify_path, rank_files
from daiku.tools.tool import Args, ToolContext
from daiku.workspace.walk import walk_files

MAX_SYMBOLS = 60
"""Definitions in an answer."""
MAP_TOKENS = 2000
"""Default size of the map in tokens."""
READ_SECONDS = 30
"""Seconds for reading files. Files that are not read by then are left out."""
_INDEX = SourceIndex()
"""The index of this process. It is keyed by real path and time, so workspaces share it."""
_LARGEST_MANIFEST = 200_000
"""Bytes of the largest manifest that is read."""
_SIDE_KINDS = frozenset({"test", "foreign", "generated"})
"""Kinds of files that the map leaves out unless the request names them or there are no others."""
_WORD = re.compile(r"[A-Za-z_$][\w$]*(?:[./:-]+[\w$]+)*")
_MIN_WORD = 4
"""Characters of the shortest word of a request that can name a file."""
_MAX_SHARED = 4
"""Largest number of files that share a name. A more common name does not identify a file."""


class SymbolArgs(Args):
    name: str = Field(min_length=1, description="the name, or a part of it")


class MapArgs(Args):
    budget: int | None = Field(default=None, ge=100, le=50_000, description="tokens; else 2000")


async def search_symbols(args: SymbolArgs, context: ToolContext) -> ToolResult:
    """List the definitions of a name: exact matches first, then names that contain it."""
    matches = await asyncio.to_thread(_find_definitions, args.name, context.workspace)
    if not matches:
        return ToolResult(
            ok=True, text=f"Nothing named {args.name!r} is defined here. search__text finds its uses."
        )
    if matches[0][0] <= 1:  # next to an exact match, partial matches are noise
        matches = [item for item in matches if item[0] <= 1]
    lines = [f"{path}:{tag.line}: {tag.kind} {tag.signature}" for _, path, tag in matches[:MAX_SYMBOLS]]
    if len(matches) > MAX_SYMBOLS:
        lines.append(f"[… {len(matches) - MAX_SYMBOLS} more; give a longer name …]")
    return ToolResult(ok=True, text="\n".join(lines))


def _find_definitions(name: str, workspace: Workspace) -> list[tuple[int, str, Tag]]:
    """Return the definitions whose name contains the last part of `name`, with their rank (0: equal), sorted."""
    last_part = name.rpartition(".")[2].rpartition("::")[2].strip("() ").lower()
    deadline = time.monotonic() + READ_SECONDS
    matches: list[tuple[int, str, Tag]] = []
    for path in walk_files(workspace.roots):
        file = _INDEX.read_file(path, deadline)
        for tag in file.tags if file is not None else ():
            if tag.is_definition and last_part in (lower := tag.name.lower()):
                distance = (
                    0
                    if tag.name == name
                    else 1
                    if lower == last_part
                    else 2
                    if lower.startswith(last_part)
                    else 3
                )
                matches.append((distance, workspace.relative(path), tag))
    matches.sort(key=lambda item: (item[0], classify_path(item[1]) == "test", item[1], item[2].line))
    return matches


async def search_map(args: MapArgs, context: ToolContext) -> ToolResult:
    """List the most important files and their definitions; files that the request names come first."""
    known_paths = {stat.path for stat in context.done().files}
    if context.editor is not None:
        known_paths |= set(context.editor.open_files())
    text = await build_repository_map(
        context.workspace, known_paths, args.budget or MAP_TOKENS, context.asked
    )
    return ToolResult(ok=True, text=text or "There is no source code that can be mapped.")


async def build_repository_map(
    workspace: Workspace, known_paths: Collection[str], budget: int, request: str = ""
) -> str:
    """Build the map of the workspace's source in at most `budget` tokens; empty without source code.

    Files of `known_paths` are not listed, but files related to them rank higher. Files that `request` names
    come first.
    """
    return await asyncio.to_thread(_build_map, workspace, known_paths, budget, request)


def _build_map(workspace: Workspace, known_paths: Collection[str], budget: int, request: str) -> str:
    places = {workspace.relative(path): path for path in walk_files(workspace.roots)}
    manifests = {name: _read_manifest(path) for name, path in places.items() if is_manifest(name)}
    code = {
        name: path
        for name, path in places.items()
        if classify_path(name) not in _SIDE_KINDS or _is_named(name, request)
    }
    sources = _read_sources(code) or _read_sources(places)
    modules = Modules(frozenset(places), Manifests(manifests))
    ranks = rank_files(sources, modules, known_paths, _find_named_files(request, sources))
    return render_map(sources, ranks, known_paths, budget, estimate, len(places))


def _read_sources(places: Mapping[str, Path]) -> dict[str, SourceFile]:
    deadline = time.monotonic() + READ_SECONDS
    read = ((name, _INDEX.read_file(path, deadline)) for name, path in places.items())
    return {name: file for name, file in read if file is not None}


def _is_named(path: str, request: str) -> bool:
    return path in request or path.rpartition("/")[2] in request


def _read_manifest(path: Path) -> str:
    try:
        return path.read_text("utf-8", errors="replace") if path.stat().st_size <= _LARGEST_MANIFEST else ""
    except OSError:
        return ""


def _find_named_files(request: str, sources: dict[str, SourceFile]) -> set[str]:
    """Return the files that a request names by path, by file name, or by one of their definitions."""
    words = {word.removeprefix("./") for word in _WORD.findall(request) if len(word) >= _MIN_WORD}
    if not words:
        return set()
    stem_counts = Counter(path.rpartition("/")[2].partition(".")[0] for path in sources)
    places: dict[str, set[str]] = {}
    for path, file in sources.items():
        for tag in file.tags:
            if tag.is_definition and tag.name in words and tag.name not in COMMON_NAMES:
                places.setdefault(tag.name, set()).add(path)
    matches = {path for paths in places.values() if len(paths) <= _MAX_SHARED for path in paths}
    for path in sources:
        name = path.rpartition("/")[2]
        stem = name.partition(".")[0]
        is_stem_named = stem in words and stem not in COMMON_NAMES and stem_counts[stem] <= _MAX_SHARED
        if (
            is_stem_named
            or name in words
            or any("/" in word and path.endswith(f"/{word}") for word in words)
            or path in words
        ):
            matches.add(path)
    return matches
