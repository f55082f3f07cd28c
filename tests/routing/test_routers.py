"""Routers alone: the first rule that matches, a light model, and what decides where it does not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from daiku.domain.errors import Failure, LLMRequestError, UsageError
from daiku.domain.runs import Route
from daiku.run.rules.outside import Router
from daiku.team.routing.model import LLMRouter
from daiku.team.routing.rule_router import RuleRouter
from daiku.testing import FakeLLM
from daiku.texts.text import Text

AGENTS = {"billing": "knows invoices", "coder": "writes code", "poet": "writes verse"}
RULES = [("(?i)invoice|bill", ["billing"]), ("code", ["coder", "poet"]), ("invoice", ["poet"])]


async def test_the_first_rule_that_matches_wins() -> None:
    """R1.52"""
    router = RuleRouter(RULES)
    assert router.rules[0] == ("(?i)invoice|bill", ["billing"])
    assert await router.route("an Invoice with code", agents=AGENTS) == Route(("billing",), "rule")
    assert await router.route("some code", agents=AGENTS) == Route(("coder", "poet"), "rule")
    assert await router.route("hello", agents=AGENTS) == Route()


async def test_names_that_nobody_has_are_dropped() -> None:
    """C1.12"""
    router = RuleRouter([("x", ["nobody", "poet"]), ("y", ["nobody"])])
    assert (await router.route("x", agents=AGENTS)).agents == ("poet",)
    assert await router.route("y", agents=AGENTS) == Route()


async def test_a_rule_that_explodes_counts_as_absent() -> None:
    router = RuleRouter([(r"^(a+)+$", ["poet"]), ("!", ["coder"])])
    async with asyncio.timeout(10):
        assert (await router.route("a" * 40 + "!", agents=AGENTS)).agents == ("coder",)


@pytest.mark.parametrize(
    ("rules", "kind", "name"),
    [
        ([("(", ["a"])], ValueError, "rules[0]"),
        ([("a", ["a"]), ("b",)], TypeError, "rules[1]"),
        ([("a", [5])], TypeError, "rules[0]"),
        ("abc", TypeError, "rules"),
    ],
)
def test_a_wrong_rule_is_named(rules: Any, kind: type[Exception], name: str) -> None:
    with pytest.raises(kind, match=re.escape(name)):
        RuleRouter(rules)


async def test_a_model_names_the_agents() -> None:
    """R1.53: it is shown the names with what they do, and the request as the person said it."""
    model = FakeLLM('Sure: {"question": "an invoice", "agents": ["poet", "nobody", "poet", "billing"]}')
    found = await LLMRouter(model, AGENTS).route("an invoice", agents=AGENTS)
    assert (found.agents, found.by) == (("poet", "billing"), "model")
    assert found.usage is not None
    (asked,) = model.requests
    assert asked.messages[-1].text == "an invoice"


def _fails(_: object) -> str:
    raise LLMRequestError(Failure(kind="timeout", message=Text("no")))


def _breaks(_: object) -> str:
    raise RuntimeError


@pytest.mark.parametrize(
    "reply",
    [
        "no JSON",
        '{"agents": "',
        '{"agents": []}',
        '{"agents": ["nobody"]}',
        '{"agents": [5, null]}',
        "[]",
        "",
        _fails,
        _breaks,
    ],
)
async def test_where_the_model_names_nobody_the_rules_decide(reply: str | Callable[..., str]) -> None:
    """R1.54, C1.12: bad JSON, unknown names, a model that fails: rules, then the default."""
    router = LLMRouter(FakeLLM(reply, reply), list(AGENTS), rules=RULES)
    found = await router.route("an invoice", agents=AGENTS)
    assert (found.agents, found.by) == (("billing",), "rule")
    assert (await router.route("hello", agents=AGENTS)).by == "default"


async def test_a_model_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("daiku.team.routing.model.SECONDS", 0.05)

    class Silent:
        async def stream(self, request: object) -> Any:
            await asyncio.sleep(60)
            yield request

    router = LLMRouter(Silent(), AGENTS, rules=RULES)  # pyright: ignore[reportArgumentType]
    assert (await router.route("an invoice", agents=AGENTS)).agents == ("billing",)


async def test_a_model_that_there_is_not_is_told_of() -> None:
    def resolve(name: str) -> Any:
        raise UsageError(Failure(kind="usage", message=Text(f"no {name}")))

    with pytest.raises(UsageError):
        await LLMRouter("openai/none", AGENTS).route("x", agents=AGENTS, model=resolve)


def test_both_are_routers() -> None:
    """R1.11"""
    routers: tuple[Router, ...] = (RuleRouter([]), LLMRouter("openai/o3-mini"))
    assert len(routers) == 2
    with pytest.raises(ValueError, match="model"):
        LLMRouter("")
    with pytest.raises(TypeError, match="model"):
        LLMRouter(5)  # pyright: ignore[reportArgumentType]
