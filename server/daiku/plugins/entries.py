"""Entry points of other packages: found without importing them, loaded where their package is allowed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Generic, Literal, Protocol, TypeVar, cast

from daiku.dataclass import dataclass, field
from daiku.models.provider import ProviderEntry
from daiku.team.agent import Agent
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.tool import Tool

T = TypeVar("T")
Kind = Literal["tool", "agent", "provider", "work_source"]
GROUPS: Mapping[Kind, str] = MappingProxyType(
    {
        "tool": "daiku.tools",
        "agent": "daiku.agents",
        "provider": "daiku.providers",
        "work_source": "daiku.work_sources",
    }
)
"""The groups of entry points that are looked at."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point of another package: `package` is what the setting `plugins.allow` names.

    `off`: nothing of it was imported. `broken`: it was allowed and could not be used, `why` says why. One that is
    `on` has a `why` too where some of what it brings was left out. `names` are what it brings.
    """

    kind: Kind
    package: str
    version: str
    entry: str
    status: Literal["on", "off", "broken"]
    why: Text = NO_TEXT
    names: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """The package with its version, as lists show it."""
        return f"{self.package} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Loaded(Generic[T]):
    """What the allowed packages bring of one kind, by name, and how every entry point of it stands."""

    found: Mapping[str, T]
    plugins: tuple[Plugin, ...]


def load(
    kind: Kind,
    allowed: Collection[str],
    read: Callable[[object, str], Iterator[tuple[str, T]]],
    taken: Callable[[str], bool],
) -> Loaded[T]:
    """Load the entry points of `allowed` packages. `read` gives the names and values of what one of them names, and
    raises TypeError or ValueError where that is something else; a name that is `taken`, by Daiku or by an earlier
    plug-in, is left out."""
    found: dict[str, T] = {}
    plugins: list[Plugin] = []
    names = {normal_name(name) for name in allowed}
    for entry in entry_points(group=GROUPS[kind]):
        package, version = _package(entry)
        if package not in names:
            plugins.append(Plugin(kind, package, version, entry.name, "off"))
            continue
        try:
            given = dict(read(_value(entry), package))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # a stranger's package may fail in any way
            why = text("plugins.failed", what=type(error).__name__, why=str(error))
            plugins.append(Plugin(kind, package, version, entry.name, "broken", why))
            continue
        new = {name: value for name, value in given.items() if not (taken(name) or name in found)}
        found |= new
        left = [name for name in given if name not in new]
        why = text("plugins.taken", names=", ".join(left)) if left else NO_TEXT
        status = "on" if new else "broken"
        if not given:
            why = text("plugins.empty")
        plugins.append(Plugin(kind, package, version, entry.name, status, why, tuple(new)))
    return Loaded(found, tuple(plugins))


def many(value: object, kind: type[T]) -> tuple[T, ...]:
    """What an entry point names: one value of `kind` or several. Raises TypeError where it is something else."""
    given = cast("list[object]", list(value) if isinstance(value, list | tuple) else [value])  # pyright: ignore[reportUnknownArgumentType]  # looked at one by one
    for each in given:
        if not isinstance(each, kind):
            raise TypeError(f"it gives a {type(each).__name__}, not a {kind.__module__}.{kind.__qualname__}")
    return tuple(cast("list[T]", given))


def normal_name(name: str) -> str:
    """The name of a package as indexes compare it."""
    return name.strip().casefold().replace("_", "-").replace(".", "-")


def _value(entry: EntryPoint) -> object:
    loaded: object = entry.load()
    return cast("Callable[[], object]", loaded)() if callable(loaded) else loaded


def _package(entry: EntryPoint) -> tuple[str, str]:
    dist = entry.dist
    return (normal_name(entry.name), "") if dist is None else (normal_name(dist.name), dist.version)


class WorkSource(Protocol):
    """Where work items come from."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Plugged:
    """All that the allowed packages bring, and how every plug-in stands."""

    tools: tuple[Tool, ...] = ()
    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict[str, ProviderEntry])
    work_sources: Mapping[str, WorkSource] = field(default_factory=dict[str, WorkSource])
    plugins: tuple[Plugin, ...] = ()

    def origin(self, kind: Kind, name: str) -> str:
        """The package that brings what is called `name`, with its version; empty for what is Daiku's own."""
        of_kind = (plugin for plugin in self.plugins if plugin.kind == kind)
        return next((plugin.origin for plugin in of_kind if name in plugin.names), "")
