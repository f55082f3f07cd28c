"""The Runner: a program runs agents of its own without a folder, settings or a database."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from daiku import Agent, Chunk, Runner, tool
from daiku.domain.events import ApprovalAsked, Delta, HandoffEnd, MessageEvent
from daiku.domain.messages import UserMessage
from daiku.testing import FakeLLM, FakePerson
from daiku.tools.tool import ToolContext


@tool
def weather(city: str) -> str:
    """Tell the weather.

    Args:
        city: where
    """
    return f"Sunny in {city}."


BOT = Agent("weather bot", "You tell the weather.", tools=[weather])


def call(name: str, **args: Any) -> dict[str, Any]:
    return {"tool": name, "args": args}


async def test_hello_needs_no_folder_no_settings_and_no_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """R1.10, X.30: the parts are values; nothing is written and nothing printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    result = await Agent("bot", "Be kind.", model=FakeLLM("Hello!")).run("Hi")
    assert (result.text, result.status, result.error) == ("Hello!", "completed", None)
    assert result.run_id.startswith("run_")
    assert result.session_id.startswith("ses_")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


async def test_an_agent_is_told_its_own_instructions_and_has_its_own_tools_alone() -> None:
    """R1.18, R1.19, R1.27: a function is a tool; its result goes back to the model."""
    llm = FakeLLM(call("weather", city="Rome"), "It is sunny.")
    async with Runner(model=llm) as runner:
        result = await runner.run(BOT, "Rome?")
    assert result.text == "It is sunny."
    assert llm.requests[0].system == "You tell the weather."
    assert [spec.name for spec in llm.requests[0].tools] == ["weather"]
    assert llm.requests[0].messages == (UserMessage(text="Rome?"),)
    assert llm.requests[1].messages[-1].text == "Sunny in Rome."


async def test_a_run_is_the_fold_of_its_stream() -> None:
    """R1.3, R1.23, R1.25, R1.26: every chunk is shown as it comes, and the result is what they come to."""
    async with Runner(model=FakeLLM("One two three.")) as runner:
        stream = runner.stream(BOT, "Count.")
        seen = [chunk async for chunk in stream]
    deltas = "".join(chunk.event.text for chunk in seen if isinstance(chunk.event, Delta))
    assert deltas == stream.result.text == "One two three."
    assert seen[0].type == "run_started"
    assert seen[-1].type == "run_finished"
    assert [chunk.seq for chunk in seen] == list(range(1, len(seen) + 1))
    assert {chunk.agent for chunk in seen} == {"weather bot"}


async def test_a_stream_that_is_left_early_cancels_its_run() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return ""

    agent = Agent("waiter", "Wait.", tools=[wait], model=FakeLLM(call("wait"), "done"))
    async with Runner() as runner:
        stream = runner.stream(agent, "Wait.")
        async for chunk in stream:
            if chunk.type == "tool_call":
                break
        with pytest.raises(RuntimeError, match="no result yet"):
            _ = stream.result
        await stream.aclose()
        await stream.aclose()
        if started.is_set():
            await asyncio.wait_for(cancelled.wait(), 5)
    assert stream._task is not None
    assert stream._task.done()


async def test_a_run_is_what_its_stream_comes_to() -> None:
    """R1.23: run is stream, read to its end."""
    result = await BOT.with_(model=FakeLLM(call("weather", city="Rome"), "It is sunny.")).run("Rome?")
    async with Runner(model=FakeLLM(call("weather", city="Rome"), "It is sunny.")) as runner:
        stream = runner.stream(BOT, "Rome?")
        said = [chunk.event.text async for chunk in stream if isinstance(chunk.event, MessageEvent)]
    assert result.text == stream.result.text == said[-1]
    assert result.status == stream.result.status == "completed"


async def test_what_stands_before_the_model_is_its_context_and_behind_it_its_type() -> None:
    """R1.24, R1.28: before the model its context, its memory and guardrails; behind it its guardrails and its type."""
    llm = FakeLLM(call("result__give", result="seven"), "7")
    agent = Agent("a", "Count.", output=int, model=llm)
    async with Runner() as runner:
        result = await runner.run(agent, "How many?", context=[{"kind": "text", "text": "Seven dwarfs."}])
    assert "Seven dwarfs." in llm.requests[0].messages[0].text
    assert (result.output, len(llm.requests)) == (7, 2)


async def test_what_is_no_context_is_refused() -> None:
    async with Runner(model=FakeLLM("x")) as runner:
        with pytest.raises(TypeError, match="`context` is a list of ContextItems"):
            await runner.run(BOT, "x", context="text")  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="`context`: kind: "):
            await runner.run(BOT, "x", context=[{"kind": "cake"}])


async def test_a_session_goes_on_with_what_was_said() -> None:
    """R1.10: the stores stay open from run to run."""
    llm = FakeLLM("I will.", "It is 7.")
    async with Runner(model=llm) as runner:
        first = await runner.run(BOT, "Keep 7.")
        second = await runner.run(BOT, "Which?", session=first.session_id)
    assert second.session_id == first.session_id
    assert [message.text for message in llm.requests[1].messages] == ["Keep 7.", "I will.", "Which?"]


def test_run_sync_works_without_a_loop_and_again() -> None:
    runner = Runner(model=FakeLLM("one", "two"))
    assert [runner.run_sync(BOT, "x").text for _ in range(2)] == ["one", "two"]
    runner.close()
    assert BOT.with_(model=FakeLLM("three")).run_sync("x").text == "three"


async def test_run_sync_works_inside_a_running_loop() -> None:
    assert BOT.with_(model=FakeLLM("three")).run_sync("x").text == "three"


async def test_an_agents_stream_closes_its_runner_at_its_end() -> None:
    async with BOT.with_(model=FakeLLM("a b")).stream("x") as stream:
        assert [chunk.type async for chunk in stream][-1] == "run_finished"
    assert stream.result.text == "a b"


async def test_a_program_is_asked_for_what_needs_approval() -> None:
    @tool(effect="command")
    def deploy(place: str) -> str:
        """Put it there."""
        return f"deployed to {place}"

    agent = Agent("ops", "Deploy.", tools=[deploy])
    person = FakePerson("allow_once", "reject_once")
    llm = FakeLLM(call("deploy", place="a"), call("deploy", place="b"), "Done.")
    async with Runner(model=llm, approvals=person) as runner:
        result = await runner.run(agent, "Go.")
    assert [asked.args["place"] for asked in person.asked] == ["a", "b"]
    assert [m.ok for m in llm.requests[2].messages if m.role == "tool"] == [True, False]
    assert result.status == "completed"


async def test_what_needs_approval_is_answered_while_a_stream_is_read() -> None:
    @tool(effect="command")
    def deploy() -> str:
        """Put it there."""
        return "deployed"

    agent = Agent("ops", "Deploy.", tools=[deploy], model=FakeLLM(call("deploy"), "Done."))
    async with Runner(approvals="ask") as runner:
        stream = runner.stream(agent, "Go.")
        async for chunk in stream:
            if isinstance(chunk.event, ApprovalAsked):
                runner.approve(chunk.event.approval_id, "allow_once")
    assert stream.result.text == "Done."


async def test_where_nobody_approves_what_needs_it_is_refused() -> None:
    @tool(effect="command")
    def deploy() -> str:
        """Put it there."""
        raise AssertionError

    agent = Agent("ops", "Deploy.", tools=[deploy], model=FakeLLM(call("deploy"), "I could not."))
    result = await agent.run("Go.")
    assert (result.text, result.status) == ("I could not.", "completed_unverified")
    assert [reason.kind for reason in result.reasons] == ["not_approved"]


async def test_a_run_that_nobody_watches_waits_for_nobody() -> None:
    """Neither an approval nor an answer can come: who would know that it was asked?"""

    @tool(effect="command")
    def deploy() -> str:
        """Put it there."""
        raise AssertionError

    agent = Agent("ops", "Deploy.", tools=[deploy, "user/ask"])
    llm = FakeLLM(call("deploy"), call("user__ask", question="Which?"), "I could not.")
    result = await agent.run("Go.", model=llm, approvals="ask")
    assert (result.text, result.status) == ("I could not.", "completed_unverified")
    assert [reason.kind for reason in result.reasons] == ["not_approved"]
    llm = FakeLLM(call("user__ask", question="Which?"), "I could not.")
    result = await agent.run("Go.", model=llm, approvals=FakePerson())
    assert "nobody" in llm.requests[1].messages[-1].text.lower()


async def test_tools_are_handed_what_the_agent_was_given_for_them() -> None:
    """R1.20, X.30: extra_cfg is stored whole and reaches the tools as it is."""
    database = object()
    seen: list[object] = []

    def look(context: ToolContext) -> str:
        """Look it up."""
        seen.append(context.extra_cfg["database"])
        return "found"

    extra = {"database": database}
    agent = Agent("a", "Look.", tools=[look], extra_cfg=extra, model=FakeLLM(call("look"), "ok"))
    assert agent.extra_cfg is extra
    await agent.run("Go.")
    assert seen == [database]


async def test_a_hand_off_reaches_the_named_agents_alone_and_is_streamed() -> None:
    """C1.1, R1.32, R1.33: its chunks carry its name, and what it answers goes through on_handoff_return."""
    poet = Agent("poet", "You write verses.\nShort ones.", on_handoff_return=str.upper)
    chief = Agent("chief", "You ask the poet.", handoffs=[poet])
    llm = FakeLLM(call("agent__handoff", agent="poet", request="A verse."), "la la", "Here it is.")
    async with Runner(model=llm) as runner:
        stream = runner.stream(chief, "Please.")
        seen = [chunk async for chunk in stream]
    assert stream.result.text == "Here it is."
    assert llm.requests[1].system == "You write verses.\nShort ones."
    assert "poet (You write verses.)" in llm.requests[0].tools[0].description
    inner = [chunk for chunk in seen if chunk.parent is not None]
    assert {chunk.agent for chunk in inner} == {"poet"}
    ended = next(chunk.event for chunk in seen if isinstance(chunk.event, HandoffEnd))
    assert ended.result == "LA LA"

    llm = FakeLLM(call("agent__handoff", agent="coder", request="Code."), "No.")
    await chief.with_(model=llm).run("Please.")
    assert "There is no agent 'coder'" in llm.requests[1].messages[-1].text


async def test_a_steered_run_reads_what_was_said_at_its_next_turn() -> None:
    @tool
    def step() -> str:
        """One step."""
        return "ok"

    llm = FakeLLM(call("step"), "done")
    async with Runner(model=llm) as runner:
        stream = runner.stream(Agent("a", "Work.", tools=[step]), "Go.")
        async for chunk in stream:
            if chunk.type == "tool_call":
                runner.steer(chunk.run, "Hurry.")
    assert "Hurry." in [message.text for message in llm.requests[1].messages]


async def test_a_paused_run_goes_on_where_it_was() -> None:
    made: list[str] = []

    @tool(effect="command")
    def build() -> str:
        """Build."""
        made.append("x")
        return "built"

    agent = Agent("a", "Work.", tools=[build])
    llm = FakeLLM(call("build"), "done")
    async with Runner(model=llm, approvals="ask") as runner:
        stream = runner.stream(agent, "Go.")
        asked = ""
        async for chunk in stream:
            if isinstance(chunk.event, ApprovalAsked):
                asked = chunk.event.approval_id
                runner.pause(chunk.run)
        assert stream.result.status == "paused"
        runner.approve(asked, "allow_once")
        result = await runner.resume(stream.result.run_id)
    assert (result.status, result.text, made) == ("completed", "done", ["x"])


async def test_a_run_is_cancelled_by_its_id() -> None:
    async def wait() -> str:
        await asyncio.Event().wait()
        return ""

    agent = Agent("a", "Wait.", tools=[wait], model=FakeLLM(call("wait")))
    async with Runner() as runner:
        stream = runner.stream(agent, "Go.")
        async for chunk in stream:
            if chunk.type == "tool_call":
                runner.cancel(chunk.run)
    assert stream.result.status == "cancelled"


async def test_runs_of_an_agent_send_the_very_same_tools() -> None:
    """A provider that sees them again has them encoded already."""
    model = FakeLLM("one", "two")
    async with Runner(model=model) as runner:
        await runner.run(BOT, "First?")
        await runner.run(BOT, "Second?")
    assert model.requests[0].tools
    assert model.requests[0].tools is model.requests[1].tools


async def test_a_run_is_cancelled_by_whoever_is_shown_its_first_chunk() -> None:
    """Its task has not begun then; it ends on record all the same, and no model is asked."""
    agent = Agent("a", "Wait.", model=FakeLLM("never said"))
    async with Runner() as runner:
        stream = runner.stream(agent, "Go.")
        seen = list[str]()
        async for chunk in stream:
            if not seen:
                runner.cancel(chunk.run)
            seen.append(chunk.type)
    assert stream.result.status == "cancelled"
    assert seen == ["run_started", "agent_start", "agent_end", "run_finished"]


async def test_a_listener_that_raises_does_not_end_the_run() -> None:
    from daiku.domain.errors import DaikuError as _  # noqa: F401

    async with Runner(model=FakeLLM("ok")) as runner:
        app = runner._apps.app(BOT)

        def listen(_: Chunk) -> None:
            raise ValueError("no")

        from daiku.run.request import RunRequest

        result = await app.runs.run(RunRequest(text="x", agent=BOT), listen)
    assert (result.status, result.text) == ("completed", "ok")


async def test_a_closed_runner_says_so() -> None:
    runner = Runner(model=FakeLLM("ok"))
    await runner.aclose()
    await runner.aclose()
    with pytest.raises(RuntimeError, match="This Runner is closed"):
        await runner.run(BOT, "x")
    with pytest.raises(RuntimeError, match="This Runner is closed"):
        runner.run_sync(BOT, "x")


async def test_no_variable_is_read_but_keys_and_addresses_where_a_model_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: set[str] = set()
    real = dict(os.environ)

    class Watched(dict[str, str]):
        def __getitem__(self, name: str) -> str:
            read.add(name)
            return super().__getitem__(name)

        def get(self, name: str, default: Any = None) -> Any:
            read.add(name)
            return super().get(name, default)

        def __contains__(self, name: object) -> bool:
            read.add(str(name))
            return super().__contains__(name)

    monkeypatch.setattr(os, "environ", Watched(real))
    await BOT.with_(model=FakeLLM("ok")).run("x")
    assert not {name for name in read if name.endswith(("_KEY", "_URL", "_HOST", "_ENDPOINT"))}
    assert not {name for name in read if name.startswith("DAIKU")}


async def test_a_run_that_cannot_begin_is_a_failed_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    result = await BOT.run("x", model="openai/gpt-5.2")
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.kind == "auth"


async def test_two_agents_of_one_name_have_each_their_own_tools() -> None:
    def one() -> str:
        """One."""
        return "1"

    def two() -> str:
        """Two."""
        return "2"

    two.__name__ = "one"
    first, second = FakeLLM(call("one"), "a"), FakeLLM(call("one"), "b")
    async with Runner() as runner:
        runs = (
            runner.run(Agent("same", "x", tools=[fn], model=llm), "go")
            for fn, llm in ((one, first), (two, second))
        )
        await asyncio.gather(*runs)
    assert [llm.requests[1].messages[-1].text for llm in (first, second)] == ["1", "2"]


async def test_a_model_may_be_anything_that_answers() -> None:
    """R1.2: the model is exchangeable; `with_` exchanges it for one run (R1.22)."""
    plain = Agent("a", "x", model=FakeLLM("first"))
    other = plain.with_(model=FakeLLM("second"))
    assert [(await agent.run("x")).text for agent in (plain, other)] == ["first", "second"]
    assert (plain.name, plain.instructions) == (other.name, other.instructions)
