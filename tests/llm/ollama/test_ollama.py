from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from daiku.domain.config import ProviderSettings
from daiku.domain.errors import ContextOverflowError, LLMRequestError, LLMTimeoutError, StreamCutError
from daiku.models.provider import Provider
from daiku.models.transport.addresses import normalize_ollama_address
from tests.cases import for_each
from tests.llm.conftest import Closing
from tests.llm.server import DROP, HANG, Answer, ModelServer, document
from tests.llm.talk import (
    KEY,
    PICTURE,
    READ,
    call,
    closing,
    hear,
    leave_after_first,
    opened,
    reply,
    request,
    result,
    said,
    settings,
    text_of,
    thinking_of,
    user,
)

ALL = ["completion", "tools", "vision", "thinking"]


def card(context: int = 131_072, able: list[str] | None = None) -> Answer:
    shown: dict[str, Any] = {"model_info": {"qwen3.context_length": context, "qwen3.block_count": 36}}
    if able is not None:
        shown["capabilities"] = able
    return document(shown)


def lines(*values: object) -> Answer:
    return Answer([json.dumps(v).encode() + b"\n" for v in values])


def saying(content: str = "", **more: Any) -> dict[str, Any]:
    return {"model": "qwen3", "message": {"role": "assistant", "content": content, **more}, "done": False}


def done(reason: str = "stop", **more: Any) -> dict[str, Any]:
    return {**saying(), "done": True, "done_reason": reason, "prompt_eval_count": 26, "eval_count": 8, **more}


@pytest.fixture
def ollama(model_server: ModelServer, closing_after: Closing) -> Provider:
    model_server.answer("/api/show", card(able=ALL))
    model_server.answer("/api/chat", lines(saying("ok"), done()))
    return closing_after(opened("ollama", ProviderSettings(base_url=model_server.url)))


def sent(server: ModelServer) -> dict[str, Any]:
    body = next(asked.json for asked in reversed(server.asked) if asked.path == "/api/chat")
    assert isinstance(body, dict)
    return body


async def test_text_thinking_and_parallel_calls_arrive_as_they_come(
    model_server: ModelServer, ollama: Provider
) -> None:
    def calling(path: str) -> dict[str, Any]:
        return {"function": {"name": "files__read", "arguments": {"path": path}}}

    model_server.answer(
        "/api/chat",
        lines(
            saying(thinking="考え"),
            saying(thinking="る"),
            saying("読み"),
            saying("ます"),
            saying(tool_calls=[calling("日本.py")]),
            saying(tool_calls=[calling("b.py")]),
            done(),
        ),
    )
    heard = await hear(ollama, model="qwen3", tools=(READ,))
    assert (text_of(heard), thinking_of(heard)) == ("読みます", "考える")
    last = closing(heard)
    assert [(c.tool, c.args) for c in last.message.calls] == [
        ("files/read", {"path": "日本.py"}),
        ("files/read", {"path": "b.py"}),
    ]
    assert last.message.calls[0].id != last.message.calls[1].id
    assert last.finish == "tool_calls"
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (26, 8)
    assert last.usage.cost is None, (
        "a machine of the person's own has no price list, like any other that has none"
    )


async def test_the_request_sets_up_the_window_that_is_promised(
    model_server: ModelServer, ollama: Provider
) -> None:
    await reply(ollama, user("Hi", PICTURE), model="qwen3", system="Be brief.", tools=(READ,), max_output=99)
    assert sent(model_server) == {
        "model": "qwen3",
        "stream": True,
        "keep_alive": "30m",
        "options": {"num_ctx": 32768, "num_predict": 99},
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "files__read",
                    "description": "Read a file",
                    "parameters": READ.parameters,
                },
            }
        ],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi", "images": [PICTURE.data]},
        ],
    }


@pytest.mark.parametrize(
    ("own", "asked", "window"),
    [(131_072, 0, 32_768), (8192, 0, 8192), (131_072, 65_536, 65_536), (0, 4096, 4096)],
)
async def test_the_window_is_the_settings_at_most_the_models(
    model_server: ModelServer, own: int, asked: int, window: int
) -> None:
    provider = opened("ollama", ProviderSettings(base_url=model_server.url, context_length=asked))
    model_server.answer("/api/show", card(own, ALL))
    model_server.answer("/api/chat", lines(done()))
    model_server.answer("/api/tags", document({"models": [{"name": "qwen3:8b"}]}))
    await reply(provider, model="qwen3:8b")
    assert sent(model_server)["options"]["num_ctx"] == window
    assert [m.context for m in await provider.models()] == [window]
    assert [a.path for a in model_server.asked].count("/api/show") == 1
    await provider.aclose()


async def test_what_would_not_fit_is_said_before_the_server_forgets_its_beginning(
    model_server: ModelServer, ollama: Provider
) -> None:
    with pytest.raises(ContextOverflowError, match="window"):
        await reply(ollama, user("word " * 40_000), model="qwen3")
    assert not [a for a in model_server.asked if a.path == "/api/chat"]


@pytest.mark.parametrize(("counted", "fits"), [(3_000, False), (900, True), (0, True)])
async def test_an_estimate_is_corrected_by_what_the_server_counted(
    model_server: ModelServer, ollama: Provider, counted: int, fits: bool
) -> None:
    """Some vocabularies cut twice as fine as the estimate."""
    model_server.answer("/api/chat", lines(saying("ok"), done(prompt_eval_count=counted)))
    await reply(ollama, user("word " * 1_000), model="qwen3")
    long = ollama.stream(request(user("word " * 25_000), model="qwen3"))
    await reply(ollama, user("Hi"), model="qwen3")  # too short to measure by
    if fits:
        assert [event async for event in long]
    else:
        with pytest.raises(ContextOverflowError, match=r"about 7\d,\d{3} tokens"):
            await anext(long)


async def test_the_conversation_goes_back_with_calls_results_and_pictures(
    model_server: ModelServer, ollama: Provider
) -> None:
    messages = (
        user("a"),
        said("b", call("c1", path="x"), call("c2", path="y"), thinking="hm", opaque={"ollama": "qwen3"}),
        result("c1", "one", PICTURE),
        result("c2", "two", ok=False),
    )
    await reply(ollama, *messages, model="qwen3")
    assert sent(model_server)["messages"][1:] == [
        {
            "role": "assistant",
            "content": "b",
            "thinking": "hm",
            "tool_calls": [
                {"id": "c1", "function": {"name": "files__read", "arguments": {"path": "x"}}},
                {"id": "c2", "function": {"name": "files__read", "arguments": {"path": "y"}}},
            ],
        },
        {"role": "tool", "content": "one", "tool_name": "files__read", "tool_call_id": "c1"},
        {"role": "user", "content": "The picture that files__read returned:", "images": [PICTURE.data]},
        {"role": "tool", "content": "Failed: two", "tool_name": "files__read", "tool_call_id": "c2"},
    ]


async def test_a_call_without_a_result_is_answered(model_server: ModelServer, ollama: Provider) -> None:
    await reply(ollama, user(), said("", call("c1")), user("and?"), model="qwen3")
    assert [m["role"] for m in sent(model_server)["messages"]] == ["user", "assistant", "tool", "user"]


@pytest.mark.parametrize(
    ("model", "effort", "able", "think"),
    [
        ("qwen3", "none", ALL, False),
        ("qwen3", "high", ALL, True),
        ("gpt-oss:20b", "low", ALL, "low"),
        ("qwen3", "", ALL, None),
        ("llama3", "high", ["completion", "tools"], None),
        ("llama3", "high", None, None),
    ],
)
async def test_thinking_is_asked_for_only_where_the_model_can(
    model_server: ModelServer, ollama: Provider, model: str, effort: Any, able: Any, think: Any
) -> None:
    model_server.answer("/api/show", card(able=able))
    await reply(ollama, model=model, effort=effort)
    assert sent(model_server).get("think") == think


async def test_a_schema_is_the_format_of_the_reply(model_server: ModelServer, ollama: Provider) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    await reply(ollama, model="qwen3", schema=schema)
    assert sent(model_server)["format"] == schema


async def test_a_model_without_tools_is_told_apart_before_it_is_asked(
    model_server: ModelServer, ollama: Provider
) -> None:
    model_server.answer("/api/show", card(able=["completion"]))
    with pytest.raises(LLMRequestError, match="does not support tools") as caught:
        await reply(ollama, model="gemma", tools=(READ,))
    assert "action_list" in caught.value.failure.hint
    assert (await reply(ollama, model="gemma")).message.text == "ok"  # without tools it talks


async def test_an_old_server_that_tells_nothing_is_asked_all_the_same(
    model_server: ModelServer, ollama: Provider
) -> None:
    model_server.answer("/api/show", document({}))
    assert (await reply(ollama, model="old", tools=(READ,))).message.text == "ok"
    no_tools = {"error": "registry.ollama.ai/library/old does not support tools"}
    model_server.answer("/api/chat", document(no_tools, 400))
    with pytest.raises(LLMRequestError, match="does not support tools"):
        await reply(ollama, model="old", tools=(READ,))


async def test_a_model_that_is_not_there_says_how_to_fetch_it(
    model_server: ModelServer, ollama: Provider
) -> None:
    missing = document({"error": "model 'nope' not found"}, 404)
    model_server.answer("/api/show", missing)
    model_server.answer("/api/chat", missing)
    with pytest.raises(LLMRequestError) as caught:
        await reply(ollama, model="nope")
    assert "ollama pull nope" in caught.value.failure.hint


async def test_a_server_that_is_not_there_says_how_to_start_it() -> None:
    provider = opened("ollama", ProviderSettings(base_url="http://127.0.0.1:9"))
    with pytest.raises(LLMTimeoutError) as caught:
        await reply(provider, model="qwen3")
    assert "ollama serve" in caught.value.failure.hint
    await provider.aclose()


async def test_an_error_in_the_stream_is_an_error(model_server: ModelServer, ollama: Provider) -> None:
    model_server.answer("/api/chat", lines(saying("so"), {"error": "llama runner process has terminated"}))
    with pytest.raises(LLMTimeoutError, match="terminated"):
        await reply(ollama, model="qwen3")


@pytest.mark.parametrize("tail", [[], [DROP], [b'{"message": {"content": "half']])
async def test_a_stream_without_its_last_line_is_an_error(
    model_server: ModelServer, ollama: Provider, tail: list[Any]
) -> None:
    model_server.answer("/api/chat", Answer([*lines(saying("so")).body, *tail]))
    with pytest.raises((StreamCutError, LLMTimeoutError)):
        await reply(ollama, model="qwen3")


async def test_oddities_of_calls_are_understood(model_server: ModelServer, ollama: Provider) -> None:
    def given(arguments: object, **more: object) -> dict[str, Any]:
        return {"function": {"name": "files__read", "arguments": arguments}, **more}

    odd = [
        given('{"path": "a"}'),
        given("not json"),
        given({}, id="same"),
        given({}, id="same"),
        {"function": {"arguments": {}}},
    ]
    model_server.answer("/api/chat", lines(saying(tool_calls=odd), done("length")))
    last = await reply(ollama, model="qwen3", tools=(READ,))
    first, second, *rest = last.message.calls
    assert (first.args, second.malformed) == ({"path": "a"}, "not json")
    assert len({c.id for c in last.message.calls}) == 4 == len(rest) + 2
    assert last.finish == "length"


async def test_an_empty_reply_and_an_unfinished_line_end_are_fine(
    model_server: ModelServer, ollama: Provider
) -> None:
    model_server.answer("/api/chat", Answer([json.dumps(done()).encode()]))
    assert (await reply(ollama, model="qwen3")).message.text == ""


async def test_halves_of_surrogates_are_replaced(model_server: ModelServer, ollama: Provider) -> None:
    model_server.answer("/api/chat", lines(saying("\ud83d"), saying("\ude00 \ud800"), done()))
    assert (await reply(ollama, user("a\ud83db"), model="qwen3")).message.text == "😀 \ufffd"
    assert sent(model_server)["messages"][0]["content"] == "a\ufffdb"


@pytest.mark.slow
async def test_a_pause_in_the_middle_is_bounded(model_server: ModelServer) -> None:
    patient = ProviderSettings(base_url=model_server.url, first_token_seconds=60, idle_seconds=1)
    provider = opened("ollama", patient)
    model_server.answer("/api/show", card(able=ALL))
    model_server.answer("/api/chat", Answer([*lines(saying("so")).body, HANG]))
    with pytest.raises(LLMTimeoutError, match="nothing"):
        await reply(provider, model="qwen3")
    await provider.aclose()


async def test_cancelling_closes_the_connection(model_server: ModelServer, ollama: Provider) -> None:
    model_server.answer("/api/chat", Answer([*lines(saying("so")).body, HANG]))
    await leave_after_first(ollama.stream(request(model="qwen3")))
    await asyncio.wait_for(model_server.left.wait(), 5)


async def test_models_are_listed_without_those_that_only_embed(
    model_server: ModelServer, ollama: Provider
) -> None:
    model_server.answer("/api/tags", document({"models": [{"model": "a"}, {"name": "b"}, {"size": 3}]}))
    model_server.answer("/api/show", card(able=["completion", "tools"]), card(able=["embedding"]))
    models = await ollama.models()
    assert len(models) == 1
    assert (models[0].tools, models[0].images, models[0].thinking) == (True, False, False)


async def test_a_key_for_a_server_behind_a_gate_is_sent(model_server: ModelServer) -> None:
    provider = opened("ollama", settings(model_server))
    model_server.answer("/api/tags", document({"models": []}))
    assert await provider.models() == ()
    assert model_server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    await provider.aclose()


@for_each(
    ("given", "expected"),
    [
        ("", "http://127.0.0.1:11434"),
        ("localhost", "http://localhost:11434"),
        ("192.168.1.5:8080", "http://192.168.1.5:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:1234", "http://127.0.0.1:1234"),
        (":1234", "http://127.0.0.1:1234"),
        ("[::1]:1234", "http://[::1]:1234"),
        ("http://box/", "http://box"),
        ("https://ollama.example.com/v1", "https://ollama.example.com"),
        ("http://box:11434/api/", "http://box:11434"),
        ("https://gate.example.com/ollama", "https://gate.example.com/ollama"),
    ],
)
def test_every_form_of_the_address_is_understood(given: str, expected: str) -> None:
    assert normalize_ollama_address(given) == expected
