"""What an agent is made from, what it refuses and how it is copied."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from daiku import Agent, tool
from daiku.domain.errors import UsageError
from daiku.team.agent import Prompt
from daiku.team.known import Agents
from daiku.team.table import AGENTS
from daiku.testing import FakeLLM, FakeTool
from daiku.tools.registry import ToolRegistry
from tests.cases import for_each


def look() -> str:
    """Look."""
    return "seen"


@for_each(
    ("made", "error", "said"),
    [
        (lambda: Agent("", "x"), ValueError, "`name` is empty"),
        (lambda: Agent("  ", "x"), ValueError, "`name` is empty"),
        (lambda: Agent(3, "x"), TypeError, "`name` is a text, not a int"),  # type: ignore[arg-type]
        (lambda: Agent('a"b', "x"), ValueError, "`name` is at most 64 characters"),
        (lambda: Agent("a\nb", "x"), ValueError, "`name` is at most 64 characters"),
        (lambda: Agent("a" * 65, "x"), ValueError, "`name` is at most 64 characters"),
        (lambda: Agent("a", ""), ValueError, "`instructions` is empty"),
        (lambda: Agent("a", " \n"), ValueError, "`instructions` is empty"),
        (lambda: Agent("a", None), TypeError, "`instructions` is a text or a Prompt"),  # type: ignore[arg-type]
        (lambda: Agent("a"), TypeError, "'instructions'"),  # type: ignore[call-arg]
        (lambda: Agent("a", "x", tools=look), TypeError, "tools must be a list"),  # type: ignore[arg-type]
        (lambda: Agent("a", "x", tools=[3]), TypeError, "tools"),  # type: ignore[list-item]
        (lambda: Agent("a", "x", tools=[look, look]), ValueError, "two tools named 'look'"),
        (lambda: Agent("a", "x", model=3), TypeError, "`model` is a name"),  # type: ignore[arg-type]
        (lambda: Agent("a", "x", model=FakeLLM), TypeError, "`model` is a name"),  # type: ignore[arg-type]
        (lambda: Agent("a", "x", handoffs=["b"]), TypeError, "`handoffs` takes Agents, not a str"),  # type: ignore[list-item]
        (lambda: Agent("a", "x", handoffs=Agent("b", "x")), TypeError, "`handoffs` is a list"),  # type: ignore[arg-type]
        (
            lambda: Agent("a", "x", handoffs=[Agent("b", "x"), Agent("b", "y")]),
            ValueError,
            "two agents called 'b'",
        ),
        (lambda: Agent("a", "x", guardrails=[look]), TypeError, "`guardrails` takes Guardrails"),  # type: ignore[list-item]
        (lambda: Agent("a", "x", memory=[]), TypeError, "`memory` is a Memory"),  # type: ignore[arg-type]
        (lambda: Agent("a", "x", extra_cfg=3), TypeError, "`extra_cfg` is a mapping"),  # type: ignore[arg-type]
        (lambda: Agent("a", "x", on_handoff_return=3), TypeError, "`on_handoff_return`"),  # type: ignore[arg-type]
        (lambda: Agent("a", "x", cook=1), TypeError, "'cook'"),  # type: ignore[call-arg]
        (lambda: Agent("a", "x").with_(name="b"), TypeError, "`name` of an agent never changes"),  # type: ignore[call-arg]
        (lambda: Agent("a", "x").with_(cook=1), TypeError, "'cook'"),  # type: ignore[call-arg]
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence_that_names_the_argument(
    made: Any, error: type[Exception], said: str
) -> None:
    """R1.18: name and instructions are mandatory, and not empty."""
    with pytest.raises(error) as raised:
        made()
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_name_and_instructions_never_change() -> None:
    """R1.21: they are immutable after construction."""
    agent = Agent("a", "x")
    for name in ("name", "instructions", "tools"):
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(agent, name, "b")


def test_a_copy_differs_in_what_was_said_alone() -> None:
    """R1.22: model, memory and the rest are exchanged by a copy."""
    llm = FakeLLM("x")
    agent = Agent("a", "x", tools=[look, "files/*"], extra_cfg={"key": 1}, on_handoff_return=str.upper)
    copy = agent.with_(model=llm)
    assert (copy.model, agent.model) == (llm, "")
    assert (copy.name, copy.instructions, copy.tools) == (agent.name, agent.instructions, agent.tools)
    assert (copy.extra_cfg, copy.on_handoff_return) == ({"key": 1}, str.upper)


def test_tools_are_functions_tools_and_names_of_built_in_ones() -> None:
    """R1.19: functions are wrapped, Tools are kept, names mean what is built in."""

    @tool(name="clock/now")
    def now() -> str:
        """Tell the time."""
        return "7"

    agent = Agent("a", "x", tools=[look, now, FakeTool("fake"), "files/*"])
    assert agent.patterns == ("look", "clock/now", "fake", "files/*")
    assert [each.name for each in agent.own_tools] == ["look", "clock/now", "fake"]


def test_our_agents_are_values_of_the_same_class() -> None:
    """R1.10: a packaged template in place of a text, and their part in the work."""
    for agent in AGENTS.values():
        assert isinstance(agent.instructions, Prompt)
        assert agent.part is not None
        assert type(agent) is Agent


def test_an_own_agent_comes_before_ours_of_the_same_name() -> None:
    own = Agent("coder", "I code.")
    assert Agents({"coder": own}).find("coder") is own
    assert Agents({"coder": own}).find("planner") is AGENTS["planner"]
    with pytest.raises(UsageError, match="no agent 'cook'"):
        Agents().find("cook")
    assert Agents().find_recorded("cook").name == "cook"


def test_tools_of_an_agent_stand_on_top_of_the_shared_ones() -> None:
    shared = ToolRegistry([FakeTool("one"), FakeTool("two")])
    agent = Agent("a", "x", tools=[own := FakeTool("two"), FakeTool("three")])
    over = shared.with_own(agent, lambda: agent.own_tools)
    assert over is shared.with_own(agent, lambda: ())
    assert [spec.name for spec in over.specs()] == ["one", "two", "three"]
    assert over.get("two").tool is own  # type: ignore[union-attr]
    assert shared.names == ("one", "two")
    shared.add([FakeTool("late")])
    assert over.spec("late") is not None
    shared.remove(["late"])
    assert over.spec("late") is None
    assert over.bottom is shared
