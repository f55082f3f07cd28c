"""OpenAI, compatible servers and LM Studio over a real socket: what is asked, and what becomes of the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from inline_snapshot import snapshot
from pydantic import SecretStr

from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import (
    ContextOverflowError,
    LLMAuthError,
    LLMError,
    LLMRateLimitError,
    LLMRequestError,
    LLMTimeoutError,
    StreamCutError,
    UsageError,
)
from daiku.domain.messages import (
    AssistantMessage,
    Image,
    Message,
    ModelRequest,
    Reply,
    TextDelta,
    ThinkingDelta,
    ToolMessage,
    UserMessage,
)
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.models.model import Probe, resolve_model
from daiku.models.openai.chat_request import PROTOCOL
from daiku.models.provider import Provider
from daiku.models.table import LLMSettings
from daiku.models.transport.addresses import openai_url_normalizer
from daiku.texts.text import Text
from tests.cases import for_each
from tests.llm.server import DROP, HANG, Answer, ModelServer, document, events
from tests.llm.talk import opened

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
READ = ToolSpec(
    name="files/read",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    effect="read",
)
PICTURE = Image(media_type="image/png", data="aGk=")


def chunk(finish: str | None = None, /, **delta: Any) -> JsonObject:
    return {"id": "c", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def usage(**numbers: Any) -> JsonObject:
    return {"id": "c", "model": "m-1", "choices": [], "usage": numbers}


HELLO = events(chunk(content="Hel"), chunk(content="lo"), chunk("stop"), done=True)


def request(*messages: Message, tools: tuple[ToolSpec, ...] = (READ,), **more: Any) -> ModelRequest:
    return ModelRequest("m", "Be brief.", messages or (UserMessage(text="Hi"),), tools, **more)


def settings(server: ModelServer, **more: Any) -> ProviderSettings:
    return ProviderSettings(base_url=f"{server.url}/v1", **more)


@pytest.fixture
async def chat(model_server: ModelServer) -> AsyncIterator[Provider]:
    provider = opened("compatible", settings(model_server, api_key=SecretStr("sk-secret-secret-secret")))
    yield provider
    await provider.aclose()


@pytest.fixture
async def responses(model_server: ModelServer) -> AsyncIterator[Provider]:
    provider = opened("openai", settings(model_server, api="responses", api_key=SecretStr("key")))
    yield provider
    await provider.aclose()


async def hear(provider: Provider, asked: ModelRequest) -> tuple[list[object], Reply]:
    news: list[object] = [event async for event in provider.stream(asked)]
    reply = news.pop()
    assert isinstance(reply, Reply)
    return news, reply


async def failure(provider: Provider, asked: ModelRequest | None = None) -> LLMError:
    with pytest.raises(LLMError) as caught:
        await hear(provider, asked or request())
    return caught.value


# --- Chat Completions -------------------------------------------------------------------------------


async def test_text_streams_and_ends_in_the_whole_reply(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(
        CHAT,
        events(
            chunk(role="assistant", content=""),
            chunk(reasoning_content="Hm."),
            chunk(content="Hel"),
            chunk(content="lo"),
            chunk("stop"),
            usage(prompt_tokens=9, completion_tokens=2, prompt_tokens_details={"cached_tokens": 4}),
            done=True,
        ),
    )
    news, reply = await hear(chat, request())
    assert "".join(e.text for e in news if isinstance(e, TextDelta)) == "Hello"
    assert "".join(e.text for e in news if isinstance(e, ThinkingDelta)) == "Hm."
    assert (reply.message.text, reply.message.thinking, reply.finish) == ("Hello", "Hm.", "stop")
    assert reply.usage.model_dump() == snapshot(
        {"model": "m-1", "prompt_tokens": 9, "completion_tokens": 2, "cached_tokens": 4, "cost": None}
    )


async def test_a_chat_request_has_this_shape(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, HELLO)
    conversation: tuple[Message, ...] = (
        UserMessage(text="What is this?", images=(PICTURE,)),
        AssistantMessage(
            text=Text("Let me look."),
            calls=(
                ToolCall(id="call_1", tool="files/read", args={"path": "ä.py"}),
                ToolCall(id="call_2", tool="web/fetch", malformed='{"url":'),
            ),
        ),
        ToolMessage(call_id="call_1", tool="files/read", ok=True, text="x = 1", images=(PICTURE,)),
        ToolMessage(call_id="call_2", tool="web/fetch", ok=False, text="The arguments are no JSON object."),
        UserMessage(text="Go on"),
    )
    await hear(chat, request(*conversation, max_output=100, effort="low", session="s_1"))
    asked = model_server.asked[0]
    assert asked.json == snapshot(
        {
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What is this?"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": "Let me look.",
                    "tool_calls": [
                        {
                            "id": "call_1",
                            "type": "function",
                            "function": {"name": "files__read", "arguments": '{"path":"ä.py"}'},
                        },
                        {
                            "id": "call_2",
                            "type": "function",
                            "function": {"name": "web__fetch", "arguments": "{}"},
                        },
                    ],
                },
                {"role": "tool", "tool_call_id": "call_1", "content": "x = 1"},
                {"role": "tool", "tool_call_id": "call_2", "content": "The arguments are no JSON object."},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": "What files__read shows:"},
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
                    ],
                },
                {"role": "user", "content": "Go on"},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "files__read",
                        "description": "Read a file.",
                        "parameters": {
                            "type": "object",
                            "properties": {"path": {"type": "string"}},
                            "required": ["path"],
                        },
                    },
                }
            ],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": 100,
            "reasoning_effort": "low",
        }
    )
    assert asked.headers["authorization"] == "Bearer sk-secret-secret-secret"
    assert asked.headers["content-type"] == "application/json"


async def test_a_server_without_a_key_gets_no_authorization(model_server: ModelServer) -> None:
    model_server.answer(CHAT, HELLO)
    provider = opened("compatible", settings(model_server, headers={"X-Team": "blue"}))
    await hear(provider, request())
    assert "authorization" not in model_server.asked[0].headers
    assert model_server.asked[0].headers["x-team"] == "blue"
    await provider.aclose()


async def test_parallel_calls_arrive_in_pieces(model_server: ModelServer, chat: Provider) -> None:
    def call(index: int, **function: Any) -> JsonObject:
        more = {"id": function.pop("id")} if "id" in function else {}
        return chunk(tool_calls=[{"index": index, "type": "function", "function": function, **more}])

    model_server.answer(
        CHAT,
        events(
            call(0, id="a", name="files__", arguments=""),
            call(1, id="b", name="files__read", arguments='{"pa'),
            call(0, name="read", arguments='{"path":'),
            call(1, arguments='th":"2"}'),
            call(0, arguments='"1"}'),
            chunk("tool_calls"),
            done=True,
        ),
    )
    _, reply = await hear(chat, request())
    assert reply.message.calls == (
        ToolCall(id="a", tool="files/read", args={"path": "1"}),
        ToolCall(id="b", tool="files/read", args={"path": "2"}),
    )
    assert reply.finish == "tool_calls"


async def test_calls_of_careless_servers_are_told_apart(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(
        CHAT,
        events(
            chunk(tool_calls=[{"function": {"name": "files__read", "arguments": {"path": "object"}}}]),
            chunk(tool_calls=[{"id": "x", "function": {"name": "files__read", "arguments": '{"path":'}}]),
            chunk(tool_calls=[{"function": {"arguments": '"pieces"}'}}]),
            chunk(tool_calls=[{"id": "x", "index": 0, "function": {"name": "git__status"}}]),
            chunk(
                tool_calls=[
                    {"id": "y", "index": 0, "function": {"name": "git__log", "arguments": '{"a": [1, 2'}}
                ]
            ),
            chunk("stop"),
            done=True,
        ),
    )
    _, reply = await hear(chat, request())
    calls = reply.message.calls
    assert [(c.tool, c.args, c.malformed) for c in calls] == [
        ("files/read", {"path": "object"}, None),
        ("files/read", {"path": "pieces"}, None),
        ("git/status", {}, None),
        ("git/log", {}, '{"a": [1, 2'),
    ]
    assert len({c.id for c in calls}) == 4
    assert reply.finish == "tool_calls"


async def test_very_long_arguments_are_read_in_linear_time(model_server: ModelServer, chat: Provider) -> None:
    text = "lorem ipsum " * 100_000
    encoded = json.dumps({"path": text})
    pieces = [encoded[i : i + 4000] for i in range(0, len(encoded), 4000)]
    model_server.answer(
        CHAT,
        events(
            chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "files__read"}}]),
            *(chunk(tool_calls=[{"index": 0, "function": {"arguments": piece}}]) for piece in pieces),
            chunk("tool_calls"),
            done=True,
        ),
    )
    _, reply = await hear(chat, request())
    assert reply.message.calls[0].args == {"path": text}


async def test_an_empty_reply_is_a_reply(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, events(chunk("stop", content=None), done=True))
    news, reply = await hear(chat, request())
    assert (news, reply.message, reply.finish) == ([], AssistantMessage(), "stop")


async def test_a_surrogate_pair_that_two_deltas_share_is_joined(
    model_server: ModelServer, chat: Provider
) -> None:
    def raw(text: str) -> str:
        return '{"choices":[{"index":0,"delta":{"content":"' + text + '"}}]}'

    model_server.answer(
        CHAT, events(raw(r"a \ud83d"), raw(r"\ude00 b"), raw(r"\ud83d"), chunk("stop"), done=True)
    )
    news, reply = await hear(chat, request())
    assert reply.message.text == "a 😀 b\N{REPLACEMENT CHARACTER}"
    assert "".join(e.text for e in news if isinstance(e, TextDelta)).encode()


async def test_lone_surrogates_of_ours_can_be_sent(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, HELLO)
    await hear(chat, request(UserMessage(text="broken \ud83d text")))
    assert model_server.asked[0].json["messages"][1]["content"] == "broken \N{REPLACEMENT CHARACTER} text"


async def test_a_call_without_a_result_gets_one(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, HELLO)
    calls = (ToolCall(id="a", tool="files/read"), ToolCall(id="b", tool="files/read"))
    await hear(
        chat,
        request(
            UserMessage(text="Go"),
            AssistantMessage(calls=calls),
            ToolMessage(call_id="a", tool="files/read", ok=True, text="1"),
            UserMessage(text="And?"),
            ToolMessage(call_id="gone", tool="files/read", ok=True, text="late"),
            AssistantMessage(calls=(ToolCall(id="c", tool="files/read"),)),
        ),
    )
    sent = model_server.asked[0].json["messages"]
    assert [(m["role"], m.get("tool_call_id")) for m in sent] == [
        ("system", None),
        ("user", None),
        ("assistant", None),
        ("tool", "a"),
        ("tool", "b"),
        ("user", None),
        ("user", None),
        ("assistant", None),
        ("tool", "c"),
    ]


async def test_what_a_thinking_model_thought_before_a_call_goes_back_to_it(
    model_server: ModelServer, chat: Provider
) -> None:
    model_server.answer(
        CHAT,
        events(
            chunk(reasoning_content="I should look."),
            chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "files__read"}}]),
            chunk("tool_calls"),
            done=True,
        ),
        HELLO,
    )
    _, reply = await hear(chat, request())
    result = ToolMessage(call_id="a", tool="files/read", ok=True, text="x")
    await hear(chat, request(UserMessage(text="Hi"), reply.message, result))
    assert model_server.asked[1].json["messages"][2]["reasoning_content"] == "I should look."


async def test_pieces_of_a_structured_thought_are_joined_and_several_thoughts_are_not(
    model_server: ModelServer, chat: Provider
) -> None:
    def thought(index: int, text: str) -> JsonObject:
        return {"type": "reasoning.text", "index": index, "text": text}

    pieces = [thought(0, "one"), thought(0, " and more"), thought(1, "two")]
    said = [chunk(reasoning_details=[piece]) for piece in pieces]
    model_server.answer(CHAT, events(*said, chunk(content="Hi"), chunk("stop"), done=True))
    _, reply = await hear(chat, request())
    kept = reply.message.opaque[PROTOCOL]
    assert isinstance(kept, dict)
    assert kept["reasoning_details"] == [thought(0, "one and more"), thought(1, "two")]


async def test_a_conversation_is_encoded_once_and_grows(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, HELLO)
    first = UserMessage(text="one")
    _, reply = await hear(chat, request(first, session="s"))
    await hear(chat, request(first, reply.message, UserMessage(text="two"), session="s"))
    other = UserMessage(text="compacted")
    await hear(chat, request(other, session="s"))
    sent = [[m["content"] for m in asked.json["messages"][1:]] for asked in model_server.asked]
    assert sent == [["one"], ["one", "Hello", "two"], ["compacted"]]
    assert model_server.connections == 1


async def test_a_server_that_does_not_stream_is_understood(model_server: ModelServer, chat: Provider) -> None:
    whole = {
        "model": "m",
        "choices": [{"index": 0, "message": {"content": "All at once"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    model_server.answer(CHAT, document(whole))
    news, reply = await hear(chat, request())
    assert news == [TextDelta("All at once")]
    assert (reply.finish, reply.usage.completion_tokens) == ("length", 4)


async def test_what_a_service_refused_before_is_left_out(model_server: ModelServer, chat: Provider) -> None:
    """How a refusal is noticed and remembered: tests/llm/test_cures.py."""
    model_server.answer(CHAT, HELLO)
    await hear(chat, request(refused=frozenset({"stream_options"})))
    assert "stream_options" not in model_server.asked[0].json


# --- what goes wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "kind", "expected"),
    [
        (401, {"error": {"message": "Incorrect API key"}}, "auth", LLMAuthError),
        (403, {"error": {"message": "Country not supported"}}, "auth", LLMAuthError),
        (404, {"error": {"message": "no such model"}}, "not_found", LLMRequestError),
        (400, {"error": {"message": "bad temperature"}}, "bad_request", LLMRequestError),
        (413, "<html>too large</html>", "context_overflow", ContextOverflowError),
        (
            400,
            {"error": {"message": "n/a", "code": "context_length_exceeded"}},
            "context_overflow",
            ContextOverflowError,
        ),
        (408, {}, "timeout", LLMTimeoutError),
        (500, {"detail": "boom"}, "timeout", LLMTimeoutError),
        (502, "<html>Bad gateway</html>", "timeout", LLMTimeoutError),
        (503, {"error": "busy"}, "overloaded", LLMRateLimitError),
        (529, {"error": {"type": "overloaded_error"}}, "overloaded", LLMRateLimitError),
        (
            429,
            {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}},
            "auth",
            LLMAuthError,
        ),
    ],
)
async def test_a_status_is_one_typed_error(
    model_server: ModelServer, chat: Provider, status: int, body: object, kind: str, expected: type[LLMError]
) -> None:
    text = body if isinstance(body, str) else json.dumps(body)
    model_server.answer(CHAT, Answer([text.encode()], status))
    error = await failure(chat)
    assert (type(error), error.failure.kind, error.status) == (expected, kind, status)
    assert error.failure.retryable == (kind in ("timeout", "overloaded"))
    assert error.failure.hint
    assert "<html>" not in error.failure.message
    assert len(model_server.asked) == 1


async def test_a_rate_limit_says_how_long_to_wait(model_server: ModelServer, chat: Provider) -> None:
    body = {"error": {"message": "Slow down", "type": "rate_limit_error"}}
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    model_server.answer(
        CHAT,
        document(body, 429, retry_after="7"),
        document(body, 429, retry_after_ms="250", retry_after="9"),
        document(body, 429, retry_after=later),
        document({"error": {"message": "Rate limit reached. Please try again in 1m2.5s."}}, 429),
        document(body, 429),
    )
    waits: list[float | None] = []
    for _ in range(5):
        error = await failure(chat)
        assert isinstance(error, LLMRateLimitError)
        waits.append(error.retry_after)
    dated = waits.pop(2)
    assert dated is not None
    assert 80 < dated <= 90
    assert waits == [7.0, 0.25, 62.5, None]


async def test_a_key_never_shows_in_a_message(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, document({"error": {"message": "Wrong key sk-secret-secret-secret."}}, 401))
    error = await failure(chat)
    assert "secret" not in error.failure.message
    assert "***" in error.failure.message


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (events(chunk(content="Hal"), {"error": {"message": "GPU died", "type": "server_error"}}), "timeout"),
        (events(chunk(content="Hal"), {"error": {"message": "x", "code": 429}}), "rate_limit"),
        (events({"error": {"message": "prompt is too long: 9 tokens > 4 maximum"}}), "context_overflow"),
        (document({"error": {"message": "model is loading", "code": 503}}), "overloaded"),
        (document({"object": "error", "message": "no such model", "code": 404}), "not_found"),
        (events(chunk(content="Hal"), "Internal garbage"), "format"),
        (Answer([b"data: \xff\xfe\x00{\n\n"]), "format"),
        (Answer([b"<html>Login</html>"]), "stream_cut"),
        (events(chunk(content="Hal")), "stream_cut"),
        (Answer([]), "stream_cut"),
    ],
)
async def test_an_error_within_a_success_is_an_error(
    model_server: ModelServer, chat: Provider, answer: Answer, expected: str
) -> None:
    model_server.answer(CHAT, answer)
    assert (await failure(chat)).failure.kind == expected


async def test_a_stream_that_breaks_off_gives_no_reply(model_server: ModelServer, chat: Provider) -> None:
    half = events(
        chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "files__read", "arguments": "{}"}}])
    )
    model_server.answer(CHAT, half, Answer([*half.body, DROP], headers=half.headers))
    seen: list[object] = []
    for expected in (StreamCutError, LLMTimeoutError):
        with pytest.raises(expected) as caught:
            seen += [event async for event in chat.stream(request())]
        assert caught.value.failure.retryable
    assert not seen


@pytest.mark.slow
async def test_silence_before_the_first_byte_is_bounded_by_its_own_limit(model_server: ModelServer) -> None:
    model_server.answer(CHAT, Answer([HANG]))
    provider = opened("compatible", settings(model_server, first_token_seconds=1, idle_seconds=1))
    error = await failure(provider)
    assert (type(error), error.failure.kind) == (LLMTimeoutError, "timeout")
    await provider.aclose()


@pytest.mark.slow
async def test_silence_between_bytes_is_bounded_and_the_connection_closed(model_server: ModelServer) -> None:
    model_server.answer(CHAT, Answer([b": thinking\n\n", *events(chunk(content="Hal")).body, HANG]))
    provider = opened("compatible", settings(model_server, first_token_seconds=600, idle_seconds=1))
    error = await failure(provider)
    assert (type(error), error.failure.kind) == (LLMTimeoutError, "timeout")
    assert "1 s" in error.failure.message
    await asyncio.wait_for(model_server.left.wait(), 5)
    await provider.aclose()


async def test_cancelling_closes_the_connection(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, Answer([*events(chunk(content="Hal")).body, HANG]))
    heard = asyncio.Event()

    async def listen() -> None:
        async for _ in chat.stream(request()):
            heard.set()

    task = asyncio.create_task(listen())
    await asyncio.wait_for(heard.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(model_server.left.wait(), 5)


async def test_leaving_the_stream_closes_the_connection(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, Answer([*events(chunk(content="Hal")).body, HANG]))
    async with aclosing(chat.stream(request())) as news:
        async for _ in news:
            break
    await asyncio.wait_for(model_server.left.wait(), 5)


async def test_a_server_that_is_not_there_is_named_with_what_to_do() -> None:
    provider = opened("lmstudio", ProviderSettings(base_url="http://127.0.0.1:9"))
    error = await failure(provider)
    assert (error.failure.kind, error.failure.retryable) == ("connection", True)
    assert "Cannot reach LM Studio at http://127.0.0.1:9/v1" in error.failure.message
    assert "Start LM Studio" in error.failure.hint
    await provider.aclose()


async def test_openai_without_a_key_asks_for_one_before_it_calls() -> None:
    error = await failure(opened("openai", ProviderSettings(api_key_env="OPENAI_API_KEY")))
    assert isinstance(error, LLMAuthError)
    assert "OPENAI_API_KEY" in error.failure.hint


def test_compatible_needs_an_address() -> None:
    with pytest.raises(UsageError, match="address"):
        resolve_model(LLMSettings(), "compatible/m", Probe(lambda _: None))


@for_each(
    ("given", "address"),
    [
        ("http://h:1/v1/", "http://h:1/v1"),
        ("http://h:1", "http://h:1/v1"),
        ("h:1", "http://h:1/v1"),
        ("https://h/openai/chat/completions", "https://h/openai"),
        ("", "http://default/v1"),
    ],
)
def test_an_address_is_understood_as_people_write_it(given: str, address: str) -> None:
    assert openai_url_normalizer("http://default/v1")(given) == address


# --- Responses --------------------------------------------------------------------------------------

ENCRYPTED: JsonObject = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Look first."}],
    "encrypted_content": "gAAA",
}
SAID: JsonObject = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "Looking.", "annotations": []}],
}
CALLED: JsonObject = {
    "id": "fc_1",
    "type": "function_call",
    "call_id": "call_1",
    "name": "files__read",
    "arguments": '{"path":"a"}',
    "status": "completed",
}


def closing(kind: str, *items: JsonObject, **more: Any) -> JsonObject:
    status = kind.removeprefix("response.")
    counts: JsonObject = {
        "input_tokens": 20,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 16},
    }
    response: JsonObject = {"model": "gpt-x", "status": status, "output": [*items], "usage": counts, **more}
    return {"type": kind, "sequence_number": 99, "response": response}


def thoughtful() -> Answer:
    return events(
        {"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress"}},
        {"type": "response.reasoning_summary_text.delta", "sequence_number": 1, "delta": "Look first."},
        {"type": "response.output_item.done", "sequence_number": 2, "output_index": 0, "item": ENCRYPTED},
        {"type": "response.output_text.delta", "sequence_number": 3, "delta": "Look"},
        {"type": "response.output_text.delta", "sequence_number": 3, "delta": "Look"},
        {"type": "response.output_text.delta", "sequence_number": 4, "delta": "ing."},
        {"type": "response.output_item.done", "sequence_number": 5, "output_index": 1, "item": SAID},
        {"type": "response.output_item.done", "sequence_number": 6, "output_index": 2, "item": CALLED},
        closing("response.completed", ENCRYPTED, SAID, CALLED),
    )


async def test_a_response_streams_and_repeated_events_do_not_double_text(
    model_server: ModelServer, responses: Provider
) -> None:
    model_server.answer(RESPONSES, thoughtful())
    news, reply = await hear(responses, request())
    assert "".join(e.text for e in news if isinstance(e, TextDelta)) == "Looking."
    assert (reply.message.text, reply.message.thinking) == ("Looking.", "Look first.")
    assert reply.message.calls == (ToolCall(id="call_1", tool="files/read", args={"path": "a"}),)
    assert reply.finish == "tool_calls"
    assert reply.usage.model_dump() == snapshot(
        {"model": "gpt-x", "prompt_tokens": 20, "completion_tokens": 5, "cached_tokens": 16, "cost": None}
    )


async def test_a_responses_request_has_this_shape_and_gives_back_encrypted_reasoning(
    model_server: ModelServer, responses: Provider
) -> None:
    model_server.answer(RESPONSES, thoughtful())
    asked = UserMessage(text="Hi", images=(PICTURE,))
    _, reply = await hear(responses, request(asked))
    stored = AssistantMessage.model_validate_json(reply.message.model_dump_json())
    result = ToolMessage(call_id="call_1", tool="files/read", ok=True, text="x = 1", images=(PICTURE,))
    await hear(responses, request(asked, stored, result, max_output=100, effort="high"))
    assert model_server.asked[1].json == snapshot(
        {
            "model": "m",
            "instructions": "Be brief.",
            "input": [
                {
                    "type": "message",
                    "role": "user",
                    "content": [
                        {"type": "input_text", "text": "Hi"},
                        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
                    ],
                },
                {
                    "id": "rs_1",
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "Look first."}],
                    "encrypted_content": "gAAA",
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "Looking."}],
                },
                {
                    "type": "function_call",
                    "call_id": "call_1",
                    "name": "files__read",
                    "arguments": '{"path":"a"}',
                },
                {
                    "type": "function_call_output",
                    "call_id": "call_1",
                    "output": [
                        {"type": "input_text", "text": "x = 1"},
                        {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"},
                    ],
                },
            ],
            "tools": [
                {
                    "type": "function",
                    "name": "files__read",
                    "description": "Read a file.",
                    "parameters": {
                        "type": "object",
                        "properties": {"path": {"type": "string"}},
                        "required": ["path"],
                    },
                    "strict": False,
                }
            ],
            "stream": True,
            "store": False,
            "max_output_tokens": 100,
            "include": ["reasoning.encrypted_content"],
            "reasoning": {"summary": "auto", "effort": "high"},
        }
    )


async def test_reasoning_goes_back_only_to_the_model_that_wrote_it(
    model_server: ModelServer, responses: Provider
) -> None:
    model_server.answer(RESPONSES, thoughtful())
    hi = UserMessage(text="Hi")
    _, reply = await hear(responses, request(hi))
    other = ModelRequest("another", "", (hi, reply.message))
    await hear(responses, other)
    kinds = [item["type"] for item in model_server.asked[1].json["input"]]
    assert kinds == ["message", "message", "function_call", "function_call_output"]


@pytest.mark.parametrize(
    ("last", "finish"),
    [
        (closing("response.incomplete", SAID, incomplete_details={"reason": "max_output_tokens"}), "length"),
        (
            closing("response.incomplete", SAID, incomplete_details={"reason": "content_filter"}),
            "content_filter",
        ),
        (closing("response.completed"), "stop"),
        ({"type": "response.completed", "response": {"status": "queued", "output": []}}, "other"),
        ({"type": "response.completed", "response": {"status": "in_progress"}}, "other"),
    ],
)
async def test_a_response_tells_why_it_ended(
    model_server: ModelServer, responses: Provider, last: JsonObject, finish: str
) -> None:
    model_server.answer(RESPONSES, events(last))
    _, reply = await hear(responses, request())
    assert reply.finish == finish


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        (
            closing("response.failed", error={"code": "server_error", "message": "The model failed"}),
            "timeout",
        ),
        (closing("response.failed", error={"code": "rate_limit_exceeded", "message": "Slow"}), "rate_limit"),
        ({"type": "error", "code": "context_length_exceeded", "message": "too much"}, "context_overflow"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, "bad_request"),
        ({"type": "response.output_text.delta", "delta": "Hal"}, "stream_cut"),
    ],
)
async def test_a_response_that_fails_raises(
    model_server: ModelServer, responses: Provider, last: JsonObject, kind: str
) -> None:
    model_server.answer(RESPONSES, events(last))
    assert (await failure(responses)).failure.kind == kind


# --- lists of models --------------------------------------------------------------------------------


async def test_lm_studio_tells_the_window_that_is_loaded(model_server: ModelServer) -> None:
    model_server.answer(
        "/api/v0/models",
        document(
            {
                "data": [
                    {"id": "embed", "type": "embeddings", "max_context_length": 512},
                    {"id": "big", "type": "llm", "state": "not-loaded", "max_context_length": 131072},
                    {
                        "id": "eye",
                        "type": "vlm",
                        "state": "loaded",
                        "max_context_length": 32768,
                        "loaded_context_length": 4096,
                        "capabilities": ["tool_use"],
                    },
                ]
            }
        ),
    )
    provider = opened("lmstudio", settings(model_server))
    found = [(m.name, m.context, m.images, m.tools) for m in await provider.models()]
    assert found == [("eye", 4096, True, True), ("big", 131072, False, True)]
    await provider.aclose()


async def test_servers_tell_windows_under_many_names(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(
        "/v1/models",
        document(
            {
                "data": [
                    {"id": "router", "context_length": 1000},
                    {"id": "vllm", "max_model_len": 2000},
                    {"id": "groq", "context_window": 3000},
                    {"id": "llama", "meta": {"n_ctx_train": 4000}},
                    {"id": "silent"},
                ]
            }
        ),
    )
    assert [(m.name, m.context) for m in await chat.models()] == [
        ("router", 1000),
        ("vllm", 2000),
        ("groq", 3000),
        ("llama", 4000),
        ("silent", 0),
    ]


async def test_a_list_that_cannot_be_had_is_a_typed_error(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer("/v1/models", document({"error": {"message": "no"}}, 401))
    with pytest.raises(LLMAuthError):
        await chat.models()


async def test_requests_side_by_side_share_one_client(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, HELLO)
    asked = [request(UserMessage(text=str(number)), session=str(number)) for number in range(8)]
    replies = await asyncio.gather(*(hear(chat, one) for one in asked))
    assert {reply.message.text for _, reply in replies} == {"Hello"}
    assert sorted(a.json["messages"][1]["content"] for a in model_server.asked) == list("01234567")
    assert model_server.connections <= 8


async def test_a_web_page_in_place_of_the_service_is_told_and_not_asked_again(
    model_server: ModelServer, chat: Provider
) -> None:
    page = Answer([b"<html>Sign in</html>"], headers={"content-type": "text/html; charset=utf-8"})
    model_server.answer(CHAT, page)
    error = await failure(chat)
    assert "web page" in error.failure.message
    assert "base_url" in error.failure.hint
    assert not error.failure.retryable


async def test_an_answer_without_a_body_is_told(model_server: ModelServer, chat: Provider) -> None:
    model_server.answer(CHAT, Answer([], headers={"content-type": "text/event-stream"}))
    error = await failure(chat)
    assert isinstance(error, StreamCutError)
    assert "returned an empty reply" in error.failure.message
