"""What a program names must exist: tools, patterns, MCP servers, agents of a router, decisions; and a result tells all."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from daiku import Agent, Result, RuleRouter, Runner, tool
from daiku.dataclass import fields
from daiku.domain.runs import RunResult
from daiku.testing import FakeLLM
from tests.cases import for_each


def returning(value: object) -> Any:
    """An approvals function that returns `value`."""
    return lambda _: value


@tool(effect="network")
def buy(item: str) -> str:
    """Buy an item."""
    return f"Bought {item}."


def agent(*replies: Any, **more: Any) -> Agent:
    return Agent("host", "You help.", model=FakeLLM(*replies), **more)


NAMES = {
    "files/raed": "files/read",
    "file/*": "files/*",
    "clok/*": "clock/*",
    "nosuch": "",
    "Files/Read": "files/read",
    "files/r?": "files/*",
}


@for_each("name", NAMES)
def test_a_tool_that_there_is_not_is_named_with_the_nearest(name: str) -> None:
    server = {"mcp_server_name": "clock", "command": ["nosuchprogram"]}
    asked = agent("Hello.", tools=[name, "files/list"])
    with pytest.raises(ValueError, match="names no tool") as wrong:
        asked.run_sync("Hi", settings={"mcp_servers": [server]})
    assert repr(name) in str(wrong.value)
    assert NAMES[name] in str(wrong.value)


def test_the_tools_of_an_agent_that_work_is_handed_to_are_checked_too() -> None:
    inner = Agent("inner", "You help.", tools=["search/txt"], model=FakeLLM())
    with pytest.raises(ValueError, match=r"'inner'.*'search/txt'.*'search/text'"):
        agent("Hello.", handoffs=[inner]).run_sync("Hi")


def test_known_names_and_patterns_are_accepted() -> None:
    done = agent("Hello.", tools=["files/*", "search/text", "*/list", buy]).run_sync("Hi")
    assert done.status == "completed"


def test_an_agent_of_a_router_that_there_is_not_is_named() -> None:
    router = RuleRouter([("tea", ["hots"])])
    with pytest.raises(ValueError, match=r"'hots'.*'host'"):
        agent("Hello.").run_sync("Hi", router=router)
    assert agent("Hello.").run_sync("Hi", router=RuleRouter([("tea", ["host"])])).text == "Hello."


SERVERS: dict[str, dict[str, Any]] = {
    "not on PATH": {"command": ["nosuchprogram"]},
    "refuses": {"url": "http://127.0.0.1:9/mcp"},
    "exits": {"command": [sys.executable, "-c", "raise SystemExit(3)"]},
    "slow": {"command": [sys.executable, "-c", "import time; time.sleep(60)"]},
    "no protocol": {"command": [sys.executable, "-c", "print('hello'); input()"]},
}


@for_each("trouble", SERVERS)
@pytest.mark.parametrize("pattern", ["clock/*", "clock/now"])
def test_an_mcp_server_that_cannot_be_used_fails_the_run_and_is_named(
    trouble: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("daiku.run.ports.replies.START_WAIT_SECONDS", 1.0)
    monkeypatch.setattr("daiku.run.ports.replies.REQUIRED_WAIT", 1.5)
    settings = {"mcp_servers": [{"mcp_server_name": "clock", **SERVERS[trouble]}]}
    done = agent("It is noon.", tools=[pattern]).run_sync("What time is it?", settings=settings)
    assert (done.status, done.text) == ("failed", "")
    assert done.error is not None
    assert "MCP server clock" in done.error.message


def test_a_server_that_no_agent_names_is_not_needed() -> None:
    settings = {"mcp_servers": [{"mcp_server_name": "clock", "command": ["nosuchprogram"]}]}
    assert agent("Hello.", tools=["files/list"]).run_sync("Hi", settings=settings).status == "completed"


@for_each("decision", {"true": True, "none": None, "word": "yes", "list": ["allow_once"]})
def test_an_approvals_function_that_returns_no_decision_is_told(decision: str) -> None:
    wrong = {"true": True, "none": None, "word": "yes", "list": ["allow_once"]}[decision]
    asked = agent({"tool": "buy", "args": {"item": "tea"}}, "I could not.", tools=[buy])
    with pytest.raises(ValueError, match="`approvals` returns one of allow_once"):
        asked.run_sync("Tea!", approvals=returning(wrong))


def test_a_refusal_because_nobody_was_there_is_in_the_result() -> None:
    asked = agent({"tool": "buy", "args": {"item": "tea"}}, "I bought it.", tools=[buy])
    assert asked.run_sync("Tea!").unattended
    again = agent({"tool": "buy", "args": {"item": "tea"}}, "I bought it.", tools=[buy])
    assert not again.run_sync("Tea!", approvals="all").unattended


def test_no_field_of_a_run_is_lost_in_its_result() -> None:
    assert {each.name for each in fields(Result)} == {*RunResult.model_fields, "output"}


async def test_every_field_of_a_run_is_in_its_result() -> None:
    async with Runner(store=None) as runner:
        done = await runner.run(agent("Hello."), "Hi")
    assert (done.last_seq > 0, done.plan, done.unattended, done.reasons) == (True, None, False, ())


def test_the_cause_of_an_internal_failure_is_kept() -> None:
    def broken(_: object) -> str:
        raise KeyError("boom")

    done = Agent("host", "You help.", model=FakeLLM(broken)).run_sync("Hi")
    assert done.error is not None
    assert (done.error.kind, done.error.hint, done.error.cause) == ("internal", "", "KeyError: 'boom'")


def test_a_stream_is_read_once() -> None:
    stream = agent("Hello.", "Again.").stream("Hi")
    assert [chunk.type for chunk in stream][-1] == "run_finished"
    with pytest.raises(RuntimeError, match="read already"):
        list(stream)
    assert stream.result.text == "Hello."


async def test_a_stream_is_read_once_also_by_a_coroutine() -> None:
    stream = agent("Hello.", "Again.").stream("Hi")
    assert [chunk.type async for chunk in stream][-1] == "run_finished"
    with pytest.raises(RuntimeError, match="read already"):
        _ = [chunk async for chunk in stream]


async def test_an_unknown_session_names_the_store(tmp_path: Any) -> None:
    async with Runner(store=tmp_path / "mine.db") as runner:
        with pytest.raises(ValueError, match=r"session_1.*mine\.db"):
            await runner.run(agent("Hello."), "Hi", session="session_1")
