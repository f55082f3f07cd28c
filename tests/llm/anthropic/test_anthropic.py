from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from daiku.domain.config import Price, ProviderSettings
from daiku.domain.errors import (
    ContextOverflowError,
    LLMAuthError,
    LLMRateLimitError,
    LLMRequestError,
    LLMTimeoutError,
    StreamCutError,
)
from daiku.domain.messages import AssistantMessage, ToolMessage
from daiku.models.provider import Provider
from daiku.models.transport.history import UNANSWERED
from tests.llm.conftest import Closing
from tests.llm.server import DROP, HANG, Answer, ModelServer, document, events
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

PATH = "/v1/messages"
OPUS = "claude-opus-5-5"


@pytest.fixture
def claude(model_server: ModelServer, closing_after: Closing) -> Provider:
    return closing_after(opened("anthropic", settings(model_server)))


def start(**usage: int) -> dict[str, Any]:
    message = {"model": "claude-opus-5-5-20260922", "usage": {"input_tokens": 5, "output_tokens": 1, **usage}}
    return {"type": "message_start", "message": message}


def block(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **more}}


def delta(index: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **more}}


def end(reason: str = "end_turn", **more: Any) -> tuple[dict[str, Any], ...]:
    usage = {"output_tokens": 42}
    return (
        {"type": "message_delta", "delta": {"stop_reason": reason, **more}, "usage": usage},
        {"type": "message_stop"},
    )


def saying(text: str) -> Answer:
    return events(start(), block(0, "text", text=""), delta(0, "text_delta", text=text), *end())


THINKS_AND_CALLS = events(
    start(cache_read_input_tokens=1000, cache_creation_input_tokens=20),
    block(0, "thinking", thinking="", signature=""),
    delta(0, "thinking_delta", thinking="考え"),
    delta(0, "thinking_delta", thinking="る"),
    delta(0, "signature_delta", signature="sig=="),
    block(1, "redacted_thinking", data="sealed"),
    block(2, "text", text=""),
    delta(2, "text_delta", text="読みます"),
    block(3, "tool_use", id="tu1", name="files__read", input={}),
    delta(3, "input_json_delta", partial_json='{"path": "日'),
    delta(3, "input_json_delta", partial_json='本.py"}'),
    block(4, "tool_use", id="tu2", name="files__read", input={}),
    delta(4, "input_json_delta", partial_json='{"path": "b.py"}'),
    *end("tool_use"),
)


async def test_text_thinking_and_parallel_calls_arrive_as_they_come(
    model_server: ModelServer, claude: Provider
) -> None:
    model_server.answer(PATH, THINKS_AND_CALLS)
    heard = await hear(claude, model=OPUS, tools=(READ,))
    assert (text_of(heard), thinking_of(heard)) == ("読みます", "考える")
    last = closing(heard)
    assert [(c.id, c.tool, c.args) for c in last.message.calls] == [
        ("tu1", "files/read", {"path": "日本.py"}),
        ("tu2", "files/read", {"path": "b.py"}),
    ]
    assert last.finish == "tool_calls"
    usage = last.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (1025, 1000, 42)
    # 5 fresh × 4 + 20 written × 5 + 1000 read × 0.2 + 42 out × 20, USD per million
    assert usage.cost == pytest.approx((20 + 100 + 200 + 840) / 1e6)


async def test_thinking_goes_back_unchanged_and_in_its_order(
    model_server: ModelServer, claude: Provider
) -> None:
    model_server.answer(PATH, THINKS_AND_CALLS, saying("done"))
    first = (await reply(claude, model=OPUS, tools=(READ,))).message
    await reply(claude, user(), first, result("tu1"), result("tu2"), model=OPUS, tools=(READ,))
    sent = model_server.asked[-1].json["messages"]
    assert sent[1]["content"] == [
        {"type": "thinking", "thinking": "考える", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "text", "text": "読みます"},
        {"type": "tool_use", "id": "tu1", "name": "files__read", "input": {"path": "日本.py"}},
        {"type": "tool_use", "id": "tu2", "name": "files__read", "input": {"path": "b.py"}},
    ]
    assert [b["type"] for b in sent[2]["content"]] == ["tool_result", "tool_result"]


async def test_thinking_survives_the_journal(model_server: ModelServer, claude: Provider) -> None:
    model_server.answer(PATH, THINKS_AND_CALLS, saying("done"))
    first = (await reply(claude, model=OPUS, tools=(READ,))).message
    read_back = AssistantMessage.model_validate_json(first.model_dump_json())
    fresh = opened("anthropic", settings(model_server))
    await reply(fresh, user(), read_back, result("tu1"), result("tu2"), model=OPUS, session="s")
    await fresh.aclose()
    assert model_server.asked[-1].json["messages"][1]["content"][0]["signature"] == "sig=="


@pytest.mark.parametrize("change", ["another model", "other words before it", "an edited text"])
async def test_thinking_is_left_out_where_it_no_longer_belongs(
    model_server: ModelServer, claude: Provider, change: str
) -> None:
    model_server.answer(PATH, THINKS_AND_CALLS, saying("done"))
    first = (await reply(claude, model=OPUS, tools=(READ,))).message
    model, before = OPUS, user()
    if change == "another model":
        model = "claude-sonnet-5-5"
    elif change == "other words before it":
        before = user("Summary of what was before")
    else:
        first = first.model_copy(update={"text": "***"})
    await reply(claude, before, first, result("tu1"), result("tu2"), model=model, tools=(READ,))
    kinds = [b["type"] for b in model_server.asked[-1].json["messages"][1]["content"]]
    assert kinds == ["text", "tool_use", "tool_use"]


async def test_the_request_says_what_the_service_wants_to_know(
    model_server: ModelServer, claude: Provider
) -> None:
    model_server.answer(PATH, saying("ok"))
    await reply(claude, user("Hi"), model=OPUS, system="Be brief.", tools=(READ,), effort="high")
    asked = model_server.asked[0]
    assert asked.json == {
        "model": OPUS,
        "max_tokens": 64000,
        "stream": True,
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [
            {
                "name": "files__read",
                "description": "Read a file",
                "input_schema": READ.parameters,
                "cache_control": {"type": "ephemeral"},
            }
        ],
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}],
            }
        ],
    }
    assert KEY in asked.headers["authorization"]
    assert asked.headers["x-api-key"] == KEY  # what servers that only speak like it look at
    assert "anthropic-version" in asked.headers
    assert asked.headers["content-type"] == "application/json"


async def test_cache_breakpoints_stand_at_the_end_and_where_the_request_before_had_its_end(
    model_server: ModelServer, claude: Provider
) -> None:
    model_server.answer(PATH, saying("ok"))
    messages = (user("a"), said("b", call()), result(), said("c"), user("d"))
    await reply(claude, *messages, model=OPUS, system="s", session="one")
    sent = model_server.asked[0].json["messages"]
    marked = [(m["role"], i) for i, m in enumerate(sent) for b in m["content"] if "cache_control" in b]
    assert marked == [("user", 2), ("user", 4)]
    body = model_server.asked[0].body
    assert body.count(b"cache_control") <= 4


async def test_the_history_is_encoded_once_and_each_request_begins_with_the_one_before(
    model_server: ModelServer, claude: Provider
) -> None:
    model_server.answer(PATH, saying("ok"))
    messages = (user("a" * 50), said("b", call()), result(), said("c"))
    await reply(claude, *messages[:3], model=OPUS, session="s")
    await reply(claude, *messages, user("d"), model=OPUS, session="s")
    strip = [
        asked.body.replace(b',"cache_control":{"type":"ephemeral"}', b"") for asked in model_server.asked
    ]
    assert strip[1].startswith(strip[0].removesuffix(b"]}"))


@pytest.mark.parametrize(
    ("model", "effort", "thinking", "config"),
    [
        ("claude-opus-5-5", "none", {"type": "adaptive", "display": "summarized"}, {"effort": "low"}),
        ("claude-sonnet-5-5", "none", {"type": "between_tools"}, None),
        ("claude-opus-4-6", "none", {"type": "disabled"}, None),
        ("claude-opus-4-6", "", {"type": "adaptive", "display": "summarized"}, None),
        ("claude-haiku-4-5", "medium", {"type": "enabled", "budget_tokens": 12000}, None),
        ("claude-haiku-4-5", "", None, None),
        ("claude-3-opus-20240229", "high", None, None),
        ("claude-newer-9", "low", {"type": "adaptive", "display": "summarized"}, {"effort": "low"}),
        ("some-other-model", "high", None, None),
    ],
)
async def test_thinking_is_asked_for_in_the_way_of_each_model(
    model_server: ModelServer, claude: Provider, model: str, effort: Any, thinking: Any, config: Any
) -> None:
    model_server.answer(PATH, saying("ok"))
    await reply(claude, model=model, effort=effort)
    sent = model_server.asked[0].json
    assert (sent.get("thinking"), sent.get("output_config")) == (thinking, config)
    if thinking and "budget_tokens" in thinking:
        assert sent["max_tokens"] > thinking["budget_tokens"]


async def test_a_budget_is_not_asked_for_in_the_middle_of_a_step_that_began_without_thinking(
    model_server: ModelServer, claude: Provider
) -> None:
    model_server.answer(PATH, saying("ok"))
    await reply(claude, user(), said("", call()), result(), model="claude-haiku-4-5", effort="high")
    assert "thinking" not in model_server.asked[0].json


async def test_the_output_limit_is_what_the_model_can(model_server: ModelServer, claude: Provider) -> None:
    model_server.answer(PATH, saying("ok"))
    for model, wanted, limit in (
        ("claude-3-opus-20240229", 0, 4096),
        ("claude-3-opus-20240229", 100_000, 4096),
        (OPUS, 1000, 1000),
        ("unknown", 0, 8192),
    ):
        await reply(claude, model=model, max_output=wanted)
        assert model_server.asked[-1].json["max_tokens"] == limit


async def test_pictures_go_with_the_person_and_with_results(
    model_server: ModelServer, claude: Provider
) -> None:
    model_server.answer(PATH, saying("ok"), saying("ok"))
    messages = (user("look", PICTURE), said("", call()), result("c1", "shot", PICTURE))
    await reply(claude, *messages, model=OPUS)
    first, _, last = model_server.asked[0].json["messages"]
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE.data}
    assert first["content"][0] == {"type": "image", "source": source}
    assert last["content"][0]["content"] == [
        {"type": "text", "text": "shot"},
        {"type": "image", "source": source},
    ]
    failed = result("c1", "no shot", PICTURE, ok=False)  # the service refuses pictures in an error
    await reply(claude, *messages[:2], failed, model=OPUS)
    assert model_server.asked[1].json["messages"][2]["content"][0]["content"] == "no shot"


async def test_a_broken_history_is_mended(model_server: ModelServer, claude: Provider) -> None:
    model_server.answer(PATH, saying("ok"))
    lost = ToolMessage(call_id="gone", tool="files/read", ok=True, text="of an earlier call")
    messages = (
        said("I begin"),  # nobody asked
        user(""),
        said("", call("c1"), call("c.2|x")),
        result("c1", "failed", ok=False),
        user("go on"),  # c.2|x was never answered
        lost,
        said("   ", call("c1")),  # an id again, and a text of blanks
        result("c1"),
        said("last"),
    )
    await reply(claude, *messages, model=OPUS)
    sent = model_server.asked[0].json["messages"]
    assert [m["role"] for m in sent] == ["user", "assistant"] * 4 + ["user"]
    ids = [b["id"] for m in sent for b in m["content"] if b["type"] == "tool_use"]
    answers = [b for m in sent for b in m["content"] if b["type"] == "tool_result"]
    assert len(set(ids)) == 3
    assert [b["tool_use_id"] for b in answers] == ids
    assert answers[0]["is_error"] is True
    assert answers[1]["content"] == UNANSWERED
    assert all(b.get("text", "x").strip() for m in sent for b in m["content"])


async def test_calls_that_are_still_open_at_the_end_are_answered(
    model_server: ModelServer, claude: Provider
) -> None:
    model_server.answer(PATH, saying("ok"))
    await reply(claude, user(), said("", call()), model=OPUS, session="s")
    assert model_server.asked[0].json["messages"][-1]["content"][0]["content"] == UNANSWERED
    await reply(claude, user(), said("", call()), result("c1", "late"), model=OPUS, session="s")
    assert model_server.asked[1].json["messages"][-1]["content"][0]["content"] == "late"


async def test_halves_of_surrogates_neither_break_the_request_nor_the_reply(
    model_server: ModelServer, claude: Provider
) -> None:
    halves = [delta(0, "text_delta", text="\ud83d"), delta(0, "text_delta", text="\ude00 and \ud800")]
    pieces = [json.dumps(p).encode() for p in (start(), block(0, "text", text=""), *halves, *end())]
    model_server.answer(PATH, Answer([b"data: " + p + b"\n\n" for p in pieces]))
    heard = await hear(claude, user("a\ud83db"), model=OPUS)
    assert text_of(heard) + "\ufffd" == closing(heard).message.text == "😀 and \ufffd"
    closing(heard).message.text.encode()
    assert model_server.asked[0].json["messages"][0]["content"][0]["text"] == "a\ufffdb"


@pytest.mark.parametrize("arguments", ['{"path": "a', "[1, 2]", "nonsense", '{"n": NaN}'])
async def test_malformed_arguments_make_a_malformed_call(
    model_server: ModelServer, claude: Provider, arguments: str
) -> None:
    pieces = (
        block(0, "tool_use", id="t", name="files__read"),
        delta(0, "input_json_delta", partial_json=arguments),
    )
    model_server.answer(PATH, events(start(), *pieces, *end("max_tokens")), saying("ok"))
    first = await reply(claude, model=OPUS)
    assert first.finish == "length"
    assert first.message.calls[0].malformed == arguments
    await reply(claude, user(), first.message, result("t", ok=False), model=OPUS)
    assert model_server.asked[1].json["messages"][1]["content"][0]["input"] == {
        "malformed_arguments": arguments
    }


async def test_long_arguments_take_time_in_proportion(model_server: ModelServer, claude: Provider) -> None:
    text = "line of code\n" * 100_000
    whole = json.dumps({"path": "a", "content": text})
    pieces = [whole[i : i + 4096] for i in range(0, len(whole), 4096)]
    deltas = [delta(0, "input_json_delta", partial_json=p) for p in pieces]
    model_server.answer(
        PATH, events(start(), block(0, "tool_use", id="t", name="files__write"), *deltas, *end())
    )
    assert (await reply(claude, model=OPUS)).message.calls[0].args["content"] == text


async def test_an_empty_reply_is_a_reply(model_server: ModelServer, claude: Provider) -> None:
    model_server.answer(PATH, events(start(), *end()))
    last = await reply(claude, model=OPUS)
    assert (last.message.text, last.message.calls, last.finish) == ("", (), "stop")


async def test_a_refusal_says_why(model_server: ModelServer, claude: Provider) -> None:
    details = {"type": "refusal", "category": "bio", "explanation": "This I will not do."}
    model_server.answer(PATH, events(start(), *end("refusal", stop_details=details)))
    last = await reply(claude, model=OPUS)
    assert (last.finish, last.message.text) == ("content_filter", "This I will not do.")


async def test_a_service_that_does_not_stream_is_understood(
    model_server: ModelServer, claude: Provider
) -> None:
    content = [
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "t", "name": "files__read", "input": {"path": "a"}},
    ]
    whole = {"type": "message", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 3}}
    model_server.answer(PATH, document(whole))
    last = await reply(claude, model=OPUS)
    assert (last.message.text, last.message.calls[0].args) == ("hi", {"path": "a"})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (document({"error": {"type": "authentication_error", "message": "no"}}, 401), LLMAuthError),
        (document({"error": {"type": "not_found_error", "message": "model: x"}}, 404), LLMRequestError),
        (document({"error": {"type": "invalid_request_error", "message": "bad"}}, 400), LLMRequestError),
        (
            document({"error": {"type": "rate_limit_error", "message": "slow"}}, 429, retry_after="7"),
            LLMRateLimitError,
        ),
        (document({"error": {"type": "overloaded_error", "message": "busy"}}, 529), LLMRateLimitError),
        (document({"error": {"type": "api_error", "message": "oops"}}, 500), LLMTimeoutError),
        (
            document(
                {"error": {"type": "invalid_request_error", "message": "prompt is too long: 300000 tokens"}},
                400,
            ),
            ContextOverflowError,
        ),
        (
            document({"error": {"type": "request_too_large", "message": "too large"}}, 413),
            ContextOverflowError,
        ),
        (
            events(start(), {"type": "error", "error": {"type": "overloaded_error", "message": "b"}}),
            LLMRateLimitError,
        ),
    ],
)
async def test_errors_are_translated_and_never_show_the_key(
    model_server: ModelServer, claude: Provider, answer: Answer, error: type[Exception]
) -> None:
    model_server.answer(PATH, answer)
    with pytest.raises(error) as caught:
        await reply(claude, model=OPUS)
    assert KEY not in str(caught.value)
    assert len(model_server.asked) == 1  # the SDK does not retry: the adapter does
    if answer.status == 429:
        assert isinstance(caught.value, LLMRateLimitError)
        assert caught.value.retry_after == 7.0


@pytest.mark.parametrize("how", ["end", DROP])
async def test_a_stream_without_its_closing_event_is_an_error(
    model_server: ModelServer, claude: Provider, how: str
) -> None:
    whole = list(THINKS_AND_CALLS.body)
    cut = whole[:-1] if how == "end" else [*whole[:-1], DROP]
    model_server.answer(PATH, Answer(cut, headers=THINKS_AND_CALLS.headers))
    with pytest.raises((StreamCutError, LLMTimeoutError)) as caught:
        await reply(claude, model=OPUS)
    assert caught.value.failure.retryable


async def test_cancelling_closes_the_connection(model_server: ModelServer, claude: Provider) -> None:
    some = list(saying("some").body)[:3]
    model_server.answer(PATH, Answer([*some, HANG], headers={"content-type": "text/event-stream"}))
    await leave_after_first(claude.stream(request(model=OPUS)))
    await asyncio.wait_for(model_server.left.wait(), 5)


@pytest.mark.slow
async def test_silence_is_bounded_and_progress_is_not(model_server: ModelServer) -> None:
    quick = ProviderSettings(base_url=model_server.url, first_token_seconds=30, idle_seconds=1)
    provider = opened("anthropic", quick)
    some = list(saying("some").body)[:3]
    model_server.answer(PATH, Answer([*some, HANG], headers={"content-type": "text/event-stream"}))
    with pytest.raises(LLMTimeoutError, match="nothing"):
        await reply(provider, model=OPUS)
    await provider.aclose()


async def test_a_service_that_is_not_there_is_a_lost_connection() -> None:
    provider = opened("anthropic", ProviderSettings(base_url="http://127.0.0.1:9"))
    with pytest.raises(LLMTimeoutError) as caught:
        await reply(provider, model=OPUS)
    assert caught.value.failure.kind == "connection"
    assert "127.0.0.1:9" in caught.value.failure.message
    await provider.aclose()


async def test_a_base_url_with_its_version_and_own_headers_is_used(model_server: ModelServer) -> None:
    own = ProviderSettings(
        base_url=model_server.url + "/proxy/v1/", headers={"X-Team": "a"}, price={OPUS: Price(input=1)}
    )
    provider = opened("anthropic", own)
    model_server.answer("/proxy/v1/messages", saying("ok"))
    last = await reply(provider, model=OPUS)
    await provider.aclose()
    assert model_server.asked[0].headers["x-team"] == "a"
    assert last.usage.cost == pytest.approx(5 / 1e6)


async def test_tokens_are_counted_by_the_service(model_server: ModelServer, claude: Provider) -> None:
    model_server.answer("/v1/messages/count_tokens", document({"input_tokens": 123}))
    counted = await claude.count_tokens(request(user("a"), model=OPUS, system="s", tools=(READ,)))
    assert counted == 123
    assert not {"max_tokens", "stream"} & set(model_server.asked[0].json)
    model_server.answer("/v1/messages/count_tokens", document({}, 404))
    assert await claude.count_tokens(request(model=OPUS)) is None


async def test_models_are_listed_page_by_page_with_their_windows(
    model_server: ModelServer, claude: Provider
) -> None:
    can = {"image_input": {"supported": True}, "thinking": {"supported": False}}
    first = {
        "data": [
            {"id": OPUS, "max_input_tokens": 1_000_000, "max_tokens": 128_000, "capabilities": can},
            {"id": "claude-2", "lifecycle": "retired"},
        ],
        "has_more": True,
        "last_id": "claude-2",
    }
    model_server.answer(
        "/v1/models", document(first), document({"data": [{"id": "claude-x"}], "has_more": False})
    )
    models = await claude.models()
    assert [(m.name, m.context, m.images, m.thinking) for m in models] == [
        (OPUS, 1_000_000, True, False),
        ("claude-x", 0, True, False),
    ]
    assert "after_id=claude-2" in model_server.asked[1].path
