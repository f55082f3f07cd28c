"""Router by rules: the first pattern that matches a request names its agents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from daiku.domain.runs import Route
from daiku.models.families import Model

Rule: TypeAlias = tuple[str, Sequence[Any]]
"""A regular expression, and agents by name or as objects."""


class RuleRouter:
    """Router that returns the agents of the first rule whose pattern matches the request (R1.52).

    `rules`: pairs of a regular expression and agents (names, or Agents). Unknown names are dropped. A pattern that times
    out does not match. Raises TypeError and ValueError, each with the rule's index.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        if isinstance(rules, str | Mapping):
            raise TypeError("rules must be a list of pairs (pattern, agents)")
        self.given: dict[str, Any] = {}
        """Agent objects among the named agents, by name."""
        self.rules: list[tuple[str, list[str]]] = []
        """Rules in order, agents by name (R1.52)."""
        self._patterns: list[re.Pattern[str]] = []
        for index, rule in enumerate(rules):
            pattern, agents = _check_pair(rule, index)
            self._patterns.append(_compile(pattern, index))
            self.rules.append((pattern, collect_names(agents, f"rules[{index}]", self.given)))

    async def route(
        self,
        question: str,
        *,
        agents: Mapping[str, str] | None = None,
        model: Callable[[str], Model] | None = None,
    ) -> Route:
        """Return the agents for `question` from `agents` (None: any). `model` is ignored; other routers use it."""
        from daiku.guard.guardrails.matching import search  # when used

        for pattern, (_, named) in zip(self._patterns, self.rules, strict=True):
            match = await search((pattern,), question)
            if match.blocks and not match.trouble:
                available = tuple(dict.fromkeys(name for name in named if agents is None or name in agents))
                return Route(available, "rule") if available else Route()
        return Route()


def collect_names(agents: Iterable[Any], argument: str, objects: dict[str, Any]) -> list[str]:
    """Return the names of `agents`; store Agent objects by name in `objects`. Raises TypeError."""
    if isinstance(agents, str):
        agents = (agents,)
    names: list[str] = []
    for agent in agents:
        name = agent if isinstance(agent, str) else getattr(agent, "name", None)
        if not isinstance(name, str):
            raise TypeError(f"{argument} must name agents, not {agent!r:.100}")
        if not isinstance(agent, str):
            objects[name] = agent
        names.append(name)
    return names


def _check_pair(rule: object, index: int) -> tuple[str, Iterable[Any]]:
    match rule:
        case (str(pattern), str() | list() | tuple()):
            return pattern, cast("tuple[str, Iterable[Any]]", rule)[1]
        case _:
            raise TypeError(
                f"rules[{index}] must be a pair of a pattern and a list of agents, not {rule!r:.100}"
            )


def _compile(pattern: str, index: int) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"rules[{index}] is no regular expression: {pattern!r} ({error})") from error
