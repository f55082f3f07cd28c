"""Tools of other packages, found through the entry-point group `daiku.tools` (R1.92)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from daiku.tools.tool import Tool

GROUP = "daiku.tools"


@dataclass(frozen=True, slots=True)
class Plugins:
    """The tools that were found, and one line for every package that could not be used."""

    tools: tuple[Tool, ...]
    problems: tuple[str, ...]


def load_plugins(found: Iterable[EntryPoint] | None = None) -> Plugins:
    """Load every entry point of the group: a Tool, several, or a function that gives either."""
    tools: list[Tool] = []
    problems: list[str] = []
    for entry in entry_points(group=GROUP) if found is None else found:
        try:
            tools.extend(_tools_of(entry.load()))
        except Exception as error:  # noqa: BLE001  # a stranger's package may fail in any way; it must not stop us
            problems.append(f"plug-in {entry.name} ({entry.value}): {type(error).__name__}: {error}")
    return Plugins(tuple(tools), tuple(problems))


def _tools_of(loaded: Any) -> tuple[Tool, ...]:
    """`loaded` is whatever a stranger's entry point names."""
    value = loaded() if callable(loaded) else loaded
    many: list[Any] = list(value) if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownArgumentType]  # checked item by item
    if any(not isinstance(tool, Tool) for tool in many):
        raise TypeError("gives something that is not a daiku.tools.tool.Tool")
    return tuple(many)
