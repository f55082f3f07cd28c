"""Registry of agents by name: the user's own, and the built-in ones, which are imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from daiku.dataclass import dataclass, field
from daiku.domain.errors import Failure, UsageError
from daiku.team.agent import Agent, Prompt
from daiku.texts.text import text


@dataclass(frozen=True, slots=True)
class Agents:
    """Agents by name: the built-in ones, and the user's `own`, which take precedence."""

    own: Mapping[str, Agent] = field(default_factory=lambda: MappingProxyType({}))

    def find(self, name: str) -> Agent:
        """Return the agent called `name`. Raises UsageError that lists the known names."""
        if name in self.own:
            return self.own[name]
        from daiku.team.table import find_agent  # when used

        return find_agent(name, self.own)

    def find_for_run(self, name: str, candidate: Agent | None, run: str) -> Agent:
        """Return the agent that continues `run`: `candidate` if it has the name, else the one called `name`.

        Raises UsageError if there is none.
        """
        if candidate is not None and candidate.name == name:
            return candidate
        from daiku.team.table import AGENTS  # when used

        agent = self.own.get(name) or AGENTS.get(name)
        if candidate is not None or agent is None:
            raise UsageError(
                Failure(
                    kind="not_found",
                    message=text("roles.needs_agent", name=repr(name), run=run),
                    hint=text("roles.give_agent", name=repr(name)),
                )
            )
        return agent

    def find_recorded(self, name: str) -> Agent:
        """Return the agent of a recorded run; a placeholder if unknown, so that its session can be read."""
        from daiku.team.table import ALL_AGENTS  # when used

        return self.own.get(name) or ALL_AGENTS.get(name) or Agent(name, Prompt("agents/coordinator"))
