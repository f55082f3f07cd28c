"""Runs of own agents outlive their process: a Runner that is given the same agent goes on with them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from daiku import Agent, Runner, tool
from daiku.domain.base import long_id
from daiku.domain.errors import UsageError
from daiku.domain.events import ApprovalAsked
from daiku.testing import FakeLLM
from daiku.texts.text import render
from daiku.tools.threads import LoopThread
from daiku.trace.journal import Journal
from tests.cases import for_each
from tests.conftest import ROOT


async def program(*args: str | Path) -> asyncio.subprocess.Process:
    path = os.pathsep.join([str(ROOT / "server"), str(ROOT)])
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.sdk.library_process", *map(str, args),
        env={**os.environ, "PYTHONPATH": path}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def until_built(file: Path) -> None:
    async with asyncio.timeout(60):
        while not (file.exists() and "built" in file.read_text()):
            await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_a_run_whose_process_was_killed_is_gone_on_with_by_another_one(tmp_path: Path) -> None:
    """X.22: what began and did not end is not done again, and the model is told so."""
    store, file = tmp_path / "runs.db", tmp_path / "work"
    first = await program("work", store, file)
    await until_built(file)
    first.send_signal(signal.SIGKILL)
    await first.wait()
    run, session = file.read_text().split()[:2]

    second = await program("resume", store, file)
    said, _ = await second.communicate()
    status, text = said.decode().split("\n", 1)
    assert status == f"completed {run} {session}"
    assert "interrupted" in text
    assert file.read_text().count("built") == 1


async def paused_run(store: Path) -> str:
    """A run of an own agent that waits for an approval, as its process left it."""

    def deploy() -> str:
        """Put it there."""
        return "deployed"

    agent = Agent("ops", "Deploy.", tools=[tool(effect="command")(deploy)])
    async with Runner(model=FakeLLM({"tool": "deploy", "args": {}}), store=store, approvals="ask") as runner:
        stream = runner.stream(agent, "Go.")
        async for chunk in stream:
            if isinstance(chunk.event, ApprovalAsked):
                runner.pause(chunk.run)
    return stream.result.run_id


async def test_a_session_of_an_unknown_agent_is_read_and_its_run_says_what_is_missing(tmp_path: Path) -> None:
    run = await paused_run(tmp_path / "runs.db")
    journal = Journal(tmp_path / "runs.db")
    session = journal.session_of_run(run)
    assert next(chunk.agent for chunk in journal.chunks(session)) == "ops"
    journal.close()

    async with Runner(model=FakeLLM("Done."), store=tmp_path / "runs.db") as runner:
        with pytest.raises(
            ValueError, match=r"agent 'ops', which is not known here.*resume\(run_id, agent=agent\)"
        ):
            await runner.resume(run)
        with pytest.raises(ValueError, match="agent 'ops'"):
            await runner.resume(run, agent=Agent("other", "x"))
        with pytest.raises(ValueError, match="no run 'run_0'"):
            await runner.resume("run_0")
        goes_on = await runner.resume(run, agent=Agent("ops", "Deploy."))
    assert goes_on.status == "completed"


async def test_the_id_of_a_session_resumes_its_last_run(tmp_path: Path) -> None:
    """R1.10."""
    run = await paused_run(tmp_path / "runs.db")
    journal = Journal(tmp_path / "runs.db")
    session = journal.session_of_run(run)
    journal.close()
    async with Runner(model=FakeLLM("Done."), store=tmp_path / "runs.db") as runner:
        result = await runner.resume(session, agent=Agent("ops", "Deploy."))
        assert (result.status, result.run_id, result.session_id) == ("completed", run, session)
        with pytest.raises(ValueError, match="no run 'ses_0'"):
            await runner.resume("ses_0")


async def test_a_runner_knows_the_agent_of_a_session_that_it_paused(tmp_path: Path) -> None:
    """R1.10."""
    bought, asked = list[str](), ""
    agent = Agent("shop", "Buy.", tools=[tool(effect="network")(buy(bought))])
    llm = FakeLLM({"tool": "buy", "args": {}}, "Done.")
    async with Runner(model=llm, store=tmp_path / "runs.db", approvals="ask") as runner:
        stream = runner.stream(agent, "Go.")
        async for chunk in stream:
            if isinstance(chunk.event, ApprovalAsked):
                asked = chunk.event.approval_id
                runner.pause(chunk.run)
        runner.approve(asked, "allow_once", run_id=stream.result.run_id)
        result = await runner.resume(stream.result.session_id)
    assert (result.status, result.run_id, bought) == ("completed", stream.result.run_id, ["it"])


async def test_a_conversation_with_an_unknown_agents_open_run_is_gone_on_with_by_another_agent(
    tmp_path: Path,
) -> None:
    """The open run is ended on record: for that its agent need not be there."""
    run = await paused_run(tmp_path / "runs.db")
    journal = Journal(tmp_path / "runs.db")
    session = journal.session_of_run(run)
    journal.close()
    async with Runner(model=FakeLLM("Hello."), store=tmp_path / "runs.db") as runner:
        result = await runner.run(Agent("new", "x"), "Hi.", session=session)
    assert (result.status, result.session_id) == ("completed", session)


async def test_a_store_is_a_path_or_its_url(tmp_path: Path) -> None:
    agent = Agent("a", "x")
    async with Runner(model=FakeLLM("one"), store=tmp_path / "a.db") as runner:
        first = await runner.run(agent, "Hi.")
    async with Runner(model=FakeLLM("two"), store=f"sqlite:///{tmp_path}/a.db") as runner:
        second = await runner.run(agent, "And?", session=first.session_id)
    assert second.session_id == first.session_id
    assert (tmp_path / "a.db").is_file()
    with pytest.raises(ValueError, match="`store` cannot be a mysql database"):
        Runner(store="mysql://localhost/daiku")
    with pytest.raises(ValueError, match="`store` is a folder"):
        Runner(store=tmp_path)


async def test_two_runners_on_one_store_do_not_run_in_one_session_at_once(tmp_path: Path) -> None:
    agent, go = Agent("a", "x"), asyncio.Event()

    async def slow(_: object) -> str:
        await go.wait()
        return "done"

    async with Runner(model=FakeLLM("one", slow), store=tmp_path / "a.db") as one:
        session = (await one.run(agent, "Hi.")).session_id
        under_way = asyncio.create_task(one.run(agent, "More.", session=session))
        await asyncio.sleep(0)
        async with Runner(model=FakeLLM("two"), store=tmp_path / "a.db") as other:
            while (result := await other.run(agent, "Hi.", session=session)).status == "completed":
                pytest.fail("the session was free")
        assert result.error is not None
        assert result.error.kind == "busy"
        go.set()
        assert (await under_way).text == "done"


def leave_at_the_question(store: Path, *, closes: bool) -> ApprovalAsked:
    """Read a stream until the run asks, leave it, and end the event loop."""

    async def program() -> ApprovalAsked:
        agent = Agent("shop", "Buy.", tools=[tool(effect="network")(buy([]))])
        runner = Runner(model=FakeLLM({"tool": "buy", "args": {}}), store=store, approvals="ask")
        asked = None
        async for chunk in runner.stream(agent, "Go."):
            if isinstance(chunk.event, ApprovalAsked):
                asked = chunk.event
                break
        if closes:
            await runner.aclose()
        assert asked is not None
        return asked

    return asyncio.run(program())


def buy(bought: list[str]) -> Callable[[], str]:
    def buy() -> str:
        """Buy it."""
        bought.append("it")
        return "bought"

    return buy


@for_each("closes", [True, False])
def test_an_approval_outlives_the_stream_that_was_left_at_it(tmp_path: Path, closes: bool) -> None:
    store, bought = tmp_path / "runs.db", list[str]()
    asked = leave_at_the_question(store, closes=closes)
    journal = Journal(store)
    session = journal.list_sessions()[0]
    run = journal.chunks(session.session_id)[0].run
    journal.close()
    assert session.status == "paused"

    agent = Agent("shop", "Buy.", tools=[tool(effect="network")(buy(bought))])
    with closing(Runner(model=FakeLLM("Done."), store=store, approvals="ask")) as runner:
        runner.approve(asked.approval_id, "allow_once", run_id=run)
        result = LoopThread().wait(runner.resume(run, agent=agent))
        assert (result.status, result.text, bought) == ("completed", "Done.", ["it"])
        with pytest.raises(ValueError, match=r"has ended \(completed\)"):
            runner.approve(asked.approval_id, "allow_once", run_id=run)


async def test_the_approval_of_a_cancelled_run_is_refused(tmp_path: Path) -> None:
    run = await paused_run(tmp_path / "runs.db")
    journal = Journal(tmp_path / "runs.db")
    chunks = journal.chunks(journal.session_of_run(run))
    asked = next(chunk.event for chunk in chunks if isinstance(chunk.event, ApprovalAsked))
    journal.close()
    async with Runner(store=tmp_path / "runs.db") as runner:
        runner.cancel(run)
        with pytest.raises(ValueError, match=r"has ended \(cancelled\)"):
            runner.approve(asked.approval_id, "allow_once", run_id=run)


async def test_a_run_that_was_killed_before_it_began_is_to_be_started_again(tmp_path: Path) -> None:
    """A23.5: its process wrote a session, and no event of the run."""
    journal = Journal(tmp_path / "runs.db")
    journal.new_session("Go.")
    run, recorded = long_id("run"), await paused_run(tmp_path / "other.db")
    for name, told in (
        (run, True),
        (recorded, True),
        ("run_0", False),
        (run.replace("run", "ses"), False),
        (f"{run}0", False),
    ):
        with pytest.raises(UsageError) as wrong:
            journal.session_of_run(name)
        message = wrong.value.failure.message
        assert repr(name) in message
        assert ("start the run again" in message, "もう一度実行" in render(message, "ja")) == (told, told)
    journal.close()
    async with Runner(model=FakeLLM("Done."), store=tmp_path / "runs.db") as runner:
        with pytest.raises(ValueError, match="There is no record of the run"):
            await runner.resume(run)
