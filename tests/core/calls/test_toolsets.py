"""Tools by need: what a model is sent, what it finds, and how a call of a tool that it found is read."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.runs import Mode
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.domain.work.plans import Plan
from daiku.models.tokens import estimate, estimate_tools
from daiku.run.rules.calls.findtools import (
    CORE,
    MOST_FOUND,
    choose_tools,
    needed_tools,
    search_tools,
    unwrap_call,
)
from daiku.run.rules.calls.toolnames import wire_name
from daiku.team.table import AGENTS, COORDINATOR, list_delegates
from daiku.tools.registry import ToolRegistry
from daiku.tools.table import build_builtin_tools
from tests.cases import for_each

REGISTRY = ToolRegistry(build_builtin_tools(editor=True, agents=list_delegates()))
SPECS = tuple(spec for spec in REGISTRY.specs() if not spec.inner)
SET, SMALL = choose_tools(SPECS), choose_tools(SPECS, window=8000)
LONG = "Does one thing of a service that is far away, with the arguments that it takes. " * 2


def mcp(count: int) -> tuple[ToolSpec, ...]:
    """Tools of a server, each as large as the tools of known servers are."""
    properties = {f"argument_{n}": {"type": "string", "description": "what it is about"} for n in range(4)}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": ["argument_0"]}
    return tuple(
        ToolSpec(name=f"tracker/do_thing_{n}", description=LONG, parameters=schema, effect="mcp")
        for n in range(count)
    )


def names(specs: tuple[ToolSpec, ...]) -> list[str]:
    return [spec.name for spec in specs]


def test_a_model_is_sent_the_core_and_finds_all_the_rest() -> None:
    assert set(names(SET.offered)) <= set(CORE)
    assert "files/patch" not in names(SET.offered)
    assert sorted([*names(SET.offered), *names(SET.deferred)]) == sorted(names(SPECS))


def test_the_core_takes_at_most_1800_tokens() -> None:
    assert estimate_tools(SET.offered) <= 1800


def test_forty_tools_of_servers_cost_at_most_1000_tokens_and_twenty_are_sent() -> None:
    plain = estimate_tools(SET.offered)
    many = choose_tools((*SPECS, *mcp(40)))
    assert estimate_tools(many.offered) - plain <= 1000
    assert len(many.deferred) == len(SET.deferred) + 40
    assert len([s for s in choose_tools((*SPECS, *mcp(20))).offered if s.effect == "mcp"]) == 20


def test_a_small_window_gets_five_tools_and_may_still_reach_servers() -> None:
    assert names(SMALL.offered) == ["files/read", "files/write", "files/edit", "search/text", "shell/run"]
    reaching = choose_tools((*SPECS, *mcp(3)), window=8000)
    assert set(names(reaching.offered)) == {*names(SMALL.offered), "tools/find", "tools/call"}


def test_a_model_that_writes_patches_best_is_sent_files_patch_in_place_of_files_edit() -> None:
    for window in (8000, 200_000):
        offered = names(choose_tools(SPECS, window=window, edits="apply_patch").offered)
        assert "files/patch" in offered
        assert "files/edit" not in offered


def test_only_an_agent_that_defers_is_sent_the_two_that_find_and_call() -> None:
    for agent in AGENTS.values():
        sent = agent.sent(SPECS, 0, "search_replace", lambda: True)
        assert ("tools/find" in names(sent.offered)) == (agent is COORDINATOR), agent.name
        if agent is not COORDINATOR:
            assert sent.offered == agent.usable(SPECS)
            assert sent.deferred == ()


def test_the_description_of_find_names_every_tool_or_its_group() -> None:
    told = next(spec.description for spec in SET.offered if spec.name == "tools/find")
    for spec in SET.deferred:
        name = wire_name(spec.name)
        assert name in told or f"{name.partition('__')[0]}__*" in told


@for_each(
    ("query", "first"),
    [
        ("commit", "git/commit"), ("git log", "git/log"), ("plan", "plan/propose"), ("git/diff", "git/diff"),
        ("git__diff", "git/diff"), ("fetch a web page", "web/fetch"), ("rename file", "files/move"),
        ("delete", "files/delete"), ("parallel agents", "agent/parallel"), ("find references", "editor/references"),
    ],
)  # fmt: skip
def test_tools_are_found_by_words_and_by_every_spelling_of_a_name(query: str, first: str) -> None:
    answer = search_tools(query, SET.deferred, SET.offered)
    described = answer.split("\n\n")[1]
    assert described.startswith(f"{wire_name(first)}: "), answer
    assert '{"' in described


def test_an_answer_is_bounded_and_one_without_a_hit_names_the_groups() -> None:
    answer = search_tools("thing service", (*SET.deferred, *mcp(40)))
    assert estimate(answer) <= 1500
    assert 1 < answer.count('"properties"') <= MOST_FOUND
    for query in ("", "xyzzy"):
        assert "git__ status, diff, log, commit" in search_tools(query, SET.deferred, SET.offered)
    assert "call them directly" in search_tools("files/read", SET.deferred, SET.offered)


ARGS: dict[str, Any] = {"message": "m"}


@for_each(
    "args",
    [
        {"tool": "git__commit", "args": ARGS}, {"tool": "git/commit", "args": '{"message": "m"}'},
        {"name": "git__commit", "arguments": ARGS}, {"tool": "git__commit", "message": "m"},
        {"tool": "tools__call", "args": {"tool": "git.commit", "args": ARGS}},
    ],
)  # fmt: skip
def test_a_call_of_a_found_tool_is_read_as_the_call_itself(args: dict[str, Any]) -> None:
    for spelling in ("tools/call", "tools__call", "tools_call"):
        call = ToolCall(tool=spelling, args=args)
        meant = unwrap_call(call)
        assert (meant.id, meant.args, meant.malformed) == (call.id, ARGS, None)
        assert meant.tool.replace("__", "/").replace(".", "/") == "git/commit"


def test_arguments_that_are_no_object_stay_readable_for_who_answers() -> None:
    assert unwrap_call(ToolCall(tool="tools/call", args={"tool": "a/b", "args": "{x"})).malformed == "{x"
    assert unwrap_call(ToolCall(tool="tools/call", args={"tool": "a/b", "args": [1]})).malformed == "[1]"
    nothing = ToolCall(tool="tools/call", args={})
    assert unwrap_call(nothing) == nothing


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.sampled_from(["tools/call", "files/read"]),
    st.dictionaries(st.text(max_size=6), json_values, max_size=4),
)
def test_reading_a_call_never_raises_and_reads_no_other_call(tool: str, args: dict[str, Any]) -> None:
    call = ToolCall(tool=tool, args=args)
    meant = unwrap_call(call)
    if tool != "tools/call":
        assert meant is call


PLAN = Plan(name="p", goal="g", status="in_progress")
GIT = ["git/status", "git/diff", "git/log", "git/commit"]
WORK = ["plan/update_step", "task/generate_list", "task_loop/run", "plan/get"]


@for_each(
    ("request", "mode", "plans", "wanted"),
    [
        ("mend add()", "act", (), []),
        ("mend add()", "plan", (), ["plan/propose"]),
        ("go on", "act", (PLAN,), WORK),
        ("go on", "act", (PLAN.model_copy(update={"status": "completed"}),), []),
        ("go on", "plan", (PLAN.model_copy(update={"status": "draft"}),), ["plan/propose", "plan/approve", "plan/get"]),
        ("mend it and commit", "act", (), GIT),
        ("直してコミットして", "act", (), GIT),
        ("do both in parallel", "act", (), ["agent/parallel", "agent/handoff"]),
        ("並行して進めて", "act", (), ["agent/parallel", "agent/handoff"]),
        ("read https://example.org/a and do it", "act", (), ["web/search", "web/fetch", "web/research"]),
        ("ウェブで調べて", "act", (), ["web/search", "web/fetch", "web/research"]),
        ("make a plan first", "act", (), ["plan/propose"]),
        ("まず計画を立てて", "act", (), ["plan/propose"]),
        ("rename a.py to b.py", "act", (), ["files/move"]),
    ],
)  # fmt: skip
def test_a_request_is_told_of_the_tools_that_it_needs(
    request: str, mode: Mode, plans: tuple[Plan, ...], wanted: list[str]
) -> None:
    told = needed_tools(request, mode, SET.deferred, plans)
    lines = [line.removeprefix("- ").partition(" ")[0] for line in told.splitlines()[1:]]
    assert lines == [wire_name(name) for name in wanted]
    assert ("tools__call" in told) == bool(wanted)
    assert "tools__call" not in needed_tools(request, mode, SMALL.deferred, plans, by_find=False)


def test_what_a_request_is_told_costs_little() -> None:
    told = needed_tools("commit it, research the web, use agents in parallel", "act", SET.deferred, (PLAN,))
    assert estimate(told) <= 700


def test_who_can_be_asked_is_a_choice() -> None:
    specs = {spec.name: spec for spec in SPECS}
    one: Any = specs["agent/handoff"].parameters["properties"]
    several: Any = specs["agent/parallel"].parameters["properties"]
    assert (
        one["agent"]["enum"]
        == several["requests"]["items"]["properties"]["agent"]["enum"]
        == [*list_delegates()]
    )


def test_in_a_small_project_the_tools_for_large_ones_are_found_and_not_sent() -> None:
    small = choose_tools(SPECS, large=False)
    for_large = {"search/map", "agent/explore"}
    assert set(names(SET.offered)) - set(names(small.offered)) == for_large
    assert for_large <= set(names(small.deferred))
    assert estimate_tools(small.offered) <= 1000
