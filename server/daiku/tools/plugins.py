"""Tools of other packages (entry-point group `daiku.tools`, R1.92): off until the person allows the package."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from daiku.tools.tool import Tool

GROUP = "daiku.tools"


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point of another package: `package` is what the setting `plugins.allow` names.

    `off`: nothing of it was imported. `broken`: it was allowed and could not be used, `why` says why.
    """

    package: str
    entry: str
    status: Literal["on", "off", "broken"]
    why: str = ""
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plugins:
    """The tools of the packages that are allowed, and how every entry point stands."""

    tools: tuple[Tool, ...]
    found: tuple[Plugin, ...]


def load_plugins(allowed: Collection[str], found: Iterable[EntryPoint] | None = None) -> Plugins:
    """Load the entry points of `allowed` packages: a Tool, several, or a function that gives either. The
    code of the others is not even imported."""
    tools: list[Tool] = []
    plugins: list[Plugin] = []
    names = {_normal(name) for name in allowed}
    for entry in entry_points(group=GROUP) if found is None else found:
        package = _normal(entry.dist.name if entry.dist is not None else entry.name)
        if package not in names:
            plugins.append(Plugin(package, entry.name, "off"))
            continue
        try:
            given = tuple(_as_command(tool, package) for tool in _tools_of(entry.load()))
        except Exception as error:  # noqa: BLE001  # a stranger's package may fail in any way; it must not stop us
            plugins.append(Plugin(package, entry.name, "broken", f"{type(error).__name__}: {error}"))
            continue
        tools.extend(given)
        plugins.append(Plugin(package, entry.name, "on", tools=tuple(tool.name for tool in given)))
    return Plugins(tuple(tools), tuple(plugins))


def _as_command(tool: Tool, package: str) -> Tool:
    """`tool` as what it is, a stranger's code: whatever effect it claims, it runs as a command does."""
    about = f"{tool.description or (tool.args.__doc__ or '').strip()} (plug-in {package})".strip()
    return replace(tool, effect="command", parallel=False, resumes=False, description=about)


def _normal(name: str) -> str:
    return name.strip().casefold().replace("_", "-").replace(".", "-")


def _tools_of(loaded: Any) -> tuple[Tool, ...]:
    """`loaded` is whatever a stranger's entry point names."""
    value = loaded() if callable(loaded) else loaded
    many: list[Any] = list(value) if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownArgumentType]  # checked item by item
    if any(not isinstance(tool, Tool) for tool in many):
        raise TypeError("gives something that is not a daiku.tools.tool.Tool")
    return tuple(many)
