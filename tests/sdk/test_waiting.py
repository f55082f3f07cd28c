"""Code that waits for a run: within tools of another run, after what ends a thread, and after a fork."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import closing
from typing import Any

import pytest

from daiku import Agent, Result, Runner, tool
from daiku.testing import FakeLLM
from daiku.tools import threads
from daiku.tools.threads import LoopThread

PATIENCE = 20.0
"""Seconds after which a run that is waited for counts as one that never ends."""


def call(name: str) -> dict[str, Any]:
    return {"tool": name, "args": {}}


def waited(work: Callable[[], Result]) -> Result:
    """What `work` gives, on a thread of its own; fails where it never ends."""
    found: list[Result] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "it never ended"
    return found[0]


def test_a_tool_on_the_loop_may_run_another_agent_by_the_same_runner() -> None:
    """PROTOCOL 6: `run_sync` also inside a running loop, whoever's it is; and again inside that."""
    runner = Runner(model=FakeLLM(call("first"), call("second"), call("third"), "3", "2", "1", "0"))

    @tool
    async def first() -> str:
        return runner.run_sync(Agent("b", "Go on.", tools=[second]), "x").text

    @tool
    def second() -> str:
        return runner.run_sync(Agent("c", "Go on.", tools=[third]), "x").text

    @tool
    async def third() -> str:
        said = [chunk.text for chunk in runner.stream(Agent("d", "Go on."), "x")]
        return "".join(said)

    result = waited(lambda: runner.run_sync(Agent("a", "Go on.", tools=[first]), "x"))
    assert (result.status, result.text) == ("completed", "0")
    runner.close()


def test_what_ends_a_thread_does_not_leave_a_caller_waiting() -> None:
    @tool
    async def interrupted() -> str:
        raise KeyboardInterrupt

    llm = FakeLLM(call("interrupted"), "on")
    with closing(Runner(model=llm)) as runner:
        waited(lambda: runner.run_sync(Agent("a", "Go on.", tools=[interrupted]), "x"))
        again = waited(lambda: runner.run_sync(Agent("a", "Go on."), "x"))
    assert again.text == "on"


def test_a_tool_cannot_close_its_own_runner() -> None:
    runner = Runner(model=FakeLLM(call("closes"), "done"))
    said: list[str] = []

    @tool
    async def closes() -> str:
        try:
            runner.close()
        except RuntimeError as wrong:
            said.append(str(wrong))
        return "tried"

    assert waited(lambda: runner.run_sync(Agent("a", "Go on.", tools=[closes]), "x")).text == "done"
    assert said == ["A tool cannot close the Runner that it works for; close it when the run has ended."]
    runner.close()


# Windows cannot fork a process.
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_runner_of_the_process_before_a_fork_says_so() -> None:
    runner = Runner(model=FakeLLM("one", "two"))
    assert runner.run_sync(Agent("a", "Go on."), "x").text == "one"
    child = os.fork()
    if not child:
        try:
            runner.run_sync(Agent("a", "Go on."), "x")
        except RuntimeError as wrong:
            runner.close()
            os._exit(7 if "make one in each process" in str(wrong) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    runner.close()


async def test_a_hook_that_gives_no_text_is_named() -> None:
    poet = Agent("poet", "You write verses.", on_handoff_return=lambda _: 5)  # type: ignore[arg-type,return-value]
    llm = FakeLLM({"tool": "agent/handoff", "args": {"agent": "poet", "request": "A verse."}}, "la", "Sorry.")
    result = await Agent("chief", "You ask the poet.", handoffs=[poet], model=llm).run("Please.")
    assert result.text == "Sorry."
    assert "on_handoff_return of the agent 'poet' gave int, not text" in llm.requests[-1].messages[-1].text


async def test_without_a_folder_approvals_all_cover_tools_that_use_the_network() -> None:
    @tool(effect="network")
    def buy() -> str:
        return "bought"

    llm = FakeLLM(call("buy"), "ok")
    await Agent("shopper", "Buy.", tools=[buy], model=llm).run("Tea!", approvals="all")
    assert llm.requests[-1].messages[-1].text == "bought"


def test_a_loop_stands_still_before_what_it_waits_for_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the tools of that run are given the loop that waits for them, and nobody ever goes on."""
    asked: list[bool] = []
    submit = asyncio.run_coroutine_threadsafe

    def noted(work: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Future[Any]:
        here: LoopThread | None = getattr(threads._CURRENT, "thread", None)
        asked.append(here is None or here.is_blocked)
        return submit(work, loop)

    monkeypatch.setattr(threads.asyncio, "run_coroutine_threadsafe", noted)
    with closing(Runner(model=FakeLLM(call("first"), "2", "1"))) as runner:

        @tool
        async def first() -> str:
            return runner.run_sync(Agent("b", "Go on."), "x").text

        assert waited(lambda: runner.run_sync(Agent("a", "Go on.", tools=[first]), "x")).text == "1"
        assert asked == [True, True]
