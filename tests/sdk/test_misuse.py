"""What people do wrong with the library: each is one sentence that names the argument, and how to mend it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from daiku import Agent, ApprovalAsked, Guardrail, Result, Runner, tool
from daiku.store import sqlite
from daiku.testing import FakeLLM, FakePerson, FakeTool
from tests.cases import for_each

ANY: Any = None
"""Something of a wrong type: the type checker is not asked."""


def agent(*replies: Any, **more: Any) -> Agent:
    return Agent("host", "You greet.", model=FakeLLM(*replies), **more)


def no_hint(city):
    return city


def good(city: str) -> str:
    return city


class NotChecked:
    """A class that pydantic knows nothing of."""


def is_a_sentence(said: str) -> bool:
    """One line that a person reads: not a stack, not a dump."""
    return "\n" not in said and len(said) < 400 and "object at 0x" not in said


# -- arguments: TypeError or ValueError, at once ------------------------------------------------


@for_each(
    ("make", "words"),
    [
        (lambda: Agent("", "You greet."), "`name` is empty"),
        (lambda: Agent("host ", "You greet."), "`name`"),
        (lambda: Agent("two\nlines", "You greet."), "`name`"),
        (lambda: Agent(ANY, "You greet."), "`name` is a text, not None"),
        (lambda: Agent("host", " "), "`instructions` is empty"),
        (lambda: Agent("host", ANY), "`instructions` is a text"),
        (lambda: agent(tools=[no_hint]), "parameter 'city' of the tool 'no_hint' has no type hint"),
        (lambda: agent(tools=[good, FakeTool("good")]), "tools has two tools named 'good'"),
        (lambda: agent(tools=good), "tools must be a list or tuple of tools"),
        (lambda: agent(tools="files/*"), "tools must be a list or tuple of tools"),
        (lambda: agent(tools=[3]), "tools[0] must be a function, a Tool or the name"),
        (lambda: tool(timeout=-1)(good), "timeout of the tool 'good'"),
        (lambda: tool(effect="writes")(good), "effect of the tool 'good' must be one of none"),  # type: ignore[call-overload]
        (lambda: Agent("host", "You greet.", model=ANY), "`model` is a name such as"),
        (lambda: Agent("host", "You greet.", model=FakeLLM), "`model` is a name such as"),  # type: ignore[arg-type]
        (lambda: agent(output=NotChecked), "`output`"),
        (lambda: agent(output=3), "`output`"),
        (lambda: agent(handoffs=["poet"]), "`handoffs` takes Agents, not a str"),
        (lambda: agent(handoffs=agent()), "`handoffs` is a list of Agents"),
        (lambda: agent(guardrails=["no"]), "`guardrails` takes Guardrails"),
        (lambda: agent(guardrails=Guardrail()), "`guardrails` is a list of Guardrails"),
        (lambda: Guardrail(regex_blocks=["("]), "regex_blocks"),
        (lambda: Guardrail(custom_funcs=["f"]), "custom_funcs"),  # type: ignore[list-item]
        (lambda: agent(memory="file.db"), "`memory` is a Memory"),
        (lambda: agent(extra_cfg=["db"]), "`extra_cfg` is a mapping"),
        (lambda: agent(output=lambda: 1), "`output` is a type that pydantic can check, not a function"),
        (lambda: agent(on_handoff_return="x"), "`on_handoff_return` is a plain function"),
        (lambda: agent().with_(name="other"), "`name` of an agent never changes"),  # type: ignore[call-arg]
        (lambda: Runner(approvals="yes"), "`approvals` is one of"),  # type: ignore[arg-type]
        (lambda: Runner(limits={"max_round": 3}), "`limits`: max_round"),
        (lambda: Runner(limits=3), "`limits` is a mapping"),  # type: ignore[arg-type]
        (lambda: Runner(store="mongo://host/db"), "`store` cannot be a mongo database"),
        (lambda: Runner(store=3), "`store` is a path"),  # type: ignore[arg-type]
        (lambda: Runner(workspace="/no/such/folder"), "`workspace` is no folder: /no/such/folder"),
        (lambda: Runner(settings=["llm"]), "`settings` is a mapping"),  # type: ignore[arg-type]
        (lambda: Runner(settings={"lmm": {"model": "x"}}).run_sync(agent("x"), "hi"), "settings"),
        (lambda: Runner().run_sync("host", "hi"), "`agent` is an Agent, not str"),  # type: ignore[arg-type]
        (lambda: Runner().run_sync(agent("x"), " "), "`text` is empty"),
        (lambda: Runner().run_sync(agent("x"), ANY), "`text` is a text"),
        (lambda: Runner().run_sync(agent("x"), "hi", session="ses_none"), "`session`"),
        (lambda: Runner().run_sync(agent("x"), "hi", context="a.py"), "`context` is a list"),  # type: ignore[arg-type]
        (lambda: Runner().approve("appr_none", "allow_once"), "`approval_id`"),
        (lambda: Runner().approve("appr_none", "yes"), "`decision` is one of"),  # type: ignore[arg-type]
        (lambda: Runner().cancel("run_none"), "run_none"),
        (lambda: FakeLLM(3), "reply 1 of FakeLLM"),  # type: ignore[arg-type]
        (lambda: FakePerson("yes"), "decision 'yes' of FakePerson"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument_is_named_in_one_sentence(make: Callable[[], object], words: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        make()
    said = str(refused.value)
    assert words in said
    assert is_a_sentence(said), said


# -- what only a run can tell: a Result, never a stack -------------------------------------------


def ends(made: Agent, **options: Any) -> Result:
    return made.run_sync("Kyoto", **options)


def test_a_model_that_there_is_not_is_a_failed_result_that_names_it() -> None:
    """X.22: typed errors inside, a failed result at the boundary; whoever streams has it as a chunk too."""
    result = Agent("host", "You greet.", model="nobody/gpt").run_sync("hi")
    assert (result.status, result.text) == ("failed", "")
    assert result.error is not None
    assert "nobody" in result.error.message + result.error.hint


@for_each(
    ("give", "words"),
    [
        (lambda: b"\x89PNG", "returned bytes"),
        (lambda: "x" * 10_000_000, "returned 10,000,000 characters"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: NotChecked(), "cannot be written as JSON"),  # noqa: PLW0108  # what it gives is the case
    ],
)
def test_a_tool_that_goes_wrong_fails_its_call_and_the_run_goes_on(
    give: Callable[[], object], words: str
) -> None:
    """X.22"""

    @tool
    def look(city: str) -> object:
        return give()

    model = FakeLLM({"tool": "look", "args": {"city": "Kyoto"}}, "I cannot.")
    result = Agent("guide", "You look.", tools=[look], model=model).run_sync("Kyoto")
    assert (result.status, result.text) == ("completed", "I cannot.")
    told = model.requests[-1].messages[-1].text
    assert words in told
    assert is_a_sentence(told), told


def test_a_model_that_fails_is_a_chunk_of_the_stream_and_a_failed_result() -> None:
    """X.22: what goes wrong within a run is an error chunk, not an exception of whoever reads the stream."""
    stream = agent(ValueError("no such luck")).stream("Kyoto")
    kinds = [chunk.type for chunk in stream]
    assert "error" in kinds
    assert (stream.result.status, stream.result.error is not None) == ("failed", True)


def test_one_of_several_calls_that_fails_leaves_the_others_their_answers() -> None:
    """C1.14: side by side, each call has an answer of its own; a failing one cancels none."""
    met = threading.Barrier(3, timeout=10)

    @tool(parallel=True)
    def look(city: str) -> str:
        """Look at a city."""
        met.wait()
        if city == "Atlantis":
            raise LookupError("it sank")
        return f"{city} is there"

    calls = [{"tool": "look", "args": {"city": city}} for city in ("Kyoto", "Atlantis", "Rome")]
    model = FakeLLM(calls, "Two of three.")
    result = Agent("guide", "You look.", tools=[look], model=model).run_sync("Look at them.")
    assert result.text == "Two of three."
    told = [message.text for message in model.requests[-1].messages[-3:]]
    assert (told[0], told[2]) == ("Kyoto is there", "Rome is there")
    assert "LookupError: it sank" in told[1]


def test_a_tool_that_never_ends_fails_its_call_when_its_time_is_over() -> None:
    never = threading.Event()

    @tool(timeout=0.1)
    def wait() -> str:
        never.wait()
        return ""

    model = FakeLLM({"tool": "wait"}, "It did not end.")
    assert Agent("guide", "You wait.", tools=[wait], model=model).run_sync("go").text == "It did not end."
    assert "did not end within 0.1 s" in model.requests[-1].messages[-1].text
    never.set()


@for_each(
    ("call", "words"),
    [
        ({"tool": "lok", "args": {}}, "There is no tool 'lok'. The nearest are look."),
        ({"tool": "look", "args": {"town": "Kyoto"}}, "city is missing"),
        ({"tool": "look", "args": "Kyoto"}, "not a JSON object"),
    ],
)
def test_a_wrong_call_of_the_model_is_told_to_it(call: Any, words: str) -> None:
    model = FakeLLM(call, "Sorry.")
    made = Agent("guide", "You look.", tools=[FakeTool("other"), tool(name="look")(good)], model=model)
    assert made.run_sync("Kyoto").status == "completed"
    assert words in model.requests[-1].messages[-1].text


def test_a_hand_off_to_an_agent_that_is_not_named_is_told_to_the_model() -> None:
    model = FakeLLM({"tool": "agent/handoff", "args": {"agent": "cook", "request": "soup"}}, "Nobody cooks.")
    poet = Agent("poet", "You write.", model=FakeLLM())
    result = Agent("host", "You ask.", handoffs=[poet], model=model).run_sync("soup")
    assert (result.status, result.text) == ("completed", "Nobody cooks.")
    assert "cook" in model.requests[-1].messages[-1].text


def test_agents_that_hand_over_in_a_circle_end_at_the_fourth() -> None:
    """R1.85: hand-offs in a circle abort the top run, whichever agents they are."""

    def to(name: str) -> dict[str, Any]:
        return {"tool": "agent/handoff", "args": {"agent": name, "request": "you do it"}}

    asked = FakeLLM(*[to("first"), to("second")] * 20)
    first = Agent("first", "You pass it on.", model=asked)
    second = Agent("second", "You pass it on.", model=asked, handoffs=[first])
    object.__setattr__(first, "handoffs", (second,))  # nothing else makes a circle: agents do not change
    result = second.run_sync("go")
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.kind == "handoff_depth"
    assert len(asked.requests) == 4


async def test_a_closed_runner_says_that_it_is() -> None:
    runner = Runner()
    await runner.aclose()
    with pytest.raises(RuntimeError, match="This Runner is closed; make another one"):
        await runner.run(agent("x"), "hi")
    with pytest.raises(RuntimeError, match="closed"):
        runner.stream(agent("x"), "hi")


async def test_a_stream_that_is_read_by_half_has_no_result_and_says_so() -> None:
    async with Runner() as runner:
        stream = runner.stream(agent("one two three"), "hi")
        await anext(stream)
        with pytest.raises(RuntimeError, match="no result yet: read it to its end"):
            _ = stream.result
        await stream.aclose()


async def test_run_sync_within_a_loop_waits_and_does_not_fail() -> None:
    assert agent("Hello.").run_sync("hi").text == "Hello."


def test_a_full_disk_is_a_failed_result_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner, host = Runner(store=tmp_path / "guests.db"), agent("Hello.", "Hello again.")
    assert runner.run_sync(host, "hi").status == "completed"

    def full(*_: object) -> None:
        raise sqlite.DatabaseFault("full")

    monkeypatch.setattr(sqlite.SqliteDatabase, "write_all", full)
    monkeypatch.setattr(sqlite.SqliteDatabase, "write", full)
    result = runner.run_sync(host, "hi")
    monkeypatch.undo()
    runner.close()
    assert result.status == "failed"
    assert result.error is not None
    assert "disk is full" in result.error.message
    assert is_a_sentence(result.error.message)


def test_a_session_of_another_agent_goes_on_with_the_one_that_is_asked() -> None:
    runner = Runner()
    poet, host = Agent("poet", "You write.", model=FakeLLM("Rain.")), agent("Hello.")
    first = runner.run_sync(poet, "rain")
    assert runner.run_sync(host, "hi", session=first.session_id).text == "Hello."
    runner.close()


def test_approvals_that_raise_are_a_no() -> None:
    async def decide(asked: ApprovalAsked) -> Any:
        raise RuntimeError(asked.tool)

    @tool(effect="network")
    def buy(item: str) -> str:
        return f"Bought {item}."

    model = FakeLLM({"tool": "buy", "args": {"item": "tea"}}, "Not bought.")
    result = Agent("shopper", "You buy.", tools=[buy], model=model).run_sync("tea", approvals=decide)
    assert (result.status, result.text) == ("completed", "Not bought.")
    assert "Bought" not in model.requests[-1].messages[-1].text


@for_each("decision", ["yes", None, 3, True])
def test_approvals_that_return_nonsense_are_refused_and_told(decision: Any) -> None:
    async def decide(_: ApprovalAsked) -> Any:
        return decision

    @tool(effect="network")
    def buy(item: str) -> str:
        return f"Bought {item}."

    model = FakeLLM({"tool": "buy", "args": {"item": "tea"}}, "Not bought.")
    with pytest.raises(ValueError, match="`approvals` returns one of"):
        Agent("shopper", "You buy.", tools=[buy], model=model).run_sync("tea", approvals=decide)
    assert "Bought" not in model.requests[-1].messages[-1].text


def test_an_answer_that_is_never_of_the_type_is_a_failed_result() -> None:
    result = agent(*["not JSON"] * 12, output=list[int]).run_sync("numbers")
    assert (result.status, result.output) == ("failed", None)
    assert result.error is not None
    assert is_a_sentence(result.error.message), result.error.message


def test_one_request_too_many_of_a_fake_model_is_a_failed_result() -> None:
    result = agent().run_sync("hi")
    assert result.error is not None
    assert result.error.message == "FakeLLM received 1 requests but has only 0 replies."


async def test_a_guardrail_function_that_fails_blocks_and_says_which() -> None:
    def broken(data: object) -> None:
        raise RuntimeError("out of order")

    result = await agent("Hello.", guardrails=[Guardrail(custom_funcs=[broken])]).run("hi")
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.kind == "guardrail"
    assert "broken" in result.error.message


async def test_many_runs_at_once_of_one_runner_are_kept_apart() -> None:
    async with Runner() as runner:
        made = [agent(f"I am {number}.") for number in range(8)]
        results = await asyncio.gather(*(runner.run(each, "who?") for each in made))
    assert [each.text for each in results] == [f"I am {number}." for number in range(8)]
