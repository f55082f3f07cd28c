"""Local servers: templates without tools, small windows, and models that are still loading."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from daiku import Agent, Runner
from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import ContextOverflowError, ModelLoadingError
from daiku.domain.messages import AssistantMessage, Restarted
from daiku.models.adapter import Clock
from daiku.models.model import Models
from daiku.models.table import LLMSettings
from daiku.models.transport.local import LOADED_MODEL, find_openai_model
from daiku.texts.text import Text
from tests.llm.server import Answer, Asked, ModelServer, document, events
from tests.llm.talk import READ, text_of, user
from tests.llm.test_cures import PickyServer, ask, notices, refuse

TOOL = READ.model_copy(
    update={"parameters": {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(99)}}}
)


class LlamaServer(PickyServer):
    """llama.cpp: it counts `counted` prompt tokens, and its template has tools or not."""

    counted = 20
    props: JsonObject = {"chat_template_caps": {"supports_tools": False}}
    reply_to: Callable[[Asked], str] = staticmethod(lambda _: '{"text": "Hello"}')

    def _choose(self, asked: Asked) -> Answer:
        if asked.path == "/props":
            return document(self.props)
        delta = {"choices": [{"index": 0, "delta": {"content": self.reply_to(asked)}}]}
        usage = {"prompt_tokens": self.counted, "completion_tokens": 1}
        end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
        return self.judge(asked) or events(delta, end, done=True)


@pytest.fixture
async def llama() -> AsyncIterator[LlamaServer]:
    server = LlamaServer()
    await server.start()
    yield server
    await server.stop()


def local_models(server: ModelServer, **more: Any) -> Models:
    compatible = ProviderSettings(base_url=f"{server.url}/v1", **more)
    return Models(LLMSettings(model="compatible/local", compatible=compatible))


async def test_tools_that_the_template_leaves_out_are_told_as_text(llama: LlamaServer) -> None:
    models = local_models(llama)
    assert notices(await ask(models, user(), tools=(TOOL,))) == ["llm.cure.tools_dropped"]
    chats = [asked.json for asked in llama.asked if asked.path.endswith("/chat/completions")]
    assert ["tools" in chat for chat in chats] == [True, False]
    assert notices(await ask(models, user(), tools=(TOOL,))) == []
    await models.aclose()


@pytest.mark.parametrize(
    ("counted", "props"),
    [
        (20, {"chat_template_caps": {"supports_tools": True}}),
        (20, {}),
        (4000, {"chat_template_caps": {"supports_tools": False}}),
    ],
)
async def test_tools_that_a_server_may_know_stay(llama: LlamaServer, counted: int, props: JsonObject) -> None:
    llama.counted, llama.props = counted, props
    models = local_models(llama)
    assert notices(await ask(models, user(), tools=(TOOL,))) == []
    assert [asked.path for asked in llama.asked].count("/props") == (counted == 20)
    await models.aclose()


SCHEMA: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize("words", ["unknown field `response_format`", "json_schema is not supported"])
async def test_a_reply_by_schema_is_asked_for_without_tools(llama: LlamaServer, words: str) -> None:
    """R0.96: a server that refuses the schema is asked without it."""
    models = local_models(llama)
    await ask(models, user(), tools=(TOOL,), schema=SCHEMA)
    llama.judge = lambda asked: refuse(400, words) if "response_format" in asked.json else None
    assert notices(await ask(models, user(), tools=(TOOL,), schema=SCHEMA)) == ["llm.cure.field"]
    assert notices(await ask(models, user(), tools=(TOOL,), schema=SCHEMA)) == []
    chats = [asked.json for asked in llama.asked]
    assert [chat.get("response_format", {}).get("json_schema", {}).get("schema") for chat in chats] == [
        *[SCHEMA, SCHEMA],
        *[None, None],
    ]
    assert all("tools" not in chat and '"city"' in chat["messages"][-1]["content"] for chat in chats)
    await models.aclose()


async def test_a_typed_answer_that_a_model_cannot_write_is_forced_by_the_server(llama: LlamaServer) -> None:
    """R0.96: prose first; the retry holds the model to the schema, and its tools come back after it."""
    llama.props = {}
    llama.reply_to = lambda asked: '{"result": 3}' if "response_format" in asked.json else "It is three."
    settings = {"llm": {"compatible": {"base_url": f"{llama.url}/v1"}}}
    agent = Agent("a", "Count.", output=int, model="compatible/tiny")
    async with Runner(store=None, settings=settings) as runner:
        result = await runner.run(agent, "1 + 2?")
    assert (result.status, result.output) == ("completed", 3)
    chats = [asked.json for asked in llama.asked if asked.path.endswith("/chat/completions")]
    assert ["tools" in chat for chat in chats] == [True, False]


async def test_the_library_reads_variables_of_models(
    llama: LlamaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAIKU_LLM__COMPATIBLE__BASE_URL", f"{llama.url}/v1")
    monkeypatch.setenv("DAIKU_LLM__MODEL", "compatible/tiny")
    monkeypatch.setenv("DAIKU_LIMITS__MAX_TURNS", "unread")
    async with Runner(store=None) as runner:
        assert (await runner.run(Agent("a", "Greet."), "Hi")).text == '{"text": "Hello"}'
    async with Runner(store=None, settings={"llm": {"model": "compatible/other"}}) as runner:
        await runner.run(Agent("a", "Greet."), "Hi")
    assert [asked.json["model"] for asked in llama.asked] == ["tiny", "other"]


async def test_a_first_request_that_is_too_long_says_how_to_start_the_server(llama: LlamaServer) -> None:
    message = "request (2053 tokens) exceeds the available context size (2048 tokens)"
    llama.judge = lambda _: refuse(400, message, type="exceed_context_size_error")
    for window, words in ((2048, "has 2,048"), (0, "exceeds the context window")):
        models = local_models(llama, context_length=window)
        with pytest.raises(ContextOverflowError, match=words) as told:
            await ask(models, user("word " * 1600))
        assert "-c 8192" in told.value.failure.hint or "-c 4096" in told.value.failure.hint
        with pytest.raises(ContextOverflowError, match="the conversation does not fit"):
            await ask(models, user("a"), AssistantMessage(text=Text("b")), user("c"))
        await models.aclose()


@pytest.mark.parametrize("message", ["Loading model", "Model org/m is currently loading"])
async def test_a_server_that_loads_its_model_is_waited_for(llama: LlamaServer, message: str) -> None:
    left, slept = [9], list[float]()

    def load(_: Asked) -> Answer | None:
        left[0] -= 1
        return refuse(503, message, type="unavailable_error") if left[0] > 0 else None

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    llama.judge = load
    settings = LLMSettings(model="compatible/m", compatible=ProviderSettings(base_url=f"{llama.url}/v1"))
    models = Models(settings, clock=Clock(sleep=sleep, chance=lambda: 0.99))
    heard = await ask(models, user())
    assert text_of(heard) != ""
    assert "still loading" in next(str(e.reason) for e in heard if isinstance(e, Restarted))
    assert 30 < sum(slept) < 120
    left[0] = 10_000
    with pytest.raises(ModelLoadingError, match="25 tries"):
        await ask(models, user())
    assert 240 < sum(slept[8:]) < 600
    await models.aclose()


def test_a_server_that_loads_its_only_model_needs_no_name() -> None:
    assert first_of_openai_of(503, b'{"error": {"message": "Loading model"}}') == LOADED_MODEL
    assert first_of_openai_of(503, b"busy") is None
    assert first_of_openai_of(500, b"Loading model") is None
    assert first_of_openai_of(200, b'{"data": [{"id": "qwen"}]}') == "qwen"


def first_of_openai_of(status: int, body: bytes) -> str | None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002  # the base class names it

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        found = find_openai_model(f"http://127.0.0.1:{server.server_port}/v1", {})
        thread.join()
    return found
