from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from daiku.domain.base import JsonObject
from daiku.domain.config import Price, ProviderSettings
from daiku.domain.errors import (
    ContextOverflowError,
    DaikuError,
    LLMAuthError,
    LLMError,
    LLMRateLimitError,
    LLMRequestError,
    LLMTimeoutError,
    UsageError,
)
from daiku.domain.messages import ModelEvent, Reply, Restarted, TextDelta, Usage
from daiku.library.inference import (
    ClaudeClient,
    GeminiClient,
    LLMClient,
    LMStudioClient,
    OllamaClient,
    OpenAIClient,
)
from daiku.models.adapter import Clock, LLMAdapter
from daiku.models.model import Models, Probe, resolve_model
from daiku.models.provider import ModelChoice
from daiku.models.table import PROVIDERS, LLMSettings
from daiku.run.rules.outside import LanguageModelBridge
from tests.cases import for_each
from tests.llm.server import HANG, LEAVE, Answer, ModelServer, document, events
from tests.llm.talk import KEY, READ, call, closing, request, result, said, text_of, user

CHAT = "/v1/chat/completions"


def settings(**more: Any) -> ProviderSettings:
    return ProviderSettings(**more)


def keyed(**more: Any) -> ProviderSettings:
    return ProviderSettings(api_key=SecretStr(KEY), **more)


def saying(text: str, *, usage: bool = True) -> Answer:
    pieces = [{"choices": [{"delta": {"content": piece}}]} for piece in text.split("|")]
    end: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    if usage:
        end["usage"] = {"prompt_tokens": 100, "completion_tokens": 10}
    return events(*pieces, end, done=True)


def failing(status: int, message: str = "no", **headers: str) -> Answer:
    return document({"error": {"message": message}}, status, **headers)


CUT = Answer(list(saying("half|more").body)[:1], headers={"content-type": "text/event-stream"})


class Waits:
    """A clock that does not wait, and what it was asked to."""

    def __init__(self) -> None:
        self.asked: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.asked.append(seconds)
        await asyncio.sleep(0)

    @property
    def clock(self) -> Clock:
        return Clock(sleep=self.sleep, chance=lambda: 0.0)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
async def models(model_server: ModelServer, waits: Waits) -> AsyncIterator[Models]:
    made = Models(config(model_server), clock=waits.clock)
    yield made
    await made.aclose()


def config(server: ModelServer, **more: Any) -> LLMSettings:
    compatible = settings(base_url=server.url + "/v1", price={"m": Price(input=10, output=100)})
    fields: dict[str, Any] = {"model": "compatible/m", "compatible": compatible, **more}
    return LLMSettings(**fields)


async def hear(adapter: LLMAdapter, **more: Any) -> list[ModelEvent]:
    return [event async for event in adapter.stream(request(**more))]


# -- retries and the fallback -------------------------------------------------------------


@pytest.mark.parametrize(
    "status", [429, *(pytest.param(s, marks=pytest.mark.slow) for s in (408, 500, 502, 503, 504, 529))]
)
async def test_what_may_pass_is_tried_three_further_times(
    model_server: ModelServer, models: Models, waits: Waits, status: int
) -> None:
    """C1.6, R1.79: the same model is asked three further times, of 408 and 502 as of its like."""
    model_server.answer(CHAT, *[failing(status)] * 3, saying("at last"))
    heard = await hear(models.resolve())
    assert [e.attempt for e in heard if isinstance(e, Restarted)] == [1, 2, 3]
    assert closing(heard).message.text == "at last"
    assert waits.asked == [0.5, 1.0, 2.0]
    assert len(model_server.asked) == 4


async def test_a_fourth_failure_is_told_with_the_number_of_tries(
    model_server: ModelServer, models: Models
) -> None:
    """R1.44, R1.81: without a fallback the failure is told, as an LLMRateLimitError."""
    model_server.answer(CHAT, failing(429, "slow down"))
    with pytest.raises(LLMRateLimitError, match=r"slow down.*4 tries"):
        await hear(models.resolve())
    assert len(model_server.asked) == 4


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (failing(400), LLMRequestError),
        (failing(401), LLMAuthError),
        (failing(403), LLMAuthError),
        (failing(404), LLMRequestError),
        (failing(400, "This model's maximum context length is 8192 tokens"), ContextOverflowError),
    ],
)
async def test_what_would_fail_again_is_neither_tried_again_nor_given_to_the_fallback(
    model_server: ModelServer, waits: Waits, answer: Answer, error: type[LLMError]
) -> None:
    models = Models(config(model_server, fallback_model="compatible/other"), clock=waits.clock)
    model_server.answer(CHAT, answer)
    with pytest.raises(error):
        await hear(models.resolve())
    assert (len(model_server.asked), waits.asked) == (1, [])
    await models.aclose()


async def test_retry_after_is_waited_for(model_server: ModelServer, models: Models, waits: Waits) -> None:
    """C1.6: a service that says when to come again is asked then."""
    model_server.answer(CHAT, failing(429, retry_after="17"), saying("ok"))
    await hear(models.resolve())
    assert waits.asked == [17.0]


async def test_a_stream_that_breaks_after_its_first_words_is_begun_anew(
    model_server: ModelServer, models: Models
) -> None:
    model_server.answer(CHAT, CUT, saying("half|more"))
    heard = await hear(models.resolve())
    kinds = [type(event) for event in heard]
    assert kinds == [TextDelta, Restarted, TextDelta, TextDelta, Reply]
    assert closing(heard).message.text == "halfmore"


async def test_a_server_that_closes_each_connection_is_not_said_to_be_out_of_reach(
    model_server: ModelServer, models: Models
) -> None:
    model_server.answer(CHAT, Answer([LEAVE]))
    with pytest.raises(LLMTimeoutError, match=r"was lost.*4 tries"):
        await hear(models.resolve())


async def test_a_lost_connection_is_tried_again(model_server: ModelServer, waits: Waits) -> None:
    """R1.44: what does not answer is an LLMTimeoutError."""
    dead = LLMSettings(model="compatible/m", compatible=settings(base_url="http://127.0.0.1:9/v1"))
    models = Models(dead, clock=waits.clock)
    with pytest.raises(LLMTimeoutError, match="4 tries"):
        await hear(models.resolve())
    assert len(waits.asked) == 3
    await models.aclose()


async def test_then_the_fallback_is_asked_once_through_the_same_policy(
    model_server: ModelServer, waits: Waits
) -> None:
    """C1.6, R1.80: behind them the fallback model is asked."""
    models = Models(config(model_server, fallback_model="compatible/other"), clock=waits.clock)
    model_server.answer(CHAT, *[failing(503)] * 5, saying("from the other"))
    heard = await hear(models.resolve())
    assert [asked.json["model"] for asked in model_server.asked] == ["m"] * 4 + ["other"] * 2
    assert "Continuing with compatible/other" in [e.reason for e in heard if isinstance(e, Restarted)][3]
    assert closing(heard).usage.model == "compatible/other"
    model_server.asked.clear()
    model_server.answer(CHAT, failing(503))
    with pytest.raises(LLMRateLimitError):
        await hear(models.resolve())
    assert len(model_server.asked) == 8  # 4 and 4: the fallback has none of its own
    await models.aclose()


async def test_a_fallback_of_another_provider_gets_the_conversation_in_its_own_protocol(
    model_server: ModelServer, waits: Waits
) -> None:
    made = config(model_server, fallback_model="ollama/qwen3", ollama=settings(base_url=model_server.url))
    models = Models(made, clock=waits.clock)
    model_server.answer(CHAT, failing(502))
    model_server.answer("/api/show", document({"capabilities": ["completion", "tools"]}))
    model_server.answer(
        "/api/chat", Answer([b'{"message":{"content":"hi"},"done":true,"done_reason":"stop"}\n'])
    )
    messages = (user(), said("", call()), result())
    heard = [e async for e in models.resolve().stream(request(*messages, tools=(READ,)))]
    assert closing(heard).message.text == "hi"
    assert [m["role"] for m in model_server.asked[-1].json["messages"]] == ["user", "assistant", "tool"]
    await models.aclose()


async def test_a_fallback_that_cannot_be_used_leaves_the_first_failure_standing(
    model_server: ModelServer, waits: Waits
) -> None:
    models = Models(config(model_server, fallback_model="anthropic/claude-opus-5"), clock=waits.clock)
    model_server.answer(CHAT, failing(500, "the real cause"))
    with pytest.raises(LLMTimeoutError, match="the real cause"):
        await hear(models.resolve())
    await models.aclose()


async def test_models_are_asked_side_by_side_on_one_loop(model_server: ModelServer, models: Models) -> None:
    """R1.75: while one model is waited for, others are asked."""
    model_server.answer(CHAT, Answer([HANG], headers=CUT.headers))
    waiting = [asyncio.ensure_future(hear(models.resolve())) for _ in range(4)]
    async with asyncio.timeout(20):
        while len(model_server.asked) < 4:
            await asyncio.sleep(0.005)
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)


async def test_cancelling_ends_a_wait_at_once(model_server: ModelServer) -> None:
    waiting = asyncio.Event()

    async def forever(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    models = Models(config(model_server), clock=Clock(sleep=forever))
    model_server.answer(CHAT, failing(503))
    task = asyncio.create_task(hear(models.resolve()))
    await asyncio.wait_for(waiting.wait(), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await models.aclose()


async def test_leaving_early_closes_the_connection(model_server: ModelServer, models: Models) -> None:
    model_server.answer(CHAT, Answer([*CUT.body, HANG], headers=CUT.headers))
    stream = models.resolve().stream(request())
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()
    await asyncio.wait_for(model_server.left.wait(), 5)


# -- usage, prices, counts ----------------------------------------------------------------


async def test_the_reply_says_which_model_and_what_it_cost(model_server: ModelServer, models: Models) -> None:
    model_server.answer(CHAT, saying("ok"))
    usage = closing(await hear(models.resolve())).usage
    assert usage.model == "compatible/m"
    assert usage.cost == pytest.approx((100 * 10 + 10 * 100) / 1e6)


async def test_a_service_that_counts_nothing_is_estimated(model_server: ModelServer, models: Models) -> None:
    model_server.answer(CHAT, saying("a few words", usage=False))
    usage = closing(await hear(models.resolve())).usage
    assert usage.prompt_tokens > 0
    assert 3 <= usage.completion_tokens <= 12


async def test_tokens_are_counted_by_the_service_or_estimated(model_server: ModelServer) -> None:
    """X.27: by the service where it counts."""
    claude = LLMSettings(anthropic=keyed(base_url=model_server.url))
    models = Models(claude)
    adapter = models.resolve("anthropic/claude-opus-5-5")
    model_server.answer("/v1/messages/count_tokens", document({"input_tokens": 77}))
    assert await adapter.count_tokens((user("a"),)) == 77
    assert await adapter.count_tokens(request(user("a"), system="s")) == 77
    model_server.answer("/v1/messages/count_tokens", failing(500))
    assert 0 < await adapter.count_tokens((user("a"),)) < 20
    assert 0 < await adapter.count_tokens("日本語") <= 5
    assert await adapter.count_tokens(()) == 0
    await models.aclose()


def test_names_are_normalised_by_the_port() -> None:
    assert LLMAdapter.normalize_model_name("gpt_4o") == "gpt-4o"
    assert LLMAdapter.normalize_model_name("claude_3_opus") == "claude-3-opus"


def test_the_window_is_the_settings_else_what_is_known() -> None:
    llm = LLMSettings(
        anthropic=keyed(), openai=keyed(context_length=5000), ollama=settings(base_url="http://127.0.0.1:9")
    )
    models = Models(llm)
    assert models.resolve("anthropic/claude-opus-5-5").context == 1_000_000
    assert models.resolve("openai/gpt-4o").context == 5000
    assert models.resolve("ollama/anything").context == 32_768
    assert models.resolve("anthropic/unheard-of").context == 0


async def test_once_listed_a_models_own_window_is_known(model_server: ModelServer, models: Models) -> None:
    adapter = models.resolve()
    assert adapter.context == 0
    model_server.answer("/v1/models", document({"data": [{"id": "m", "context_length": 4321}]}))
    await models.list()
    assert adapter.context == 4321


# -- text protocols -----------------------------------------------------------------------


async def test_a_model_without_tools_speaks_an_action_list(model_server: ModelServer, waits: Waits) -> None:
    compatible = settings(base_url=model_server.url + "/v1", tool_protocol="action_list")
    models = Models(config(model_server, compatible=compatible), clock=waits.clock)
    actions = {"comment": "I read it.", "actions": [{"operation": "files/read", "args": {"path": "a.py"}}]}
    model_server.answer(
        CHAT, saying('{"comment": "broken|", "actions": [{"oper'), saying(json.dumps(actions))
    )
    heard = await hear(models.resolve(), tools=(READ,))
    last = closing(heard)
    assert [(c.tool, c.args) for c in last.message.calls] == [("files/read", {"path": "a.py"})]
    assert (last.message.text, last.finish) == ("I read it.", "tool_calls")
    assert last.usage.prompt_tokens == 200  # both tries were paid for
    assert [type(e) for e in heard].count(Restarted) == 1
    again = model_server.asked[1].json["messages"]
    assert "files__read" in again[0]["content"]
    assert "tools" not in model_server.asked[0].json
    assert again[-1]["role"] == "user"
    await models.aclose()


async def test_a_model_that_never_keeps_to_the_protocol_is_given_up(
    model_server: ModelServer, waits: Waits
) -> None:
    compatible = settings(base_url=model_server.url + "/v1", tool_protocol="command")
    models = Models(config(model_server, compatible=compatible), clock=waits.clock)
    model_server.answer(CHAT, saying('{"commnd": '))
    with pytest.raises(LLMRequestError) as caught:
        await hear(models.resolve(), tools=(READ,))
    assert caught.value.failure.kind == "format"
    assert len(model_server.asked) == 2
    await models.aclose()


# -- which model --------------------------------------------------------------------------

ORDER = [name for name, entry in PROVIDERS.items() if entry.needs != "script"]
NOTHING = Probe(first_model=lambda _: None)


def choose(name: str, probe: Probe = NOTHING, **llm: Any) -> ModelChoice:
    return resolve_model(LLMSettings(**llm), name, probe)


@for_each("first", ORDER)
def test_the_first_usable_provider_is_taken_in_order(first: str) -> None:
    there = ORDER[ORDER.index(first) :]
    llm: dict[str, Any] = {name: keyed() for name in ("anthropic", "openai", "gemini") if name in there}
    if "compatible" in there:
        llm["compatible"] = settings(base_url="http://127.0.0.1:9/v1")
    probe = Probe(lambda p: f"of-{p}" if p in there else None, has_editor=True)
    assert choose("", probe, **llm).provider == first


def test_nothing_usable_says_how_to_get_a_model() -> None:
    with pytest.raises(LLMRequestError) as caught:
        choose("")
    assert caught.value.failure.kind == "no_provider"
    for way in ("ANTHROPIC_API_KEY", "Ollama", "daiku doctor"):
        assert way in caught.value.failure.hint


def test_a_script_is_played_only_when_it_is_named() -> None:
    assert choose("scripted/a/b.jsonl") == ModelChoice("scripted", "a/b.jsonl")
    assert choose("", provider="scripted") == ModelChoice("scripted", "demo")
    assert choose("scripted/gpt_4.jsonl").model == "gpt_4.jsonl"


@for_each(
    ("name", "llm", "expected"),
    [
        ("anthropic/claude_opus_5_5", {"anthropic": keyed()}, "anthropic/claude-opus-5-5"),
        ("openai", {"openai": keyed()}, "openai/gpt-6.1-sol"),
        ("gpt-4o", {"anthropic": keyed(), "openai": keyed()}, "openai/gpt-4o"),
        ("gpt-4o", {"anthropic": keyed()}, "anthropic/gpt-4o"),
        ("", {"anthropic": keyed(), "model": "claude-haiku-4-5"}, "anthropic/claude-haiku-4-5"),
        ("", {"anthropic": keyed(), "provider": "anthropic"}, "anthropic/claude-sonnet-5-5"),
        (
            "",
            {"model": "gemini/gemini-2.5-pro", "gemini": keyed(), "provider": "anthropic"},
            "gemini/gemini-2.5-pro",
        ),
        (
            "meta/llama_4",
            {"provider": "compatible", "compatible": settings(base_url="http://x/v1")},
            "compatible/meta/llama_4",
        ),
        ("ollama/qwen2.5-coder:7b-q4_K_M", {}, "ollama/qwen2.5-coder:7b-q4_K_M"),
    ],
)
def test_names_mean_what_a_person_means(name: str, llm: dict[str, Any], expected: str) -> None:
    assert str(choose(name, **llm)) == expected


def test_without_a_name_a_service_at_another_address_is_asked_for_what_it_has() -> None:
    probe = Probe(first_model=lambda provider: f"of-{provider}")
    elsewhere = {"openai": keyed(base_url="http://gateway/v1")}
    assert choose("openai", probe, **elsewhere) == ModelChoice("openai", "of-openai")
    assert choose("openai", probe, openai=keyed()).model == PROVIDERS["openai"].default_model


@for_each(
    ("name", "llm", "error", "told"),
    [
        (
            "anthropic/claude-opus-5",
            {"anthropic": settings(api_key_env="ANTHROPIC_API_KEY")},
            LLMAuthError,
            "ANTHROPIC_API_KEY",
        ),
        ("openia/gpt-4o", {"openai": keyed()}, UsageError, "openai"),
        ("nowhere/x", {}, UsageError, "nowhere"),
        ("compatible/x", {}, UsageError, "base_url"),
        ("editor", {}, LLMRequestError, "VS Code"),
        ("ollama", {}, LLMRequestError, "ollama serve"),
        ("lmstudio", {}, LLMRequestError, "LM Studio"),
    ],
)
def test_what_cannot_be_used_says_what_to_do(
    name: str, llm: dict[str, Any], error: type[DaikuError], told: str
) -> None:
    with pytest.raises(error) as caught:
        choose(name, **llm)
    failure = caught.value.failure
    assert told in failure.message + failure.hint


async def test_a_local_server_answers_with_what_it_has_loaded(model_server: ModelServer) -> None:
    def resolved(name: str, **llm: Any) -> str:
        return Models(LLMSettings(**llm)).resolve(name).name

    model_server.answer(
        "/api/tags", document({"models": [{"name": "nomic-embed-text"}, {"name": "qwen3:8b"}]})
    )
    here: dict[str, Any] = {"ollama": settings(base_url=model_server.url)}
    assert await asyncio.to_thread(resolved, "", **here) == "ollama/qwen3:8b"
    listed = [
        {"id": "big", "state": "not-loaded"},
        {"id": "e", "type": "embeddings"},
        {"id": "small", "state": "loaded"},
    ]
    model_server.answer("/api/v0/models", document({"data": listed}))
    there: dict[str, Any] = {"lmstudio": settings(base_url=model_server.url + "/v1")}
    assert await asyncio.to_thread(resolved, "lmstudio", **there) == "lmstudio/small"
    model_server.answer("/v1/models", document({"data": [{"id": "served"}]}))
    own: dict[str, Any] = {"compatible": settings(base_url=model_server.url)}
    assert await asyncio.to_thread(resolved, "compatible", **own) == "compatible/served"


# -- the table and the listing ------------------------------------------------------------


async def test_all_providers_are_listed_and_those_out_of_reach_say_why(
    model_server: ModelServer, tmp_path: Path
) -> None:
    class Lender:
        async def list_models(self) -> tuple[JsonObject, ...]:
            return ({"id": "copilot/x"},)

        async def request(self, *_: Any, **__: Any) -> JsonObject:
            raise AssertionError("listing asks no model")

    bridge: LanguageModelBridge = Lender()
    (tmp_path / "demo.jsonl").write_text('{"text": "hi"}\n')
    llm = LLMSettings(
        anthropic=keyed(base_url=model_server.url),
        gemini=keyed(base_url=model_server.url),
        ollama=settings(base_url="http://127.0.0.1:9"),
    )
    model_server.answer("/v1/models", failing(404))
    model_server.answer("/v1beta/models", failing(401))
    models = Models(llm, bridge=bridge, demo=tmp_path / "demo.jsonl")
    listed = {entry.provider: entry for entry in await models.list()}
    await models.aclose()
    assert set(listed) == set(PROVIDERS)
    assert listed["anthropic"].error is None  # it keeps no list: what is known is offered
    assert "claude-opus-5-5" in {m.name for m in listed["anthropic"].models}
    kinds = {name: entry.error.kind for name, entry in listed.items() if entry.error is not None}
    assert kinds["openai"] == kinds["gemini"] == "auth"
    assert kinds["ollama"] == kinds["lmstudio"] == "connection"
    assert kinds["compatible"] == "usage"
    assert [m.name for m in listed["editor"].models] == ["copilot/x"]
    assert [m.name for m in listed["scripted"].models] == ["demo"]


async def test_one_provider_is_kept_for_all_runs(models: Models) -> None:
    assert models.resolve("compatible/a").provider is models.resolve("compatible/b").provider


# -- the seeds' ways to ask ---------------------------------------------------------------


async def test_chat_gives_the_whole_reply_or_its_pieces(model_server: ModelServer, models: Models) -> None:
    """R1.25, R1.41: with `stream` the pieces as they come, else the whole reply."""
    model_server.answer(CHAT, saying("one|two"))
    adapter = models.resolve()
    assert (await adapter.chat([user()], stream=False)).message.text == "onetwo"
    pieces = [event async for event in adapter.chat([user()], stream=True, system="s")]
    assert text_of(pieces) == closing(pieces).message.text == "onetwo"


async def test_inference_is_a_prompt_in_and_a_text_out(model_server: ModelServer, models: Models) -> None:
    model_server.answer(CHAT, saying("done"))
    assert await models.resolve().inference("do it", "project") == "done"
    assert model_server.asked[0].json["messages"] == [{"role": "user", "content": "do it"}]


async def test_three_methods_keep_a_conversation(model_server: ModelServer) -> None:
    """R2.59–R2.62, R2.65"""
    models = Models(LLMSettings(lmstudio=settings(base_url=model_server.url + "/v1")))
    client = LMStudioClient("local", models)
    model_server.answer(CHAT, saying("first"), saying("second"))
    client.send_system_prompt("You are brief.")
    client.send_user_message("a")
    assert await client.get_response() == "first"
    client.send_user_message("b")
    assert await client.get_response() == "second"
    sent = [(m["role"], m["content"]) for m in model_server.asked[1].json["messages"]]
    assert sent == [("system", "You are brief."), ("user", "a"), ("assistant", "first"), ("user", "b")]
    assert len(client.history) == 4
    await models.aclose()


def test_the_seeds_clients_have_their_models_and_traits() -> None:
    models = Models(LLMSettings(anthropic=keyed(), openai=keyed(), gemini=keyed()))
    assert ClaudeClient(models=models).adapter.name == "anthropic/claude-3-opus-20240229"
    assert OpenAIClient(models=models).adapter.name == "openai/gpt-4"
    assert GeminiClient(models=models).adapter.name == "gemini/gemini-pro"
    assert OllamaClient("qwen3", models).adapter.name == "ollama/qwen3"
    assert "long context" in ClaudeClient.trait


@pytest.mark.parametrize("client", [ClaudeClient, OpenAIClient, GeminiClient, LMStudioClient, OllamaClient])
def test_a_seeds_client_takes_its_model_alone(
    client: type[LLMClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for made in (client("some-model"), client(model="some-model")):
        assert made.adapter.name == f"{client.provider}/some-model"


async def test_what_inferences_use_is_summed_by_project(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMSTUDIO_BASE_URL", model_server.url)
    client, other = LMStudioClient("local"), LMStudioClient("local")
    assert client.used_by("shop") == Usage()
    model_server.answer(CHAT, saying("one"), saying("two"), saying("three"))
    for project in ("shop", "shop", "till"):
        await client.inference("hi", project)
    models = client.models
    assert models is not None
    shop, till = client.used_by("shop"), models.used_by("till")
    assert till.prompt_tokens > 0
    assert (shop.prompt_tokens, shop.completion_tokens) == (
        2 * till.prompt_tokens,
        2 * till.completion_tokens,
    )
    assert other.used_by("shop") == Usage(), "without models of the same each counts for itself"
    await models.aclose()


async def test_a_whole_reply_is_a_mapping_and_what_is_asked_besides_is_passed_on(
    model_server: ModelServer, models: Models
) -> None:
    """R1.40: chat(messages, stream=False, **kw) gives what can be used as a dict."""
    model_server.answer(CHAT, saying("one|two"))
    reply = await models.resolve().chat([user()], temperature=0.2, seed=7)
    assert (reply["role"], reply["text"], reply["tool_calls"], reply["finish"]) == (
        "assistant",
        "onetwo",
        [],
        "stop",
    )
    assert dict(reply)["usage"] == reply.usage.model_dump()
    sent = model_server.asked[0].json
    assert (sent["temperature"], sent["seed"]) == (0.2, 7)


def test_what_a_service_does_not_take_is_refused_with_what_it_takes() -> None:
    models = Models(LLMSettings(anthropic=keyed()))
    with pytest.raises(
        TypeError, match="Anthropic does not take `seed`; what it takes: temperature, top_p, stop"
    ):
        models.resolve("anthropic/claude-opus-5-5").chat([user()], seed=1)


async def test_tokens_are_counted_by_estimate_where_the_service_does_not_count(
    model_server: ModelServer, models: Models
) -> None:
    """R1.42: of a text, and of messages; the estimate is quick and needs no vocabulary."""
    adapter = models.resolve()
    assert await adapter.count_tokens("Count these four words.") in range(4, 8)
    assert await adapter.count_tokens([user(), user()]) == 2 * await adapter.count_tokens([user()]) > 0
