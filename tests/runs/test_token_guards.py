"""Token guards of runs: asked before each call of a model and a tool, corrected by what providers say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from daiku.app import App
from daiku.domain.events import Notice, ToolResponse
from daiku.guard.guardrails.tokens import TokenGuard
from daiku.run.recorded.replay import replay
from daiku.run.request import RunRequest
from daiku.run.runs import Runs
from daiku.team.coding.explorer import EXPLORER
from daiku.team.table import AGENTS
from tests.runs.playing import Watch, make_app, shell

MakeRuns = Callable[..., Runs]
USED = {"promptTokens": 900, "completionTokens": 100}


@pytest.fixture
async def play(tmp_path: Path) -> AsyncIterator[MakeRuns]:
    """Builds the runs over one project and home, with a token guard and a script for the model."""
    (tmp_path / "project").mkdir()
    apps: list[App] = []

    def make(guard: TokenGuard, *lines: dict[str, Any]) -> Runs:
        apps.append(make_app(tmp_path, *lines, command="allow"))
        runs = apps[-1].runs
        runs.services = replace(runs.services, guardrails=(guard,))
        return runs

    yield make
    for app in apps:
        await app.aclose()


async def test_a_model_is_not_asked_where_its_request_alone_is_too_much(play: MakeRuns) -> None:
    """R1.34: the system prompt, the tools and the messages count beforehand."""
    runs, watch = play(TokenGuard(max_tokens=100), {"text": "never"}), Watch()
    result = await runs.run(RunRequest("go"), watch)
    assert (result.status, result.error and result.error.kind) == ("limit", "limit")
    assert "usage" not in watch.types()
    assert watch.types()[-1] == "run_finished"


async def test_what_the_provider_says_counts_in_place_of_the_estimate(play: MakeRuns) -> None:
    """R1.34"""
    guard = TokenGuard(max_tokens=1_000_000)
    runs = play(guard, {"text": "Done.", "usage": USED})
    result = await runs.run(RunRequest("go"), Watch())
    assert await guard.used(result.session_id) == 1000


async def test_a_run_that_reaches_it_ends_limit_and_the_session_stays_there(play: MakeRuns) -> None:
    """R1.49, R1.97: warned of from 80 %, then the end; the next run of the session finds it used up."""
    guard = TokenGuard(max_tokens=51_000)
    big = {"promptTokens": 25_000, "completionTokens": 100}
    calls = ({"calls": [shell(f"echo {n}")], "usage": big} for n in range(9))
    runs, watch = play(guard, *calls), Watch()
    result = await runs.run(RunRequest("go"), watch)
    assert (result.status, result.error and result.error.kind) == ("limit", "limit")
    assert watch.types().count("usage") == 2
    assert any("token guard" in c.event.text for c in watch.chunks if isinstance(c.event, Notice))
    assert await guard.used(result.session_id) <= 51_000
    assert (await replay(runs.services.journal.chunks(result.session_id))).difference is None
    again = await runs.run(RunRequest("again", session=result.session_id), Watch())
    assert again.status == "limit"


async def test_a_tool_is_not_run_where_its_arguments_are_too_much(play: MakeRuns, tmp_path: Path) -> None:
    """R1.35: asked before each call of a tool."""
    guard = TokenGuard(max_tokens=30_000)
    touch = shell("touch made; true " + "word " * 20)
    used = {"promptTokens": 29_900, "completionTokens": 95}
    runs, watch = play(guard, {"calls": [touch], "usage": used}, {"text": "never"}), Watch()
    result = await runs.run(RunRequest("go"), watch)
    assert result.status == "limit"
    (answer,) = (c.event for c in watch.chunks if isinstance(c.event, ToolResponse))
    assert (answer.ok, answer.outcome) == (False, "not_run")
    assert not (tmp_path / "project/made").exists()
    assert (await replay(runs.services.journal.chunks(result.session_id))).difference is None


async def test_what_tools_are_given_and_answer_counts_until_the_next_request_holds_it(play: MakeRuns) -> None:
    """R1.34: tool input and output."""
    guard, seen = TokenGuard(max_tokens=1_000_000), list[int]()
    runs = play(guard, {"calls": [shell("seq 2000")], "usage": USED}, {"text": "Done.", "usage": USED})

    async def note(session: str) -> None:
        seen.append(await guard.used(session))

    plain = guard.add

    async def add(session: str, tokens: int) -> None:
        await plain(session, tokens)
        await note(session)

    guard.add = add
    result = await runs.run(RunRequest("go"), Watch())
    assert max(seen) > 1000 + 2000, "the printed numbers count as soon as they are there"
    assert await guard.used(result.session_id) == 2000, "and only once"


async def test_a_call_that_fails_is_given_back(play: MakeRuns) -> None:
    guard = TokenGuard(max_tokens=1_000_000)
    runs = play(guard, {"text": "", "error": {"kind": "auth", "message": "no", "times": 9}})
    result = await runs.run(RunRequest("go"), Watch())
    assert result.status == "failed"
    assert await guard.used(result.session_id) == 0


async def test_the_guard_of_an_agent_counts_what_its_nested_runs_use(
    play: MakeRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = {"tool": "agent/handoff", "args": {"agent": "explorer", "request": "look"}}
    small = TokenGuard(max_tokens=50)
    monkeypatch.setattr(
        "daiku.team.table.AGENTS", {**AGENTS, "explorer": replace(EXPLORER, guardrails=(small,))}
    )
    guard = TokenGuard(max_tokens=1_000_000)
    lines = (
        {"calls": [hand], "usage": USED, "when": "go"},
        {"text": "It could not.", "usage": USED, "when": "guard"},
    )
    runs = play(guard, *lines)
    result = await runs.run(RunRequest("go"), Watch())
    assert (result.status, result.text) == ("completed", "It could not."), (
        "only the explorer's own run has ended"
    )
    assert await guard.used(result.session_id) == 2000


async def test_a_resumed_run_counts_what_it_had_used_before(play: MakeRuns, tmp_path: Path) -> None:
    lines = ({"calls": [shell("sleep 0.3")], "usage": USED}, {"text": "Done.", "usage": USED})
    runs, watch = play(TokenGuard(max_tokens=1_000_000), *lines), Watch()
    task = asyncio.create_task(runs.run(RunRequest("go", approvals="all"), watch))
    called = await watch.until("tool_call")
    await asyncio.gather(task, runs.pause(called.run))
    fresh = TokenGuard(max_tokens=1_000_000)
    runs.services = replace(runs.services, guardrails=(fresh,))
    result = await runs.resume(called.run, watch, "all")
    assert result.status == "completed"
    assert await fresh.used(result.session_id) == 2000
