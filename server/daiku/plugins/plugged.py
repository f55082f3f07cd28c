"""What allowed packages have brought, by kind and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from daiku.agents.agent import Agent
from daiku.dataclass import dataclass, field
from daiku.llm.provider import ProviderEntry
from daiku.plugins.entries import Kind, Plugin
from daiku.tools.tool import Tool


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
