"""Plug-in kinds: tools, agents, model providers, and work sources."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from daiku.dataclass import replace
from daiku.models.provider import ProviderEntry
from daiku.models.table import PROVIDERS
from daiku.plugins.entries import GROUPS, LoadedPlugins, Plugged, WorkSource, load, values_of
from daiku.run.rules.calls.toolnames import wire_name
from daiku.settings.config import Config
from daiku.team.agent import Agent
from daiku.team.table import ALL_AGENTS
from daiku.texts.text import Text
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from daiku.tools.tool import Tool

log = logging.getLogger(__name__)

_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
OWN_SOURCES = frozenset({"github", "gitlab", "files"})
"""Names of Daiku's own work sources."""


def plug_in(config: Config, environ: Mapping[str, str]) -> tuple[Config, Plugged]:
    """Load the allowed plug-ins, and add their providers to the settings, with keys from `environ`.

    Daiku's own names are never replaced. A broken package is logged; lists show the status of all packages.
    """
    plugged = _load(config.plugins.allow)
    for plugin in plugged.plugins:
        if plugin.status == "broken":
            log.warning("plug-in %s (%s): %s", plugin.origin, plugin.entry, plugin.why)
    llm = config.llm.with_plugins(plugged.providers, environ)
    return config.model_copy(update={"llm": llm}), plugged


def _load(allowed: Collection[str]) -> Plugged:
    every = entry_points()  # once: it reads the metadata of every installed package
    found = {kind: every.select(group=group) for kind, group in GROUPS.items()}
    tools = _tools(found["tool"], allowed, build_builtin_tools(editor=True))
    agents = load("agent", found["agent"], allowed, _agents, lambda name: name in ALL_AGENTS)
    providers = load("provider", found["provider"], allowed, _providers, lambda name: name in PROVIDERS)
    sources = load("work_source", found["work_source"], allowed, _sources, lambda name: name in OWN_SOURCES)
    plugins = (*tools.plugins, *agents.plugins, *providers.plugins, *sources.plugins)
    return Plugged(tuple(tools.values.values()), agents.values, providers.values, sources.values, plugins)


def _tools(
    entries: Iterable[EntryPoint], allowed: Collection[str], own: Collection[Tool]
) -> LoadedPlugins[Tool]:
    registry = ToolRegistry(own)
    ours = {wire_name(name) for name in registry.names}

    def read(value: object, package: str) -> Iterator[tuple[str, Tool]]:
        for tool in values_of(value, Tool):
            yield tool.name, _as_command(tool, package)

    return load(
        "tool", entries, allowed, read, lambda name: bool(registry.taken(name)) or wire_name(name) in ours
    )


def _as_command(tool: Tool, package: str) -> Tool:
    """Return the third-party `tool` with the effect `command`, whatever effect it claims."""
    about = f"{tool.description or (tool.args.__doc__ or '').strip()} (plug-in {package})".strip()
    return replace(tool, effect="command", parallel=False, resumes=False, description=about)


def _agents(value: object, package: str) -> Iterator[tuple[str, Agent]]:
    for agent in values_of(value, Agent):
        yield agent.name, _restrict_agent(agent, package, ())


def _restrict_agent(agent: Agent, package: str, ancestors: tuple[str, ...]) -> Agent:
    """Return `agent` with its tools, and those of its handoff targets, as commands. Raises ValueError."""
    if agent.name in ancestors:
        raise ValueError(f"the agent {agent.name} hands work to itself")
    if ancestors and agent.name in ALL_AGENTS:
        raise ValueError(f"it hands work to an agent that is called {agent.name}, as one of Daiku's own is")
    tools = [_as_command(member, package) if isinstance(member, Tool) else member for member in agent.tools]
    handoffs = [_restrict_agent(member, package, (*ancestors, agent.name)) for member in agent.handoffs]
    return agent.with_(tools=tools, handoffs=handoffs)


def _providers(value: object, package: str) -> Iterator[tuple[str, ProviderEntry]]:
    for entry in values_of(value, ProviderEntry):
        if _NAME.fullmatch(entry.name) is None:
            raise ValueError(f"{entry.name!r} is no name of a provider: small letters, digits, - and _")
        yield entry.name, replace(entry, label=Text(f"{entry.label} (plug-in {package})"))


def _sources(value: object, _package: str) -> Iterator[tuple[str, WorkSource]]:
    for source in values_of(value, object):
        name = getattr(source, "name", None)
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise TypeError(
                f"it gives a {type(source).__name__} without a name of small letters, digits, - and _"
            )
        yield name, cast("WorkSource", source)
