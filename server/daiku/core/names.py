"""Names of tools between a model's wire and us: any accepted spelling, and the map of one request."""

from __future__ import annotations

from collections.abc import Iterable

from daiku.core.toolnames import SEED_NAMES, wire_name
from daiku.domain.tools import ToolSpec


def canonical(name: str) -> str:
    """`namespace/tool` for any accepted spelling: itself, a seed's name, `a.b`, `a__b`."""
    name = name.strip()
    if "/" in name:
        return name
    if name in SEED_NAMES:
        return SEED_NAMES[name]
    for separator in ("__", "."):
        namespace, found, tool = name.partition(separator)
        if found and namespace and tool:
            return f"{namespace}/{tool}"
    return name


class NameMap:
    """Both directions for the tools on offer. What is not on offer still maps: a history may name
    tools that are gone, and a model may invent one (the registry then says so)."""

    __slots__ = ("_names",)

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._names = {wire_name(spec.name): spec.name for spec in specs}

    def to_wire(self, name: str) -> str:
        """The function name for `name`: letters, digits, `_`, `-`; at most 64 characters."""
        return wire_name(name)

    def to_name(self, wire: str) -> str:
        """The canonical name of what the model called."""
        return self._names.get(wire) or canonical(wire)
