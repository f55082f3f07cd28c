"""What models are asked first, word for word: a change of what they are told is a change to look at."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from jinja2.exceptions import SecurityError, UndefinedError

from daiku.domain.base import Frozen
from daiku.domain.errors import UsageError
from daiku.domain.runs import Mode
from daiku.models.families import find_traits
from daiku.models.tokens import estimate
from daiku.prompts import library, render
from daiku.run.rules.calls.toolnames import wire_name
from daiku.team.agent import Prompt
from daiku.team.rules_files import RulesFile, read_rules
from daiku.team.system_prompt import SystemVariables, render_system_prompt
from daiku.team.table import AGENTS, find_agent
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from tests.agents.requests import MODELS, Asking, named_tools, shown, shown_messages, shown_tools, undescribed
from tests.cases import for_each

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
MODES: tuple[Mode, ...] = ("ask", "plan", "act")
ASKED = [agent.name for agent in AGENTS.values() if agent.machine is None]
"""The agents that ask a model."""
MOST_SYSTEM = 800
"""Tokens of the coordinator's system text without what the project and the person add."""


RULES = (RulesFile(path="AGENTS.md", text="Use tabs.\n{{ not a template }}"),)
ROLES = ("planner", "researcher", "coder", "runner", "reporter")


def rendered(agent: str) -> str:
    prompt = AGENTS[agent].instructions
    assert isinstance(prompt, Prompt)
    return render(prompt.id, SystemVariables(rules=RULES, has_tools=True))


@for_each("agent", ROLES)
def test_a_role_that_answers_by_tools_is_told_no_form_and_only_tools_that_it_has(agent: str) -> None:
    text = rendered(agent)
    for form in (
        '{"queries"',
        '{"text"',
        '{"commands"',
        '{"action"',
        "Project Name:",
        "~~~",
        "SEARCH",
        "tep by step",
    ):
        assert form not in text
    found = find_agent(agent)
    specs = found.allowed(ToolRegistry(build_builtin_tools()).specs(), "act")
    offered = {wire_name(spec.name) for spec in (*specs, *(found.role.tools if found.role else ()))}
    named = set(re.findall(r"`(\w+__\w+)`", text))
    assert named
    assert named <= offered
    assert not re.search(r"`\w+/\w+`", text)


@for_each(
    ("agent", "most"),
    [("planner", 450), ("researcher", 450), ("coder", 425), ("runner", 525), ("reporter", 350)],
)
def test_a_role_that_answers_by_tools_is_told_little(agent: str, most: int) -> None:
    assert estimate(rendered(agent)) <= most


@pytest.fixture
def asking(tmp_path: Path) -> Asking:
    return Asking(tmp_path)


def compare(golden: Path, text: str) -> None:
    if os.environ.get("GOLDEN") == "write":
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, "utf-8")
    assert golden.is_file(), "GOLDEN=write makes it: then read it"
    assert text == golden.read_text("utf-8"), "GOLDEN=write makes it anew: then read the diff"


@pytest.mark.parametrize("agent", ASKED)
async def test_the_first_request_to_each_family_is_the_one_on_record(asking: Asking, agent: str) -> None:
    by_text: dict[str, list[str]] = {}
    for family, model in MODELS.items():
        request = await asking.first_request(agent, "act", model)
        by_text.setdefault(shown(request), []).append(family)
    for text, families in by_text.items():
        head = f"The first request of the agent {agent} in mode act, to models of: {', '.join(families)}.\n\n"
        compare(GOLDEN / f"{agent}.{families[0]}.txt", head + text)
    found = {file.name.split(".")[1] for file in GOLDEN.glob(f"{agent}.*.txt")} - {"plan", "ask", "request"}
    assert found == {families[0] for families in by_text.values()}, "a golden that no request is like"


@pytest.mark.parametrize("agent", ASKED)
async def test_a_mode_changes_what_the_person_s_message_begins_with_and_no_word_before_it(
    asking: Asking, agent: str
) -> None:
    acting = await asking.first_request(agent, "act", MODELS["other"])
    for mode in ("plan", "ask"):
        request = await asking.first_request(agent, mode, MODELS["other"])
        assert (request.system, request.tools) == (acting.system, acting.tools)
        if find_agent(agent).tools:
            head = f"What the agent {agent} reads in mode {mode}, behind the same system text.\n\n"
            compare(GOLDEN / f"{agent}.{mode}.txt", head + shown_messages(request))


@pytest.mark.parametrize("family", MODELS)
def test_the_coordinator_s_system_text_is_short(tmp_path: Path, family: str) -> None:
    text = render_system_prompt(
        find_agent("coordinator"), (tmp_path,), True, traits=find_traits(MODELS[family])
    )
    assert estimate(text) <= MOST_SYSTEM
    assert ("files__patch" in text) == (family == "gpt")
    assert ("files__edit" in text) == (family != "gpt")


def test_rules_come_in_verbatim_and_are_no_template(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n{{ not a template }}")
    assert "Use tabs.\n{{ not a template }}" in render_system_prompt(
        find_agent("coordinator"), (tmp_path,), True
    )


def test_every_tool_tells_the_model_what_it_is_for() -> None:
    for tool in build_builtin_tools(editor=True):
        text = tool.description
        assert 40 < len(text) < 1200, tool.name


def test_templates_may_neither_miss_a_variable_nor_reach_out() -> None:
    class Nothing(Frozen):
        pass

    with pytest.raises(UndefinedError):
        render("agents/coordinator", Nothing())
    environment = library._build_environment(library._Texts())
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
    specs = ToolRegistry(build_builtin_tools()).specs()
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


@pytest.mark.parametrize("agent", ASKED)
async def test_every_tool_that_a_request_names_is_in_reach_and_every_parameter_described(
    asking: Asking, agent: str
) -> None:
    for family in ("other", "gpt", "small"):
        request = await asking.first_request(agent, "act", MODELS[family])
        sent = {wire_name(spec.name) for spec in request.tools}
        found = {wire_name(spec.name) for spec in request.deferred}
        text = "\n".join([request.system, shown_tools(request.tools), shown_messages(request)])
        assert named_tools(text) <= sent | found, family
        described = {spec.name: undescribed(spec) for spec in (*request.tools, *request.deferred)}
        assert not {name: left for name, left in described.items() if left}
