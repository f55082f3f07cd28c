"""A map of a repository in a budget: files ranked by who refers to them, with what they define."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt

_DAMPING = 0.85
_ROUNDS = 30
_COMMON = 12
"""A name defined in more files than this says nothing about where it comes from (`get`, `main`)."""
_CHARACTERS_PER_TOKEN = 3.5


@dataclass(frozen=True, slots=True)
class Tag:
    """A name that a file defines (with its line and signature) or refers to. `indent` in characters."""

    name: str
    kind: str
    line: int
    signature: str
    is_definition: bool
    indent: int = 0


def rank(tags: Mapping[str, Sequence[Tag]], focus: Collection[str] = ()) -> dict[str, dict[str, float]]:
    """How much each file's each definition matters, the sum over all about 1.

    PageRank over files: one that uses a name passes its weight to those that define it. It starts
    from `focus` (paths) where that is given, else from all files alike.
    """
    defined: dict[str, set[str]] = defaultdict(set)
    for path, ones in tags.items():
        for tag in ones:
            if tag.is_definition:
                defined[tag.name].add(path)
    edges = {path: _edges(path, ones, defined) for path, ones in tags.items()}
    weights = _page_rank(edges, [path for path in tags if path in focus])
    ranks: dict[str, dict[str, float]] = {
        path: {tag.name: 0.0 for tag in ones if tag.is_definition} for path, ones in tags.items()
    }
    for source, targets in edges.items():
        total = sum(targets.values())
        for (path, name), weight in targets.items():
            ranks[path][name] += weights[source] * weight / total
    for path, names in ranks.items():  # what nobody refers to still has a little of its file's weight
        for name in names:
            names[name] += 0.05 * weights[path] / len(names)
    return ranks


def _edges(path: str, ones: Sequence[Tag], defined: Mapping[str, set[str]]) -> dict[tuple[str, str], float]:
    used = Counter(tag.name for tag in ones if not tag.is_definition)
    found: dict[tuple[str, str], float] = {}
    for name, count in used.items():
        places = defined.get(name, set[str]())
        if not places or len(places) > _COMMON or path in places:
            continue
        telling = (0.1 if name.startswith("_") else 1.0) * (2.0 if len(name) >= 8 else 1.0)
        for place in places:
            found[place, name] = telling * sqrt(count) / len(places)
    return found


def _page_rank(
    edges: Mapping[str, Mapping[tuple[str, str], float]], focus: Sequence[str]
) -> dict[str, float]:
    if not edges:
        return {}
    share = 1 / len(edges)
    start = dict.fromkeys(edges, share)
    if focus:
        start = dict.fromkeys(edges, 0.2 * share)
        for path in focus:
            start[path] += 0.8 / len(focus)
    totals = {path: sum(targets.values()) for path, targets in edges.items()}
    weights = dict(start)
    for _ in range(_ROUNDS):
        idle = sum(weights[path] for path in edges if not totals[path])
        fresh = {path: (1 - _DAMPING + _DAMPING * idle) * start[path] for path in edges}
        for source, targets in edges.items():
            for (path, _), weight in targets.items():
                fresh[path] += _DAMPING * weights[source] * weight / totals[source]
        weights = fresh
    return weights


def render_map(tags: Mapping[str, Sequence[Tag]], focus: Collection[str], budget: int) -> str:
    """The map in at most about `budget` tokens: the best definitions, under their files, in file order.
    Files of `focus` are known already and not listed."""
    ranks = rank(tags, focus)
    ranked = sorted(
        (
            (weight, path, name)
            for path, names in ranks.items()
            if path not in focus
            for name, weight in names.items()
        ),
        key=lambda item: (-item[0], item[1], item[2]),
    )
    room = budget * _CHARACTERS_PER_TOKEN
    shown: dict[str, dict[int, Tag]] = {}
    for _, path, name in ranked:
        tag = next(t for t in tags[path] if t.is_definition and t.name == name)
        if tag.line in shown.get(path, {}):
            continue
        cost = len(tag.signature) + tag.indent + 8 + (0 if path in shown else len(path) + 2)
        if cost > room:
            break
        room -= cost
        shown.setdefault(path, {})[tag.line] = tag
    best = {path: sum(ranks[path].values()) for path in shown}
    return "\n".join(_file(path, shown[path].values()) for path in sorted(shown, key=lambda p: (-best[p], p)))


def _file(path: str, tags: Collection[Tag]) -> str:
    lines = (
        f"{tag.line:>5} {' ' * tag.indent}{tag.signature}" for tag in sorted(tags, key=lambda tag: tag.line)
    )
    return "\n".join([f"{path}:", *lines])
