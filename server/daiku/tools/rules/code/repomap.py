"""Which files of a repository matter, and what they define: ranked by how much the rest stands on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from math import sqrt
from typing import NamedTuple

from daiku.dataclass import dataclass
from daiku.tools.rules.code.commonnames import COMMON_NAMES
from daiku.tools.rules.code.imports import Statements, tells_imports
from daiku.tools.rules.code.modules import Modules
from daiku.tools.rules.code.sidefiles import Side, side_of

_DAMPING = 0.85
_ROUNDS = 25
_COMMON = 12
"""A name defined in more files than this says nothing about where it comes from."""
_WITHOUT_IMPORTS = 3
"""Where the imports of a language are not understood, a name may be defined in this many files at most."""
_DEEPEST = 4
"""How many files in a row may pass a name on."""
_IMPORT_ALONE = 0.3
"""The weight of an import whose names are not known, against that of one use of a name."""
_SIDES: Mapping[Side, float] = {
    "": 1.0, "script": 0.3, "example": 0.1, "generated": 1e-5, "foreign": 1e-6, "test": 1e-7,
}  # fmt: skip
_NAMED = 1000.0


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
    """What the map needs of one file: its names, the modules that it uses, how many lines it has."""

    tags: tuple[Tag, ...] = ()
    statements: Statements = Statements()
    lines: int = 0


class Ranks(NamedTuple):
    """How much each file matters, and in each file each definition; only their order means something."""

    files: Mapping[str, float]
    names: Mapping[str, Mapping[str, float]]


_Edges = dict[str, dict[tuple[str, str], float]]
"""For each file the definitions (file, name) that it uses, with how much; no name: the file as a whole."""


def rank(
    files: Mapping[str, SourceFile],
    modules: Modules,
    focus: Collection[str] = (),
    named: Collection[str] = (),
) -> Ranks:
    """Rank `files` (by path) and what they define.

    A file matters as much as others stand on it (PageRank along imports, from `focus` and `named` where these
    are given), as it ties other files together, and as there is much in it. Tests and other files beside the
    code come after it, and `named` before everything.
    """
    edges = _edges(files, modules)
    start = {path for path in (*focus, *named) if path in files}
    weights = _page_rank(edges, start)
    scores: dict[str, float] = {}
    for path, file in files.items():
        ties = len({target for target, _ in edges[path]})
        scores[path] = weights[path] * (1 + ties) * (10 + file.lines) * _SIDES[side_of(path)]
        if path in named:
            scores[path] += _NAMED
    return Ranks(scores, _names(files, edges, weights))


def _names(
    files: Mapping[str, SourceFile], edges: _Edges, weights: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """What each definition gets of the weight of those who use it; what nobody uses still a little of its file's."""
    found = {path: {t.name: 0.0 for t in file.tags if t.is_definition} for path, file in files.items()}
    for source, targets in edges.items():
        total = sum(targets.values())
        for (path, name), weight in targets.items():
            if name:
                found[path][name] += weights[source] * weight / total
    for path, file in files.items():
        names = found[path]
        for tag in file.tags:
            if tag.is_definition:
                inner = 0.2 if tag.indent else 1.0
                plain = 0.1 if tag.name in COMMON_NAMES or tag.name.startswith("_") else 1.0
                names[tag.name] += 0.05 * inner * plain * weights[path] / len(names)
    return found


# ---- who uses what


def _edges(files: Mapping[str, SourceFile], modules: Modules) -> _Edges:
    defined: dict[str, set[str]] = defaultdict(set)
    for path, file in files.items():
        for tag in file.tags:
            if tag.is_definition:
                defined[tag.name].add(path)
    used = {path: _used_modules(path, file, files, modules) for path, file in files.items()}
    return {path: _of_file(path, file, defined, used) for path, file in files.items()}


class _Uses(NamedTuple):
    """The files that one file imports, those of them that it passes on, and the names that it takes by name."""

    files: tuple[str, ...] = ()
    passed_on: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return f".{name.rpartition('.')[2].lower()}" if "." in name else ""


def _used_modules(path: str, file: SourceFile, files: Mapping[str, SourceFile], modules: Modules) -> _Uses:
    suffix = _suffix(path)
    whole: dict[str, None] = {}
    passed: dict[str, None] = {}
    names: list[str] = []
    # In Python only a package's own file is there to pass names on.
    passes = suffix != ".py" or path.endswith("__init__.py")
    for wanted in file.statements.imports:
        found = [target for target in modules.of(path, wanted, suffix) if target in files]
        whole.update(dict.fromkeys(found))
        if found:
            names += wanted.names
        if passes and wanted.passes_on:
            passed.update(dict.fromkeys(found))
    beside = tuple(other for other in modules.together(path, suffix) if other in files)
    return _Uses(tuple(whole), tuple(passed), tuple(names), beside)


def _seen(path: str, used: Mapping[str, _Uses]) -> set[str]:
    """The files whose names `path` can use: what it imports, and what that passes on."""
    found = {*used[path].files, *used[path].beside}
    edge = set(used[path].files)
    for _ in range(_DEEPEST):
        edge = {target for each in edge for target in used[each].passed_on} - found
        if not edge:
            break
        found |= edge
    return found - {path}


def _of_file(
    path: str, file: SourceFile, defined: Mapping[str, set[str]], used: Mapping[str, _Uses]
) -> dict[tuple[str, str], float]:
    counts = Counter(tag.name for tag in file.tags if not tag.is_definition)
    counts.update(used[path].names)
    along = tells_imports(_suffix(path))
    seen = _seen(path, used) if along else set[str]()
    found: dict[tuple[str, str], float] = {(target, ""): _IMPORT_ALONE for target in used[path].files}
    for name, count in counts.items():
        everywhere = defined.get(name, set[str]())
        if not everywhere or name in COMMON_NAMES or path in everywhere:
            continue
        places = everywhere & seen if along else everywhere
        if not places or len(places) > (_COMMON if along else _WITHOUT_IMPORTS):
            continue
        telling = (0.1 if name.startswith("_") else 1.0) * (2.0 if len(name) >= 8 else 1.0)
        for place in places:
            found[place, name] = telling * sqrt(count) / len(places) / sqrt(len(everywhere))
    return found


def _page_rank(edges: _Edges, start_at: Collection[str]) -> dict[str, float]:
    """How often a walk along `edges` comes by each file; it begins at `start_at` mostly, if there is any."""
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
        shares[source] = [(path, _DAMPING * weight / total) for path, weight in sums.items()]
    weights = dict(start)
    for _ in range(_ROUNDS):
        idle = sum(weights[path] for path, targets in shares.items() if not targets)
        fresh = {path: (1 - _DAMPING + _DAMPING * idle) * begin for path, begin in start.items()}
        for source, targets in shares.items():
            weight = weights[source]
            for path, part in targets:
                fresh[path] += weight * part
        weights = fresh
    return weights
