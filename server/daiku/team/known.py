"""Which agents a wiring knows by name: people's own, and ours, which are imported when one of them is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from daiku.dataclass import dataclass, field
from daiku.domain.errors import Failure, UsageError
from daiku.team.agent import Agent, Prompt
from daiku.texts.text import text


@dataclass(frozen=True, slots=True)
class Agents:
    """The agents of one wiring: ours, and people's `own`, which come first where the names are the same."""

    own: Mapping[str, Agent] = field(default_factory=lambda: MappingProxyType({}))

    def find(self, name: str) -> Agent:
        """Return the agent called `name`. Raises UsageError that lists the known names."""
        if name in self.own:
            return self.own[name]
        from daiku.team.table import find_agent  # when used

        return find_agent(name, self.own)

    def of_run(self, name: str, given: Agent | None, run: str) -> Agent:
        """Return the agent that continues `run`: the `given` one, else the one called `name`. Raises UsageError."""
        if given is not None and given.name == name:
            return given
        from daiku.team.table import AGENTS  # when used

        found = self.own.get(name) or AGENTS.get(name)
        if given is not None or found is None:
            raise UsageError(
                Failure(
                    kind="not_found",
                    message=text("roles.needs_agent", name=repr(name), run=run),
                    hint=text("roles.give_agent", name=repr(name)),
                )
            )
        return found

    def on_record(self, name: str) -> Agent:
        """Return the agent of a recorded run; a stand-in if unknown, so that its session can be read."""
        from daiku.team.table import ALL_AGENTS  # when used

        return self.own.get(name) or ALL_AGENTS.get(name) or Agent(name, Prompt("team/coordinator"))
