"""Refusals that name their cure are cured once and remembered; one bad part of a history never ends a session."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import LLMRequestError
from daiku.domain.messages import AssistantMessage, Image, Message, ModelEvent, Restarted, ToolMessage
from daiku.domain.tools import ToolCall
from daiku.models.history.parts import LONG_RESULT, NO_IMAGE
from daiku.models.model import Models
from daiku.models.table import LLMSettings
from daiku.texts.text import Text
from tests.llm.server import Answer, Asked, ModelServer, document, events
from tests.llm.talk import READ, closing, request, text_of, user

Judge = Callable[[Asked], Answer | None]


class PickyServer(ModelServer):
    """A service that refuses what `judge` refuses, and says hello to everything else."""

    judge: Judge = staticmethod(lambda _: None)
    reply: tuple[JsonObject, ...] = ({"content": "Hello"},)

    def _choose(self, asked: Asked) -> Answer:
        refusal = self.judge(asked)
        deltas = [{"choices": [{"index": 0, "delta": delta}]} for delta in self.reply]
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        return refusal or events(*deltas, end, done=True)

    @property
    def bodies(self) -> list[Any]:
        return [asked.json for asked in self.asked]


@pytest.fixture
async def server() -> AsyncIterator[PickyServer]:
    server = PickyServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def models(server: PickyServer) -> AsyncIterator[Models]:
    compatible = ProviderSettings(base_url=f"{server.url}/v1")
    made = Models(LLMSettings(model="compatible/deepseek-v4-pro", compatible=compatible))
    yield made
    await made.aclose()


def refuse(status: int, message: str, **fields: Any) -> Answer:
    return document({"error": {"message": message, **fields}}, status)


async def ask(models: Models, *messages: Message, **more: Any) -> list[ModelEvent]:
    adapter = models.resolve()
    return [event async for event in adapter.stream(request(*messages, **more))]


def notices(heard: list[ModelEvent]) -> list[str]:
    return [event.reason.id for event in heard if isinstance(event, Restarted)]


# --- provider data ----------------------------------------------------------------------------------


def lacks_reasoning(asked: Asked) -> Answer | None:
    """DeepSeek V4 and Kimi: every reply in the history must have its thinking."""
    replies = [m for m in asked.json["messages"] if m["role"] == "assistant"]
    if all("reasoning_content" in reply for reply in replies):
        return None
    return refuse(400, "The `reasoning_content` in the thinking mode must be passed back to the API.")


async def test_thinking_goes_back_with_every_reply_of_the_same_family(
    server: PickyServer, models: Models
) -> None:
    server.judge = lacks_reasoning
    server.reply = ({"reasoning_content": "Hm. "}, {"reasoning_content": "Yes."}, {"content": "Hello"})
    first = closing(await ask(models)).message
    heard = await ask(models, user(), first, user("And?"))
    assert notices(heard) == []
    assert server.bodies[-1]["messages"][1]["reasoning_content"] == "Hm. Yes."


async def test_a_service_that_wants_thinking_gets_it_empty_for_replies_of_others(
    server: PickyServer, models: Models
) -> None:
    server.judge = lacks_reasoning
    other = AssistantMessage(
        text=Text("Hi"),
        thinking="secret of another maker",
        opaque={"openai-chat": {"author": "api.example.com/other", "thinking_field": "reasoning"}},
    )
    for told in (["llm.cure.field"], []):  # cured once, then remembered
        heard = await ask(
            models, user(), other, user("And?"), AssistantMessage(text=Text("Own")), user("So?")
        )
        assert notices(heard) == told
    assert [m.get("reasoning_content") for m in server.bodies[-1]["messages"]] == [None, "", None, "", None]
    assert "secret" not in json.dumps(server.bodies)


async def test_a_service_that_refuses_thinking_gets_none(server: PickyServer, models: Models) -> None:
    """DeepSeek R1, Groq: the field is refused in the history."""

    def judge(asked: Asked) -> Answer | None:
        if any("reasoning_content" in m for m in asked.json["messages"]):
            return refuse(400, "property 'messages.1.reasoning_content' is unsupported")
        return None

    server.judge = judge
    server.reply = ({"reasoning_content": "Hm."}, {"content": "Hello"})
    first = closing(await ask(models)).message
    assert text_of(await ask(models, user(), first, user("And?"))) == "Hello"
    asked = len(server.asked)
    assert notices(await ask(models, user(), first, user("And?"))) == []
    assert len(server.asked) == asked + 1


KEPT: dict[str, tuple[JsonObject, str]] = {
    "openrouter": (
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "e1", "index": 0}]},
        "reasoning_details",
    ),
    "gemini behind the chat protocol": (
        {"extra_content": {"google": {"thought_signature": "s1"}}},
        "extra_content",
    ),
    "litellm": (
        {"thinking_blocks": [{"type": "thinking", "thinking": "x", "signature": "s"}]},
        "thinking_blocks",
    ),
    "copilot": ({"reasoning_opaque": "o1"}, "reasoning_opaque"),
    "unheard of": ({"provider_specific_fields": {"a": [1, {"b": "c"}]}}, "provider_specific_fields"),
}


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("called", [False, True])
async def test_fields_of_the_provider_go_back_as_they_came(
    server: PickyServer, models: Models, name: str, called: bool
) -> None:
    extra, field = KEPT[name]
    call: JsonObject = {"index": 0, "id": "c1", "function": {"name": "files__read", "arguments": "{}"}}
    server.reply = (extra, {"tool_calls": [{**call, **extra}]} if called else {"content": "Hello"})
    first = closing(await ask(models, tools=(READ,))).message
    result = ToolMessage(call_id="c1", tool="files/read", ok=True, text="x")
    for model in ("deepseek-v4-pro", "deepseek-v4-flash", "kimi-k2"):
        adapter = models.resolve(f"compatible/{model}")
        messages = (user(), first, *((result,) if called else (user("And?"),)))
        _ = [event async for event in adapter.stream(request(*messages, tools=(READ,)))]
        sent = server.bodies[-1]["messages"][1]
        own = model.startswith("deepseek")
        assert sent.get(field) == (extra[field] if own else None)
        if called:
            assert sent["tool_calls"][0].get(field) == (extra[field] if own else None)


async def test_thinking_in_parts_goes_back_in_parts(server: PickyServer, models: Models) -> None:
    """Mistral's Magistral."""
    server.reply = (
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]},
        {"content": "Hello"},
    )
    first = closing(await ask(models)).message
    await ask(models, user(), first, user("And?"))
    assert server.bodies[-1]["messages"][1]["content"] == [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Hello"},
    ]


# --- a part of the history --------------------------------------------------------------------------

HUGE = Image(media_type="image/png", data="aHVnZQ==")
FINE = Image(media_type="image/png", data="ZmluZQ==")
IMAGE_REFUSALS = [
    (
        400,
        "messages.2.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    ),
    (400, "messages.0.content.0: At least one of the image dimensions exceed max allowed size: 8000 pixels"),
    (400, "Invalid request"),
    (413, "Request Entity Too Large"),
    (422, "Failed to deserialize the JSON body"),
    (400, "This model does not support image_url content"),
]


def with_picture(picture: Image) -> tuple[Message, ...]:
    call = ToolCall(id="c1", tool="files/read", args={"path": "a.png"})
    shown = ToolMessage(call_id="c1", tool="files/read", ok=True, text="a.png", images=(picture,))
    return (user("Look"), AssistantMessage(calls=(call,)), shown)


@pytest.mark.parametrize(("status", "message"), IMAGE_REFUSALS)
async def test_a_picture_that_is_refused_is_left_out_and_never_sent_again(
    server: PickyServer, models: Models, status: int, message: str
) -> None:
    server.judge = lambda asked: refuse(status, message) if HUGE.data.encode() in asked.body else None
    heard = await ask(models, *with_picture(HUGE), session="s1")
    assert (text_of(heard), notices(heard)) == ("Hello", ["llm.cure.images"])
    assert NO_IMAGE in json.dumps(server.bodies[-1])
    later = await ask(models, *with_picture(HUGE), user("Go on", FINE), session="s1")
    assert notices(later) == []
    assert FINE.data in json.dumps(server.bodies[-1])


async def test_a_result_that_is_refused_is_shortened(server: PickyServer, models: Models) -> None:
    whole = "x" * (LONG_RESULT + 1)
    server.judge = lambda asked: (
        refuse(400, "Invalid 'messages[2].content'", code="invalid_value")
        if whole.encode() in asked.body
        else None
    )
    call = ToolCall(id="c1", tool="files/read")
    long = ToolMessage(call_id="c1", tool="files/read", ok=True, text=whole)
    history = (user(), AssistantMessage(calls=(call,)), long)
    assert notices(await ask(models, *history, session="s1"))[-1] == "llm.cure.results"
    assert notices(await ask(models, *history, session="s1")) == []


async def test_a_signature_that_is_refused_is_left_out(server: PickyServer, models: Models) -> None:
    server.judge = lambda asked: (
        refuse(400, "messages.1.content.0: Invalid `signature` in `thinking` block")
        if b"sig1" in asked.body
        else None
    )
    signed = AssistantMessage(text=Text("Hi"), opaque={"openai-chat": {"fields": {"signature": "sig1"}}})
    assert notices(await ask(models, user(), signed, user("And?"), session="s")) == ["llm.cure.provider_data"]
    assert notices(await ask(models, user(), signed, user("And?"), session="s")) == []


async def test_a_refusal_that_nothing_cures_is_told_as_it_was(server: PickyServer, models: Models) -> None:
    server.judge = lambda _: refuse(400, "This model is on holiday")
    with pytest.raises(LLMRequestError, match="on holiday"):
        await ask(models, *with_picture(FINE), session="s1")
    assert len(server.asked) == 2
    server.judge = lambda _: None
    await ask(models, *with_picture(FINE), session="s1")
    assert FINE.data in json.dumps(server.bodies[-1])  # it was not the picture's fault


# --- fields, levels, protocols, paths ---------------------------------------------------------------

TOOL_REFUSALS = [
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
    (400, "This model does not support tools"),
    (404, 'No endpoints found that support tool use. Try disabling "files__read".'),
    (400, "registry.ollama.ai/library/gemma:2b does not support tools"),
    (400, "Function calling is not enabled for models/gemma-3-27b-it"),
    (500, "tools param requires --jinja flag"),
    (400, "`tool calling` is not supported with this model"),
    (400, "Unsupported parameter: 'tools' is not supported with this model."),
    (422, "Unrecognized request argument supplied: tools"),
    (400, "deepseek-r1 doesn't support tool calls"),
]


@pytest.mark.parametrize(("status", "message"), TOOL_REFUSALS)
async def test_a_service_without_tools_is_told_of_them_in_text(
    server: PickyServer, models: Models, status: int, message: str
) -> None:
    server.judge = lambda asked: refuse(status, message) if "tools" in asked.json else None
    server.reply = (
        {"content": '{"comment": "", "actions": [{"operation": "files/read", "args": {"path": "a"}}]}'},
    )
    heard = await ask(models, tools=(READ,))
    assert notices(heard) == ["llm.cure.tools"]
    assert [call.tool for call in closing(heard).message.calls] == ["files/read"]
    assert notices(await ask(models, tools=(READ,))) == []
    assert models.resolve().tool_protocol == "action_list"


FIELD_REFUSALS: list[tuple[dict[str, Any], str, str, str]] = [
    (
        {"max_output": 10},
        "max_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "max_tokens",
    ),
    ({}, "stream_options", "Extra inputs are not permitted: stream_options", ""),
    ({}, "stream_options", "Unrecognized request argument supplied: stream_options", ""),
    (
        {"options": (("temperature", 0.2),)},
        "temperature",
        "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
        "temperature",
    ),
    (
        {"options": (("parallel_tool_calls", False),)},
        "parallel_tool_calls",
        "Unsupported parameter: 'parallel_tool_calls' is not supported with this model.",
        "parallel_tool_calls",
    ),
    ({"effort": "low"}, "reasoning_effort", "Unrecognized request argument supplied: reasoning_effort", ""),
    ({"effort": "low"}, "reasoning_effort", "This model does not support effort", "reasoning_effort"),
]


@pytest.mark.parametrize(("more", "field", "message", "param"), FIELD_REFUSALS)
async def test_a_field_that_is_not_known_is_left_out_and_remembered(
    server: PickyServer, models: Models, more: dict[str, Any], field: str, message: str, param: str
) -> None:
    server.judge = lambda asked: (
        refuse(400, message, param=param, code="unsupported_parameter") if field in asked.json else None
    )
    for told in (["llm.cure.field"], []):
        heard = await ask(models, **more)
        assert (text_of(heard), notices(heard)) == ("Hello", told)
    if field == "max_tokens":
        assert server.bodies[-1]["max_completion_tokens"] == 10


@pytest.mark.parametrize(
    ("asked_for", "message", "level"),
    [
        (
            "none",
            "'reasoning_effort' does not support 'none'. Supported values are: 'minimal', 'low', and 'high'.",
            "low",
        ),
        ("high", "This model does not support effort level 'high'. Supported levels: low, medium.", "medium"),
        ("low", "`reasoning_effort` must be one of `none` or `default`", "none"),
    ],
)
async def test_a_reasoning_level_becomes_the_nearest_that_is_listed(
    server: PickyServer, models: Models, asked_for: Any, message: str, level: str
) -> None:
    server.judge = lambda asked: (
        refuse(400, message) if asked.json.get("reasoning_effort") == asked_for else None
    )
    for told in (["llm.cure.effort"], []):
        assert notices(await ask(models, effort=asked_for)) == told
    assert server.bodies[-1]["reasoning_effort"] == level


@pytest.mark.parametrize(
    ("base", "right"),
    [("", "/v1/chat/completions"), ("/v1", "/chat/completions"), ("/api", "/api/v1/chat/completions")],
)
async def test_a_path_that_is_not_there_is_tried_with_or_without_its_version(
    server: PickyServer, base: str, right: str
) -> None:
    server.judge = lambda asked: document({"detail": "Not Found"}, 404) if asked.path != right else None
    address = server.url + base if base else f"{server.url}/v1/../"
    compatible = ProviderSettings(base_url=address if base else f"{server.url}/")
    models = Models(LLMSettings(model="compatible/m", compatible=compatible))
    heard = await ask(models)
    assert text_of(heard) == "Hello"
    assert notices(heard) == (["llm.cure.path"] if base else [])
    assert notices(await ask(models)) == []
    await models.aclose()


async def test_a_model_that_is_not_there_is_not_looked_for_elsewhere(
    server: PickyServer, models: Models
) -> None:
    server.judge = lambda _: refuse(404, "The model `m` does not exist", code="model_not_found")
    with pytest.raises(LLMRequestError):
        await ask(models)
    assert len(server.asked) == 1


async def test_a_system_role_that_is_refused_becomes_the_persons(server: PickyServer, models: Models) -> None:
    server.judge = lambda asked: (
        refuse(
            400,
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            param="messages[0].role",
            code="unsupported_value",
        )
        if asked.json["messages"][0]["role"] == "system"
        else None
    )
    assert text_of(await ask(models, system="Be brief.")) == "Hello"
    assert server.bodies[-1]["messages"][0] == {"role": "user", "content": "Be brief."}


async def test_two_things_that_are_not_known_are_both_left_out(server: PickyServer, models: Models) -> None:
    def judge(asked: Asked) -> Answer | None:
        known = ("stream_options", "reasoning_effort", "tools")
        wrong = next((name for name in known if name in asked.json), None)
        return refuse(400, f"Unknown parameter: '{wrong}'.", param=wrong) if wrong else None

    server.judge = judge
    heard = await ask(models, tools=(READ,), effort="low")
    assert (closing(heard).message.text, len(notices(heard))) == ("Hello", 3)


async def test_a_model_that_does_not_reason_is_asked_without(server: PickyServer) -> None:
    def judge(asked: Asked) -> Answer | None:
        if "include" in asked.json:
            return refuse(400, "Encrypted content is not supported with this model.", param="include")
        if "reasoning" in asked.json:
            message = "Unsupported parameter: 'reasoning.summary' is not supported."
            return refuse(400, message, param="reasoning.summary")
        output: list[Any] = [{"type": "message", "content": [{"type": "output_text", "text": "Looking."}]}]
        return events({"type": "response.completed", "response": {"status": "completed", "output": output}})

    server.judge = judge
    compatible = ProviderSettings(base_url=f"{server.url}/v1", api="responses")
    models = Models(LLMSettings(model="compatible/m", compatible=compatible))
    assert closing(await ask(models)).message.text == "Looking."
    assert closing(await ask(models)).message.text == "Looking."
    sent = [("include" in body, "reasoning" in body) for body in server.bodies]
    assert sent == [(True, True), (False, True), (False, False), (False, False)]
    await models.aclose()
