"""The stand-ins for tests of people's own agents: a model, a tool, a person."""

from __future__ import annotations

from typing import Any, cast

import pytest

from daiku.domain.errors import LLMRequestError
from daiku.domain.events import ApprovalAsked
from daiku.domain.messages import ModelRequest, Reply, TextDelta, UserMessage
from daiku.domain.tools import ToolCall, ToolResult
from daiku.run.services import Model
from daiku.testing import FakeLLM, FakePerson, FakeTool
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext
from tests.cases import for_each


async def ask(model: Model, words: str = "hello") -> tuple[list[str], Reply]:
    """The pieces of a model's text, and its whole reply."""
    pieces = [each async for each in model.stream(ModelRequest("", "", (UserMessage(text=words),)))]
    assert isinstance(pieces[-1], Reply)
    return [each.text for each in pieces if isinstance(each, TextDelta)], pieces[-1]


async def test_a_fake_model_gives_its_replies_in_turn_and_keeps_what_it_was_asked() -> None:
    """R1.87: a model for tests that needs no network; it streams, calls tools and fails as it is told."""
    model = FakeLLM(
        "Hello there.",
        {"tool": "weather", "args": {"city": "Kyoto"}},
        ["Both:", {"tool": "a"}, {"tool": "b", "args": {}}],
        TimeoutError("too slow"),
        lambda request: f"You said {request.messages[-1].text}.",
        {"tool": "weather", "args": "{city"},
    )
    assert (await ask(model))[0] == ["Hello ", "there."]
    reply = (await ask(model))[1]
    assert [(each.tool, each.args) for each in reply.message.calls] == [("weather", {"city": "Kyoto"})]
    assert reply.finish == "tool_calls"
    pieces, reply = await ask(model)
    assert (pieces, [each.tool for each in reply.message.calls]) == (["Both:"], ["a", "b"])
    with pytest.raises(TimeoutError, match="too slow"):
        await ask(model)
    assert (await ask(model, "yes"))[1].message.text == "You said yes."
    assert (await ask(model))[1].message.calls[0].malformed == "{city"
    assert [each.messages[-1].text for each in model.requests] == ["hello"] * 4 + ["yes", "hello"]


async def test_a_fake_model_counts_tokens_and_costs_nothing() -> None:
    model = FakeLLM("Hello there.")
    assert (model.name, model.context, model.tool_protocol) == ("fake/llm", 0, "native")
    reply = (await ask(model))[1]
    assert reply.usage.prompt_tokens > 0
    assert reply.usage.completion_tokens > 0
    assert reply.usage.cost == 0


async def test_one_request_too_many_is_an_error_that_says_so() -> None:
    model = FakeLLM("only")
    await ask(model)
    with pytest.raises(LLMRequestError) as refused:
        await ask(model)
    assert str(refused.value) == "FakeLLM received 2 requests but has only 1 replies."


@for_each(
    ("reply", "kind", "words"),
    [
        (3, TypeError, "reply 1 of FakeLLM must be a text"),
        (TimeoutError, TypeError, "reply 1 of FakeLLM must be a text"),
        ({"name": "weather"}, ValueError, "reply 1 of FakeLLM has the key 'name'"),
        ({"args": {}}, ValueError, "reply 1 of FakeLLM names no tool"),
        ({"tool": "a", "args": [1]}, TypeError, "args in reply 1 of FakeLLM must be a dict"),
        (["text", {"tool": ""}], ValueError, "reply 1 of FakeLLM names no tool"),
    ],
)
def test_a_reply_in_no_known_form_is_refused_at_once(
    reply: object, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        FakeLLM(cast(Any, reply))


async def test_a_function_that_gives_no_reply_is_named_when_it_is_its_turn() -> None:
    with pytest.raises(TypeError, match="reply 1 of FakeLLM must be a text"):
        await ask(FakeLLM(lambda _request: 3))


@pytest.mark.parametrize(
    ("result", "text", "ok"),
    [
        ("sunny", "sunny", True),
        ({"degrees": 20}, '{"degrees":20}', True),
        (lambda args: args["city"], "Kyoto", True),
        (ValueError("no such city"), "weather failed: ValueError: no such city", False),
    ],
)
async def test_a_fake_tool_takes_any_arguments_and_keeps_them(result: object, text: str, ok: bool) -> None:
    """R1.87: a tool for tests."""
    weather = FakeTool("weather", result)
    given = await ToolRegistry((weather,)).call(
        ToolCall(tool="weather", args={"city": "Kyoto"}), cast(ToolContext, None)
    )
    assert given == ToolResult(ok=ok, text=text, data=given.data)
    assert weather.calls == [{"city": "Kyoto"}]


async def test_a_fake_person_decides_in_turn_and_keeps_the_questions() -> None:
    person = FakePerson("allow_once", "reject_once")
    asked = ApprovalAsked(approval_id="a", kind="command", tool="t", args={}, preview="p", why="w")  # pyright: ignore[reportArgumentType]  # pydantic makes a Text of it
    assert [await person(asked), await person(asked)] == ["allow_once", "reject_once"]
    with pytest.raises(LookupError, match="asked 3 times and has 2 decisions"):
        await person(asked)
    assert person.asked == [asked] * 3
    with pytest.raises(ValueError, match="decision 'yes' of FakePerson must be one of allow_once"):
        FakePerson(cast(Any, "yes"))
