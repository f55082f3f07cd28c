"""The table of agents is the truth: each agent says who it is, and the others are told of it."""

from __future__ import annotations

import ast
import re

from daiku.prompts import find_prompts_folder
from daiku.settings.config import AgentsSettings
from daiku.team.agent import Agent, Prompt
from daiku.team.table import AGENTS, INNER, list_delegates
from daiku.tools.table import build_builtin_tools
from tests.cases import for_each
from tests.conftest import ROOT

ALL = {**AGENTS, **INNER}


@for_each("agent", ALL.values())
def test_every_agent_says_who_it_is(agent: Agent) -> None:
    assert agent.description
    assert agent.label.en
    assert re.search(r"[\u3041-\u30ff\u4e00-\u9fff]", agent.label.ja)
    assert isinstance(agent.instructions, Prompt)
    for language in ("", ".ja"):
        assert (find_prompts_folder() / f"{agent.instructions.id}{language}.j2").is_file()


def test_there_is_a_setting_for_each_agent_that_asks_a_model_and_for_no_other() -> None:
    asking = {name for name, agent in AGENTS.items() if agent.machine is None}
    assert set(AgentsSettings.model_fields) == asking


def test_every_agent_that_is_written_is_in_the_table() -> None:
    written = [
        node.args[0].value
        for path in sorted((ROOT / "server/daiku").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and any(keyword.arg == "part" for keyword in node.keywords)
        if node.args and isinstance(node.args[0], ast.Constant)
    ]
    assert sorted(map(str, written)) == sorted(ALL)


def test_the_hand_off_tool_names_every_agent_that_takes_requests() -> None:
    told = next(
        t for t in build_builtin_tools(agents=list_delegates()) if t.name == "agent/handoff"
    ).description
    named = re.findall(r"(\w+) \(", told.partition("Agents: ")[2])
    assert named == [agent.name for agent in AGENTS.values() if agent.delegate]
    assert "reporter" in named
