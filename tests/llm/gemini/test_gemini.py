from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.config import ProviderSettings
from daiku.domain.errors import (
    ContextOverflowError,
    LLMAuthError,
    LLMRateLimitError,
    LLMRequestError,
    LLMTimeoutError,
    StreamCutError,
)
from daiku.domain.messages import AssistantMessage
from daiku.domain.tools import ToolSpec
from daiku.models.gemini.encode import NO_SIGNATURE, convert_schema
from daiku.models.provider import Provider
from tests.llm.conftest import Closing
from tests.llm.server import HANG, Answer, ModelServer, document, events
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

MODEL = "gemini-3.8-flash"
PATH = f"/v1beta/models/{MODEL}:streamGenerateContent"


@pytest.fixture
def gemini(model_server: ModelServer, closing_after: Closing) -> Provider:
    return closing_after(opened("gemini", settings(model_server)))


def chunk(*parts: dict[str, Any], finish: Any = None, **usage: int) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish is not None:
        candidate["finishReason"] = finish
    made: dict[str, Any] = {"candidates": [candidate], "modelVersion": MODEL}
    return made | ({"usageMetadata": usage} if usage else {})


def calling(path: str, signature: str = "", **more: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"functionCall": {"name": "files__read", "args": {"path": path}, **more}}
    return part | ({"thoughtSignature": signature} if signature else {})


SAYING = events(chunk({"text": "ok"}, finish="STOP", promptTokenCount=3, candidatesTokenCount=1))
THINKS_AND_CALLS = events(
    chunk({"text": "考える", "thought": True}),
    chunk({"text": "読み"}),
    chunk({"text": "ます"}),
    chunk({"text": "", "thoughtSignature": "sigT"}),
    chunk(calling("日本.py", "sigA"), calling("b.py")),
    chunk(
        finish="STOP",
        promptTokenCount=100,
        cachedContentTokenCount=60,
        candidatesTokenCount=20,
        thoughtsTokenCount=5,
        toolUsePromptTokenCount=7,
    ),
)


async def test_text_thinking_and_parallel_calls_arrive_as_they_come(
    model_server: ModelServer, gemini: Provider
) -> None:
    model_server.answer(PATH, THINKS_AND_CALLS)
    heard = await hear(gemini, model=MODEL, tools=(READ,))
    assert (text_of(heard), thinking_of(heard)) == ("読みます", "考える")
    last = closing(heard)
    assert [(c.tool, c.args) for c in last.message.calls] == [
        ("files/read", {"path": "日本.py"}),
        ("files/read", {"path": "b.py"}),
    ]
    assert last.finish == "tool_calls"
    usage = last.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (107, 60, 25)


async def test_the_last_count_of_a_stream_is_the_whole_one(
    model_server: ModelServer, gemini: Provider
) -> None:
    first = chunk({"text": "o"}, promptTokenCount=70, candidatesTokenCount=21, totalTokenCount=91)
    last = chunk({"text": "k"}, finish="STOP", promptTokenCount=70, thoughtsTokenCount=8, totalTokenCount=78)
    model_server.answer(PATH, events(first, last))
    usage = closing(await hear(gemini, model=MODEL)).usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (70, 8)


async def test_counts_that_come_one_by_one_are_put_together(
    model_server: ModelServer, gemini: Provider
) -> None:
    first = chunk({"text": "o"}, promptTokenCount=70, cachedContentTokenCount=60)
    model_server.answer(PATH, events(first, chunk({"text": "k"}, finish="STOP", candidatesTokenCount=2)))
    usage = closing(await hear(gemini, model=MODEL)).usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (70, 60, 2)


async def test_signatures_go_back_on_the_parts_that_they_came_with(
    model_server: ModelServer, gemini: Provider
) -> None:
    model_server.answer(PATH, THINKS_AND_CALLS, SAYING)
    first = (await reply(gemini, model=MODEL, tools=(READ,))).message
    first = AssistantMessage.model_validate_json(first.model_dump_json())
    one, two = (c.id for c in first.calls)
    await reply(gemini, user(), first, result(one, "1"), result(two, "2", ok=False), model=MODEL)
    contents = model_server.asked[1].json["contents"]
    assert contents[1] == {
        "role": "model",
        "parts": [
            {"text": "読みます"},
            {"text": "", "thoughtSignature": "sigT"},
            calling("日本.py", "sigA"),
            calling("b.py"),
        ],
    }
    assert contents[2] == {
        "role": "user",
        "parts": [
            {"functionResponse": {"name": "files__read", "response": {"result": "1"}}},
            {"functionResponse": {"name": "files__read", "response": {"error": "2"}}},
        ],
    }


async def test_ids_go_back_only_where_the_service_gave_them(
    model_server: ModelServer, gemini: Provider
) -> None:
    model_server.answer(PATH, events(chunk(calling("a", "s", id="g1"), finish="STOP")), SAYING)
    first = (await reply(gemini, model=MODEL, tools=(READ,))).message
    assert first.calls[0].id == "g1"
    await reply(gemini, user(), first, result("g1"), model=MODEL)
    contents = model_server.asked[1].json["contents"]
    assert contents[1]["parts"][0]["functionCall"]["id"] == "g1"
    assert contents[2]["parts"][0]["functionResponse"]["id"] == "g1"


@pytest.mark.parametrize(("model", "signature"), [(MODEL, NO_SIGNATURE), ("gemini-2.5-pro", None)])
async def test_calls_of_another_model_are_excused_from_their_signature_where_one_is_wanted(
    model_server: ModelServer, gemini: Provider, model: str, signature: str | None
) -> None:
    model_server.answer(f"/v1beta/models/{model}:streamGenerateContent", SAYING)
    await reply(gemini, user(), said("", call("c1"), call("c2")), result("c1"), result("c2"), model=model)
    first, second = model_server.asked[0].json["contents"][1]["parts"]
    assert first.get("thoughtSignature") == signature
    assert "thoughtSignature" not in second


async def test_the_request_says_what_the_service_wants_to_know(
    model_server: ModelServer, gemini: Provider
) -> None:
    model_server.answer(PATH, SAYING)
    await reply(gemini, user("Hi", PICTURE), model=MODEL, system="Be brief.", tools=(READ,), effort="low")
    asked = model_server.asked[0]
    assert asked.path == PATH + "?alt=sse"
    assert asked.headers["x-goog-api-key"] == KEY
    assert KEY not in asked.path
    image = {"inlineData": {"mimeType": "image/png", "data": PICTURE.data}}
    assert asked.json == {
        "contents": [{"role": "user", "parts": [image, {"text": "Hi"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "files__read", "description": "Read a file", "parameters": READ.parameters}
                ]
            }
        ],
        "generationConfig": {
            "maxOutputTokens": 65536,
            "thinkingConfig": {"includeThoughts": True, "thinkingLevel": "low"},
        },
    }


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        (MODEL, "none", {"includeThoughts": True, "thinkingLevel": "minimal"}),
        ("gemini-3.1-pro-preview", "none", {"includeThoughts": True, "thinkingLevel": "low"}),
        (MODEL, "", {"includeThoughts": True}),
        ("gemini-2.5-flash", "none", {"includeThoughts": False, "thinkingBudget": 0}),
        ("gemini-2.5-pro", "none", {"includeThoughts": False, "thinkingBudget": 128}),
        ("gemini-2.5-pro", "high", {"includeThoughts": True, "thinkingBudget": 24576}),
        ("gemini-2.0-flash", "high", None),
    ],
)
async def test_thinking_is_asked_for_in_the_way_of_each_model(
    model_server: ModelServer, gemini: Provider, model: str, effort: Any, thinking: Any
) -> None:
    model_server.answer(f"/v1beta/models/{model}:streamGenerateContent", SAYING)
    await reply(gemini, model=model, effort=effort)
    assert model_server.asked[0].json["generationConfig"].get("thinkingConfig") == thinking


async def test_a_broken_history_is_mended(model_server: ModelServer, gemini: Provider) -> None:
    model_server.answer(PATH, SAYING)
    messages = (
        said("I begin"),
        user("a"),
        said("", call("c1"), call("c2")),
        result("c1", "shot", PICTURE),
        user("go on"),
        result("c9", "lost"),
        said("half"),
        said("last"),
    )
    await reply(gemini, *messages, model=MODEL)
    contents = model_server.asked[0].json["contents"]
    assert [c["role"] for c in contents] == [
        "user",
        "model",
        "user",
        "model",
        "user",
        "user",
        "user",
        "model",
        "user",
    ]
    answers = [list(part) for part in contents[4]["parts"]]
    assert answers == [["functionResponse"], ["inlineData"], ["functionResponse"]]
    assert contents[7]["parts"] == [{"text": "half"}, {"text": "last"}]


async def test_halves_of_surrogates_neither_break_the_request_nor_the_reply(
    model_server: ModelServer, gemini: Provider
) -> None:
    chunks = [chunk({"text": "\ud83d"}), chunk({"text": "\ude00 \ud800"}, finish="STOP")]
    model_server.answer(PATH, Answer([b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks]))
    last = await reply(gemini, user("a\ud83db"), model=MODEL)
    assert last.message.text == "😀 \ufffd"
    assert model_server.asked[0].json["contents"][0]["parts"][0]["text"] == "a\ufffdb"


async def test_an_empty_reply_is_a_reply(model_server: ModelServer, gemini: Provider) -> None:
    model_server.answer(PATH, events({"candidates": [{"finishReason": "STOP"}]}))
    last = await reply(gemini, model=MODEL)
    assert (last.message.text, last.message.calls, last.finish) == ("", (), "stop")


async def test_a_call_that_the_model_wrote_wrongly_is_asked_for_again(
    model_server: ModelServer, gemini: Provider
) -> None:
    model_server.answer(PATH, events({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}))
    with pytest.raises(StreamCutError) as caught:
        await reply(gemini, model=MODEL)
    assert caught.value.failure.kind == "format"
    assert caught.value.failure.retryable


async def test_a_blocked_prompt_says_so(model_server: ModelServer, gemini: Provider) -> None:
    model_server.answer(PATH, events({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}))
    with pytest.raises(LLMRequestError, match="PROHIBITED_CONTENT") as caught:
        await reply(gemini, model=MODEL)
    assert caught.value.failure.kind == "content_filter"


async def test_an_array_instead_of_events_is_understood(model_server: ModelServer, gemini: Provider) -> None:
    model_server.answer(PATH, document([chunk({"text": "a"}), chunk({"text": "b"}, finish="MAX_TOKENS")]))
    last = await reply(gemini, model=MODEL)
    assert (last.message.text, last.finish) == ("ab", "length")


def gemini_error(code: int, status: str, message: str, **details: Any) -> Answer:
    error = {"code": code, "status": status, "message": message, "details": [details] if details else []}
    return document({"error": error}, code)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (gemini_error(400, "INVALID_ARGUMENT", "API key not valid.", reason="API_KEY_INVALID"), LLMAuthError),
        (gemini_error(403, "PERMISSION_DENIED", "no"), LLMAuthError),
        (gemini_error(404, "NOT_FOUND", "models/x is not found"), LLMRequestError),
        (gemini_error(400, "INVALID_ARGUMENT", "bad schema"), LLMRequestError),
        (gemini_error(429, "RESOURCE_EXHAUSTED", "quota", retryDelay="34.4s"), LLMRateLimitError),
        (gemini_error(503, "UNAVAILABLE", "overloaded"), LLMRateLimitError),
        (gemini_error(500, "INTERNAL", "oops"), LLMTimeoutError),
        (
            gemini_error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
            ),
            ContextOverflowError,
        ),
        (
            events(chunk({"text": "a"}), {"error": {"code": 503, "status": "UNAVAILABLE", "message": "x"}}),
            LLMRateLimitError,
        ),
    ],
)
async def test_errors_are_translated(
    model_server: ModelServer, gemini: Provider, answer: Answer, error: type[Exception]
) -> None:
    model_server.answer(PATH, answer)
    with pytest.raises(error) as caught:
        await reply(gemini, model=MODEL)
    assert KEY not in str(caught.value)
    if isinstance(caught.value, LLMRateLimitError) and answer.status == 429:
        assert caught.value.retry_after == 34.4


async def test_a_stream_without_a_reason_for_its_end_is_an_error(
    model_server: ModelServer, gemini: Provider
) -> None:
    model_server.answer(PATH, Answer(list(THINKS_AND_CALLS.body)[:-1]))
    with pytest.raises(StreamCutError):
        await reply(gemini, model=MODEL)


async def test_cancelling_closes_the_connection(model_server: ModelServer, gemini: Provider) -> None:
    model_server.answer(PATH, Answer([next(iter(THINKS_AND_CALLS.body)), HANG]))
    await leave_after_first(gemini.stream(request(model=MODEL)))
    await asyncio.wait_for(model_server.left.wait(), 5)


async def test_tokens_are_counted_by_the_service(model_server: ModelServer, gemini: Provider) -> None:
    model_server.answer(f"/v1beta/models/{MODEL}:countTokens", document({"totalTokens": 31}))
    assert await gemini.count_tokens(request(user("a"), model=MODEL, system="s", tools=(READ,))) == 31
    sent = model_server.asked[0].json["generateContentRequest"]
    assert sent["model"] == f"models/{MODEL}"
    assert sent["systemInstruction"]


async def test_models_that_talk_are_listed_with_their_windows(
    model_server: ModelServer, gemini: Provider
) -> None:
    chats = ["generateContent", "countTokens"]
    first = {
        "models": [
            {
                "name": f"models/{MODEL}",
                "inputTokenLimit": 9,
                "outputTokenLimit": 8,
                "supportedGenerationMethods": chats,
                "thinking": True,
            },
            {"name": "models/text-embedding-004", "supportedGenerationMethods": ["embedContent"]},
            {"name": "models/gemini-2.5-flash-preview-tts", "supportedGenerationMethods": chats},
        ],
        "nextPageToken": "a b",
    }
    second = {"models": [{"name": "models/gemma-4", "supportedGenerationMethods": chats}]}
    model_server.answer("/v1beta/models", document(first), document(second))
    models = await gemini.models()
    assert [(m.name, m.context, m.max_output, m.thinking) for m in models] == [
        (MODEL, 9, 8, True),
        ("gemma-4", 0, 0, False),
    ]
    assert model_server.asked[1].path.endswith("pageToken=a%20b")


async def test_a_base_url_with_a_version_is_left_as_it_is(model_server: ModelServer) -> None:
    provider = opened("gemini", ProviderSettings(base_url=model_server.url + "/api/v1/"))
    model_server.answer("/api/v1/models/x:streamGenerateContent", SAYING)
    assert (await reply(provider, model="x")).message.text == "ok"
    assert "x-goog-api-key" not in model_server.asked[0].headers
    await provider.aclose()


def test_a_tool_without_arguments_has_no_parameters() -> None:
    assert convert_schema({"type": "object", "properties": {}}) is None


def test_an_argument_with_any_keys_is_asked_for_as_text() -> None:
    args: Any = {"type": "object", "description": "that tool's arguments"}
    found = convert_schema(
        {"type": "object", "properties": {"args": args, "list": {"type": "array", "items": args}}}
    )
    assert found is not None
    assert found["properties"] == {
        "args": {"type": "string", "description": "that tool's arguments (a JSON object as text)"},
        "list": {"type": "array", "items": args},
    }


def test_schemas_keep_what_they_mean_in_what_gemini_takes() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "$defs": {
            "Edit": {"type": "object", "properties": {"search": {"type": "string"}}, "required": ["search"]}
        },
        "properties": {
            "edits": {"type": "array", "items": {"$ref": "#/$defs/Edit"}},
            "line": {
                "anyOf": [{"type": "integer", "exclusiveMinimum": 0}, {"type": "null"}],
                "default": None,
            },
            "kind": {"const": "file"},
            "depth": {"enum": [1, 2], "type": "integer", "description": "How deep."},
            "when": {"type": "string", "format": "uuid"},
            "any": {"type": ["string", "null"]},
            "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["edits", "absent"],
    }
    assert convert_schema(schema) == {
        "type": "object",
        "properties": {
            "edits": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"search": {"type": "string"}},
                    "required": ["search"],
                },
            },
            "line": {"type": "integer", "nullable": True},
            "kind": {"type": "string", "enum": ["file"]},
            "depth": {"type": "integer", "description": "How deep. One of 1, 2."},
            "when": {"type": "string"},
            "any": {"type": "string", "nullable": True},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["edits"],
    }


_KEYS = st.sampled_from(
    [
        "type",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "enum",
        "const",
        "properties",
        "items",
        "required",
        "format",
        "default",
        "title",
    ]
)
_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["object", "array", "string", "null", "#/a", "#/$ref"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(_KEYS, _JSON, max_size=5))
def test_no_schema_breaks_the_cleaning_and_nothing_unknown_is_left(schema: dict[str, Any]) -> None:
    cleaned = convert_schema(schema)
    for node in nodes(cleaned) if cleaned is not None else []:
        assert not {"$ref", "oneOf", "allOf", "const", "additionalProperties"} & set(node)
        assert set(node.get("required", [])) <= set(node.get("properties", {}))


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The schema and every schema within it; names of properties are no keywords."""
    yield node
    inner = [*node.get("properties", {}).values(), *node.get("anyOf", [])]
    for child in inner + ([node["items"]] if "items" in node else []):
        yield from nodes(child)


async def test_every_tool_of_a_request_is_declared(model_server: ModelServer, gemini: Provider) -> None:
    bare = ToolSpec(name="git/status", description="State", parameters={"type": "object"}, effect="read")
    model_server.answer(PATH, SAYING)
    await reply(gemini, model=MODEL, tools=(READ, bare))
    (declared,) = model_server.asked[0].json["tools"]
    assert [d["name"] for d in declared["functionDeclarations"]] == ["files__read", "git__status"]
    assert "parameters" not in declared["functionDeclarations"][1]
