"""Entry points of other packages: discovered without importing them, loaded if the package is allowed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
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
"""Entry point groups, by kind."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point of another package; `package` is its name in the setting `plugins.allow`.

    `off`: nothing was imported. `broken`: it is allowed but could not be used, for the reason `why`. An `on`
    entry has a `why` if some of its names were skipped. `names` are what it provides.
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
        """The package and its version, for lists."""
        return f"{self.package} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class LoadedPlugins(Generic[T]):
    """LoadedPlugins plug-ins of one kind: their values by name, and the status of every entry point."""

    values: Mapping[str, T]
    plugins: tuple[Plugin, ...]


def load(
    kind: Kind,
    entries: Iterable[EntryPoint],
    allowed: Collection[str],
    read: Callable[[object, str], Iterator[tuple[str, T]]],
    is_taken: Callable[[str], bool],
) -> LoadedPlugins[T]:
    """Load the entry points of `kind` whose package is `allowed`.

    `read` yields the names and values of an entry point, and raises TypeError or ValueError for an invalid
    one. Names for which `is_taken` is true, for Daiku or an earlier plug-in, are skipped.
    """
    values: dict[str, T] = {}
    plugins: list[Plugin] = []
    names = {normal_name(name) for name in allowed}
    for entry in entries:
        package, version = _package(entry)
        if package not in names:
            plugins.append(Plugin(kind, package, version, entry.name, "off"))
            continue
        try:
            provided = dict(read(_value(entry), package))
        except (Exception, SystemExit) as error:  # noqa: BLE001  # third-party code may raise anything
            why = text("plugins.failed", what=type(error).__name__, why=str(error))
            plugins.append(Plugin(kind, package, version, entry.name, "broken", why))
            continue
        new = {name: value for name, value in provided.items() if not (is_taken(name) or name in values)}
        values |= new
        skipped = [name for name in provided if name not in new]
        why = text("plugins.taken", names=", ".join(skipped)) if skipped else NO_TEXT
        status = "on" if new else "broken"
        if not provided:
            why = text("plugins.empty")
        plugins.append(Plugin(kind, package, version, entry.name, status, why, tuple(new)))
    return LoadedPlugins(values, tuple(plugins))


def values_of(value: object, kind: type[T]) -> tuple[T, ...]:
    """Return the values of an entry point: one of type `kind`, or several.

    Raises TypeError for another type.
    """
    values = cast("list[object]", list(value) if isinstance(value, list | tuple) else [value])  # pyright: ignore[reportUnknownArgumentType]  # each item is checked below
    for item in values:
        if not isinstance(item, kind):
            raise TypeError(f"it gives a {type(item).__name__}, not a {kind.__module__}.{kind.__qualname__}")
    return tuple(cast("list[T]", values))


def normal_name(name: str) -> str:
    """Return the normalized name of a package, as package indexes compare it."""
    return name.strip().casefold().replace("_", "-").replace(".", "-")


def _value(entry: EntryPoint) -> object:
    loaded: object = entry.load()
    return cast("Callable[[], object]", loaded)() if callable(loaded) else loaded


def _package(entry: EntryPoint) -> tuple[str, str]:
    dist = entry.dist
    return (normal_name(entry.name), "") if dist is None else (normal_name(dist.name), dist.version)


class WorkSource(Protocol):
    """A source of work items."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Plugged:
    """Everything that the allowed packages provide, and the status of every plug-in."""

    tools: tuple[Tool, ...] = ()
    agents: Mapping[str, Agent] = field(default_factory=dict[str, Agent])
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict[str, ProviderEntry])
    work_sources: Mapping[str, WorkSource] = field(default_factory=dict[str, WorkSource])
    plugins: tuple[Plugin, ...] = ()

    def origin(self, kind: Kind, name: str) -> str:
        """Return the package and version that provide `name`; empty for Daiku's own."""
        of_kind = (plugin for plugin in self.plugins if plugin.kind == kind)
        return next((plugin.origin for plugin in of_kind if name in plugin.names), "")
