"""Where a Runner works: in a folder, on several event loops, steered from another thread."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from daiku import Agent, Runner, tool
from daiku.domain.events import ApprovalAsked, InputAsked
from daiku.team.table import find_agent
from daiku.testing import FakeLLM, FakePerson
from daiku.trace.journal import Journal


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool": name, "args": args}


async def test_built_in_tools_work_in_the_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R1.7: an agent of one's own changes files by our tools; what they leave behind goes with the Runner."""
    (work := tmp_path / "work").mkdir()
    (scratch := tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    (work / "a.txt").write_text("one\n")
    agent = Agent("editor", "Edit.", tools=["files/*"])
    llm = FakeLLM(
        call("files__read", path="a.txt"), call("files__write", path="b.txt", content="two\n"), "Done."
    )
    async with Runner(model=llm, workspace=work, approvals="all") as runner:
        result = await runner.run(agent, "Copy it.")
    assert result.text == "Done."
    assert (work / "b.txt").read_text() == "two\n"
    assert "one" in llm.requests[1].messages[-1].text
    left = [path.name for path in scratch.iterdir()]
    assert [name for name in left if not name.startswith("daiku-tmp-")] == []  # that is the process's own


async def test_without_a_workspace_no_file_is_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = Agent("editor", "Edit.", tools=["files/*"])
    llm = FakeLLM(
        call("files__write", path="b.txt", content="x"), call("files__read", path="/etc/hostname"), "No."
    )
    result = await agent.run("Write.", model=llm, approvals="all")
    assert result.text == "No."
    assert [m.ok for m in llm.requests[2].messages if m.role == "tool"] == [False, False]
    assert list(tmp_path.iterdir()) == []


async def test_our_own_agents_are_run_like_any_other(tmp_path: Path) -> None:
    """R1.10: the coder is a value of the same class."""
    llm = FakeLLM(call("files__write", path="x.py", content="print(1)\n"), "Written.")
    async with Runner(model=llm, workspace=tmp_path, approvals="all") as runner:
        result = await runner.run(find_agent("coder"), "Write x.py.")
    assert result.status == "completed"
    assert (tmp_path / "x.py").read_text() == "print(1)\n"


def test_a_conversation_goes_on_from_loop_to_loop() -> None:
    agent, llm = Agent("a", "x"), FakeLLM("one", "two", "three")
    runner = Runner(model=llm)
    first = asyncio.run(runner.run(agent, "1"))
    second = asyncio.run(runner.run(agent, "2", session=first.session_id))
    third = runner.run_sync(agent, "3", session=second.session_id)
    assert [message.text for message in llm.requests[2].messages] == ["1", "one", "2", "two", "3"]
    assert third.text == "three"
    runner.close()
    runner.close()


def test_a_run_on_its_own_thread_is_steered_from_another_one() -> None:
    @tool(effect="command")
    def deploy() -> str:
        """Put it there."""
        return "deployed"

    agent = Agent("ops", "Deploy.", tools=[deploy, "user/ask"])
    llm = FakeLLM(call("user__ask", question="Where?"), call("deploy"), "Done.")
    runner = Runner(model=llm, approvals="ask")
    stream = runner.stream(agent, "Go.")
    for chunk in stream:
        if isinstance(chunk.event, InputAsked):
            runner.answer(chunk.event.input_id, "To A.")
        if isinstance(chunk.event, ApprovalAsked):
            runner.steer(chunk.run, "Be quick.")
            runner.approve(chunk.event.approval_id, "allow_once")
    assert stream.result.text == "Done."
    told = [message.text for message in llm.requests[2].messages]
    assert "To A." in told[2]
    assert "Be quick." in told
    with pytest.raises(ValueError, match="not under way"):
        runner.steer(stream.result.run_id, "Late.")
    with pytest.raises(ValueError, match="is no open question"):
        runner.approve("appr_0", "allow_once")
    with pytest.raises(ValueError, match="`decision` is one of"):
        runner.approve("appr_0", "yes")  # type: ignore[arg-type]
    runner.close()


async def test_runs_side_by_side_do_not_hear_of_one_another() -> None:
    agent = Agent("a", "x")

    async def echo(number: int, runner: Runner) -> None:
        async with runner.stream(
            agent.with_(model=FakeLLM(f"I am {number}.")), f"Who is {number}?"
        ) as stream:
            seen = [chunk async for chunk in stream]
        assert {chunk.session for chunk in seen} == {stream.result.session_id}
        assert [chunk.seq for chunk in seen] == list(range(1, len(seen) + 1))
        assert stream.result.text == f"I am {number}."

    async with Runner() as runner:
        await asyncio.gather(*(echo(number, runner) for number in range(50)))


async def test_a_fourth_hand_off_in_depth_ends_the_run() -> None:
    """R1.31: three are allowed; the fourth ends the run at the top."""
    agent = Agent("e", "x")
    for name in "dcba":
        agent = Agent(name, "x", handoffs=[agent])
    llm = FakeLLM(*(call("agent__handoff", agent=name, request="go") for name in "bcde"), "never")
    result = await agent.run("Go.", model=llm)
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.kind == "handoff_depth"
    assert len(llm.requests) == 4


async def test_an_approvals_function_that_fails_or_says_something_else_is_a_no() -> None:
    deployed: list[str] = []

    @tool(effect="command")
    def deploy() -> str:
        """Put it there."""
        deployed.append("it")
        return "There."

    async def odd(_: ApprovalAsked) -> Any:
        return "perhaps"

    agent = Agent("ops", "Deploy.", tools=[deploy])
    llm = FakeLLM(call("deploy"), "I could not.")
    with pytest.raises(ValueError, match="not 'perhaps'; the call was rejected"):
        await agent.run("Go.", model=llm, approvals=odd)
    llm = FakeLLM(call("deploy"), "I could not.")
    result = await agent.run("Go.", model=llm, approvals=FakePerson())
    assert result.text == "I could not."
    assert deployed == []


async def test_closing_amid_a_run_ends_it_on_record(tmp_path: Path) -> None:
    async def wait() -> str:
        """Wait."""
        await asyncio.Event().wait()
        return ""

    agent, before = Agent("a", "Wait.", tools=[wait]), own_threads()
    async with Runner(model=FakeLLM(call("wait")), store=tmp_path / "a.db") as runner:
        stream = runner.stream(agent, "Go.")
        async for chunk in stream:
            if chunk.type == "tool_call":
                break
    journal = Journal(tmp_path / "a.db")
    (session,) = journal.list_sessions()
    assert session.status == "cancelled"
    assert [chunk.type for chunk in journal.chunks(session.session_id)][-1] == "run_finished"
    journal.close()
    assert own_threads() == before


def own_threads() -> int:
    """Threads of Runners."""
    return sum(thread.name == "daiku" for thread in threading.enumerate())
