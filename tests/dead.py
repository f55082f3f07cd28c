"""Finds in Python sources what nothing uses: functions, classes, constants, members, parameters and options."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tests.reached import Function, Sources, is_dunder


def unreached(sources: Sources) -> Iterator[str]:
    """Functions, classes and constants that nothing reaches; of names that are set together one is enough."""
    alive = {id(node) for top in sources.reached for node in sources.tops[top]}
    for (module, name), nodes in sources.tops.items():
        if not any(id(node) in alive for node in nodes) and not is_dunder(name):
            yield f"{module}:{name}"


def unread(sources: Sources, elsewhere: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Methods and fields of reached classes that nothing reads; `elsewhere` says, by the beginning of a module's
    name, which names are read by what is not Python."""
    for member in sources.members:
        known = (names for start, names in elsewhere.items() if member.module.startswith(start))
        if member.name not in sources.read.union(*known) and not is_dunder(member.name):
            yield f"{member.module}:{member.owner.name}.{member.name}"


def unlooked_at(sources: Sources) -> Iterator[str]:
    """Parameters that a function does not look at, where nothing else dictates that it has them."""
    names = Counter(node.name for _, node in sources.functions)
    for place, node in sources.functions:
        dictated = sources.given[node.name].dictated or names[node.name] > 1 or id(node) in sources.dictated
        if not (dictated or is_dunder(node.name) or node.decorator_list or _says_nothing(node)):
            args = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            own = {a.arg for a in args if a.arg not in ("self", "cls") and not a.arg.startswith("_")}
            nodes = (n for each in node.body for n in ast.walk(each)) if own else ()
            looked_at = {n.id for n in nodes if isinstance(n, ast.Name)}
            yield from (f"{place}({name})" for name in own - looked_at)


def ungiven(sources: Sources) -> Iterator[str]:
    """Parameters with a default that no call ever gives."""
    for place, node in sources.functions:
        calls, args = sources.given[node.name], node.args
        if calls.open or node.decorator_list or is_dunder(node.name):
            continue
        places = [a.arg for a in (*args.posonlyargs, *args.args) if a.arg not in ("self", "cls")]
        optional = places[len(places) - len(args.defaults) :] if args.defaults else []
        named = [a.arg for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None]
        idle = [name for name in optional if places.index(name) >= calls.places]
        yield from (f"{place}({name}=)" for name in (*idle, *named) if name not in calls.names)


def dead(sources: Sources, elsewhere: Mapping[str, frozenset[str]] = MappingProxyType({})) -> list[str]:
    """All of these, by their places: `module:name`, `module:Class.member`, `module:function(parameter)`."""
    found = (unreached(sources), unread(sources, elsewhere), unlooked_at(sources), ungiven(sources))
    return sorted({each for kind in found for each in kind})


def _says_nothing(node: Function) -> bool:
    return all(isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant) for each in node.body)
