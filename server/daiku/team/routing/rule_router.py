"""Routing by rules: the first pattern that stands in a request names its agents."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from daiku.domain.runs import Route
from daiku.models.families import Model

Rule: TypeAlias = tuple[str, Sequence[Any]]
"""A regular expression, and agents: by name, or as they are."""


class RuleRouter:
    """Gives a request to the agents of the first rule whose pattern stands in it (R1.52).

    `rules`: pairs of a regular expression and agents (names, or agents). Names that nobody has are left out. A
    pattern that takes too long counts as absent. Raises TypeError and ValueError, each with the rule's number.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        if isinstance(rules, str | Mapping):
            raise TypeError("rules must be a list of pairs (pattern, agents)")
        self.given: dict[str, Any] = {}
        """The agents among those named that are more than a name."""
        self.rules: list[tuple[str, list[str]]] = []
        """The rules in their order, agents by name (R1.52)."""
        self._patterns: list[re.Pattern[str]] = []
        for at, rule in enumerate(rules):
            pattern, agents = _pair(rule, at)
            self._patterns.append(_compiled(pattern, at))
            self.rules.append((pattern, names_of(agents, f"rules[{at}]", self.given)))

    async def route(
        self,
        question: str,
        *,
        agents: Mapping[str, str] | None = None,
        model: Callable[[str], Model] | None = None,
    ) -> Route:
        """Return the agents for `question`, of those in `agents` (None: any). `model` is for routers that ask one."""
        from daiku.guard.guardrails.matching import search  # when used

        for pattern, (_, named) in zip(self._patterns, self.rules, strict=True):
            found = await search((pattern,), question)
            if found.blocks and not found.trouble:
                known = tuple(dict.fromkeys(name for name in named if agents is None or name in agents))
                return Route(known, "rule") if known else Route()
        return Route()


def names_of(agents: Iterable[Any], argument: str, given: dict[str, Any]) -> list[str]:
    """The names of `agents`; those that are more than a name are kept in `given`. Raises TypeError."""
    if isinstance(agents, str):
        agents = (agents,)
    found: list[str] = []
    for each in agents:
        name = each if isinstance(each, str) else getattr(each, "name", None)
        if not isinstance(name, str):
            raise TypeError(f"{argument} must name agents, not {each!r:.100}")
        if not isinstance(each, str):
            given[name] = each
        found.append(name)
    return found


def _pair(rule: object, at: int) -> tuple[str, Iterable[Any]]:
    match rule:
        case (str(pattern), str() | list() | tuple()):
            return pattern, cast("tuple[str, Iterable[Any]]", rule)[1]
        case _:
            raise TypeError(
                f"rules[{at}] must be a pair of a pattern and a list of agents, not {rule!r:.100}"
            )


def _compiled(pattern: str, at: int) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as wrong:
        raise ValueError(f"rules[{at}] is no regular expression: {pattern!r} ({wrong})") from wrong
