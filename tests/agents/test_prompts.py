"""The prompts of all agents, word for word: a change of what models are told is a change to look at."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from jinja2.exceptions import SecurityError, UndefinedError

from daiku import prompts
from daiku.agents.rules import RulesFile, read_rules
from daiku.agents.system_prompt import SystemVariables
from daiku.agents.table import AGENTS, find_agent
from daiku.core.calls.toolnames import wire_name
from daiku.domain.base import Frozen
from daiku.domain.errors import UsageError
from daiku.domain.runs import Mode
from daiku.llm.tokens import estimate
from daiku.prompts import render
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import builtin_tools
from tests.cases import for_each

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
MODES: tuple[Mode, ...] = ("ask", "plan", "act")
RULES = (RulesFile(path="AGENTS.md", text="Use tabs.\n{{ not a template }}"),)


ROLES = ("planner", "researcher", "coder", "runner")


def rendered(agent: str, mode: Mode, *, by_tools: bool = True) -> str:
    return render(AGENTS[agent].prompt, SystemVariables(rules=RULES, has_tools=True, by_tools=by_tools))


@for_each("agent", ROLES)
def test_the_prompt_of_a_model_without_tools_of_its_own_is_the_one_on_record(agent: str) -> None:
    golden = GOLDEN / f"{agent}.forms.txt"
    text = rendered(agent, "act", by_tools=False)
    if os.environ.get("GOLDEN") == "write":
        golden.write_text(text + "\n", "utf-8")
    assert text + "\n" == golden.read_text("utf-8"), "GOLDEN=write makes it anew: then read the diff"


@for_each("agent", ROLES)
def test_a_role_that_answers_by_tools_is_told_no_form_and_only_tools_that_it_has(agent: str) -> None:
    text = rendered(agent, "act")
    for form in ('{"queries"', '{"commands"', '{"action"', "Project Name:", "~~~", "SEARCH", "tep by step"):
        assert form not in text
    found = find_agent(agent)
    specs = found.allowed(ToolRegistry(builtin_tools()).specs(), "act")
    offered = {wire_name(spec.name) for spec in (*specs, *(found.role.tools if found.role else ()))}
    named = set(re.findall(r"`(\w+__\w+)`", text))
    assert named
    assert named <= offered
    assert not re.search(r"`\w+/\w+`", text)


@for_each(("agent", "most"), [("planner", 450), ("researcher", 450), ("coder", 425), ("runner", 525)])
def test_a_role_that_answers_by_tools_is_told_little(agent: str, most: int) -> None:
    assert estimate(rendered(agent, "act")) <= most


@for_each("mode", MODES)
@for_each("agent", AGENTS)
def test_the_prompt_is_the_one_on_record(agent: str, mode: Mode) -> None:
    golden = GOLDEN / f"{agent}.{mode}.txt"
    text = rendered(agent, mode)
    if os.environ.get("GOLDEN") == "write":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text + "\n", "utf-8")
    assert text + "\n" == golden.read_text("utf-8"), "GOLDEN=write makes it anew: then read the diff"


def test_rules_come_in_verbatim_and_are_no_template() -> None:
    assert "Use tabs.\n{{ not a template }}" in rendered("coordinator", "act")


def test_every_tool_tells_the_model_what_it_is_for() -> None:
    for tool in builtin_tools(editor=True):
        text = tool.description
        assert 40 < len(text) < 1200, tool.name


def test_templates_may_neither_miss_a_variable_nor_reach_out() -> None:
    class Nothing(Frozen):
        pass

    with pytest.raises(UndefinedError):
        render("agents/coordinator", Nothing())
    environment = prompts._environment()
    with pytest.raises(SecurityError):
        environment.from_string("{{ ''.__class__.__mro__ }}").render()


def test_rules_files_that_lead_outside_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "secret").write_text("s")
    (root / "AGENTS.md").symlink_to(tmp_path / "secret")
    (root / "CLAUDE.md").write_text("Be kind.")
    assert [(f.path, f.text) for f in read_rules((root,))] == [("CLAUDE.md", "Be kind.")]


def test_modes_decide_what_is_carried_out_and_never_what_is_offered() -> None:
    specs = ToolRegistry(builtin_tools()).specs()
    allowed = {mode: {s.effect for s in find_agent("coordinator").allowed(specs, mode)} for mode in MODES}
    assert allowed["ask"] <= {"none", "read", "network", "ask"}
    assert allowed["plan"] == allowed["ask"] | {"plan"}
    assert {"edit", "command"} <= allowed["act"]
    assert {s.effect for s in find_agent("planner").usable(specs)} <= {"none", "read", "plan", "ask"}
    assert "shell/run" not in {s.name for s in find_agent("coder").usable(specs)}


def test_an_unknown_agent_is_told_with_those_there_are() -> None:
    with pytest.raises(UsageError) as wrong:
        find_agent("cook")
    assert "coordinator" in wrong.value.failure.hint
