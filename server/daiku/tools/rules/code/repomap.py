"""Rank the files of a repository and their definitions by how much other code uses them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from math import sqrt
from typing import NamedTuple

from daiku.dataclass import dataclass
from daiku.tools.rules.code.commonnames import COMMON_NAMES
from daiku.tools.rules.code.imports import Statements, has_import_parser
from daiku.tools.rules.code.modules import Modules
from daiku.tools.rules.code.sidefiles import Side, classify_path

_DAMPING_FACTOR = 0.85
"""Damping factor of PageRank."""
_ITERATIONS = 25
"""Iterations of PageRank."""
_MAX_DEFINERS = 12
"""Largest number of files that define a name. A more common name does not identify its file."""
_MAX_DEFINERS_WITHOUT_IMPORTS = 3
"""The same number for languages whose imports are not parsed."""
_MAX_REEXPORTS = 4
"""Files in a row that may re-export a name."""
_IMPORT_WEIGHT = 0.3
"""Weight of an import without names, relative to one use of a name."""
_SIDE_WEIGHTS: Mapping[Side, float] = {
    "": 1.0, "script": 0.3, "example": 0.1, "generated": 1e-5, "foreign": 1e-6, "test": 1e-7,
}  # fmt: skip
_NAMED_BONUS = 1000.0
"""Score that is added to files that the request names."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A name that a file defines (with its line and signature) or refers to. `indent` in characters."""

    name: str
    kind: str
    line: int
    signature: str
    is_definition: bool
    indent: int = 0


class SourceFile(NamedTuple):
    """The parts of a file that the map needs: its names, its imports, and its number of lines."""

    tags: tuple[Tag, ...] = ()
    statements: Statements = Statements()
    lines: int = 0


class Ranks(NamedTuple):
    """The ranks of files and of the definitions in each. Only their order is meaningful."""

    files: Mapping[str, float]
    names: Mapping[str, Mapping[str, float]]


_Edges = dict[str, dict[tuple[str, str], float]]
"""The definitions (file, name) that each file uses, with weights. An empty name is the complete file."""


def rank_files(
    files: Mapping[str, SourceFile],
    modules: Modules,
    focus: Collection[str] = (),
    named_paths: Collection[str] = (),
) -> Ranks:
    """Rank `files` (by path) and their definitions.

    The rank of a file grows with its use by others (PageRank along imports, starting at `focus` and `named_paths`
    if given), with the number of files that it uses, and with its length. Tests and other side files come
    last, `named_paths` files first.
    """
    edges = _build_edges(files, modules)
    start = {path for path in (*focus, *named_paths) if path in files}
    weights = _compute_page_rank(edges, start)
    scores: dict[str, float] = {}
    for path, file in files.items():
        used_files = len({target for target, _ in edges[path]})
        scores[path] = (
            weights[path] * (1 + used_files) * (10 + file.lines) * _SIDE_WEIGHTS[classify_path(path)]
        )
        if path in named_paths:
            scores[path] += _NAMED_BONUS
    return Ranks(scores, _rank_names(files, edges, weights))


def _rank_names(
    files: Mapping[str, SourceFile], edges: _Edges, weights: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """Distribute the weight of each user among the definitions that it uses.

    Unused ones get a little of their file's.
    """
    scores = {path: {t.name: 0.0 for t in file.tags if t.is_definition} for path, file in files.items()}
    for source, targets in edges.items():
        total = sum(targets.values())
        for (path, name), weight in targets.items():
            if name:
                scores[path][name] += weights[source] * weight / total
    for path, file in files.items():
        names = scores[path]
        for tag in file.tags:
            if tag.is_definition:
                nesting_factor = 0.2 if tag.indent else 1.0
                name_factor = 0.1 if tag.name in COMMON_NAMES or tag.name.startswith("_") else 1.0
                names[tag.name] += 0.05 * nesting_factor * name_factor * weights[path] / len(names)
    return scores


# ---- uses between files


def _build_edges(files: Mapping[str, SourceFile], modules: Modules) -> _Edges:
    definers: dict[str, set[str]] = defaultdict(set)
    for path, file in files.items():
        for tag in file.tags:
            if tag.is_definition:
                definers[tag.name].add(path)
    uses = {path: _find_uses(path, file, files, modules) for path, file in files.items()}
    return {path: _weigh_uses(path, file, definers, uses) for path, file in files.items()}


class _FileUses(NamedTuple):
    """A file's imports, re-exports, imported names, and the files of its package."""

    files: tuple[str, ...] = ()
    reexported: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    package_files: tuple[str, ...] = ()


def _find_suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return f".{name.rpartition('.')[2].lower()}" if "." in name else ""


def _find_uses(path: str, file: SourceFile, files: Mapping[str, SourceFile], modules: Modules) -> _FileUses:
    suffix = _find_suffix(path)
    imported: dict[str, None] = {}
    reexported: dict[str, None] = {}
    names: list[str] = []
    # In Python only a package's __init__.py re-exports names.
    can_reexport = suffix != ".py" or path.endswith("__init__.py")
    for statement in file.statements.imports:
        targets = [target for target in modules.resolve(path, statement, suffix) if target in files]
        imported.update(dict.fromkeys(targets))
        if targets:
            names += statement.names
        if can_reexport and statement.reexports:
            reexported.update(dict.fromkeys(targets))
    package_files = tuple(other for other in modules.find_package_files(path, suffix) if other in files)
    return _FileUses(tuple(imported), tuple(reexported), tuple(names), package_files)


def _find_visible(path: str, uses: Mapping[str, _FileUses]) -> set[str]:
    """Return the files whose names `path` can use: its imports, and what they re-export."""
    visible = {*uses[path].files, *uses[path].package_files}
    frontier = set(uses[path].files)
    for _ in range(_MAX_REEXPORTS):
        frontier = {target for imported in frontier for target in uses[imported].reexported} - visible
        if not frontier:
            break
        visible |= frontier
    return visible - {path}


def _weigh_uses(
    path: str, file: SourceFile, definers: Mapping[str, set[str]], uses: Mapping[str, _FileUses]
) -> dict[tuple[str, str], float]:
    counts = Counter(tag.name for tag in file.tags if not tag.is_definition)
    counts.update(uses[path].names)
    has_imports = has_import_parser(_find_suffix(path))
    visible = _find_visible(path, uses) if has_imports else set[str]()
    weights: dict[tuple[str, str], float] = {(target, ""): _IMPORT_WEIGHT for target in uses[path].files}
    for name, count in counts.items():
        defining_paths = definers.get(name, set[str]())
        if not defining_paths or name in COMMON_NAMES or path in defining_paths:
            continue
        candidates = defining_paths & visible if has_imports else defining_paths
        if not candidates or len(candidates) > (
            _MAX_DEFINERS if has_imports else _MAX_DEFINERS_WITHOUT_IMPORTS
        ):
            continue
        specificity = (0.1 if name.startswith("_") else 1.0) * (2.0 if len(name) >= 8 else 1.0)
        for candidate in candidates:
            weights[candidate, name] = specificity * sqrt(count) / len(candidates) / sqrt(len(defining_paths))
    return weights


def _compute_page_rank(edges: _Edges, start_at: Collection[str]) -> dict[str, float]:
    """Compute how often a random walk along `edges` visits each file. It restarts mostly at `start_at`."""
    if not edges:
        return {}
    share = 1 / len(edges)
    start = dict.fromkeys(edges, 0.2 * share if start_at else share)
    for path in start_at:
        start[path] += 0.8 / len(start_at)
    shares: dict[str, list[tuple[str, float]]] = {}
    for source, targets in edges.items():
        sums: dict[str, float] = defaultdict(float)
        for (path, _), weight in targets.items():
            sums[path] += weight
        total = sum(sums.values())
        shares[source] = [(path, _DAMPING_FACTOR * weight / total) for path, weight in sums.items()]
    weights = dict(start)
    for _ in range(_ITERATIONS):
        dangling = sum(weights[path] for path, targets in shares.items() if not targets)
        next_weights = {
            path: (1 - _DAMPING_FACTOR + _DAMPING_FACTOR * dangling) * start_weight
            for path, start_weight in start.items()
        }
        for source, targets in shares.items():
            weight = weights[source]
            for path, part in targets:
                next_weights[path] += weight * part
        weights = next_weights
    return weights
