"""What is told about models and their services, in the person's language."""

from __future__ import annotations

import pytest

from daiku.domain.errors import LLMTimeoutError, UsageError
from daiku.domain.messages import Restarted
from daiku.models.model import Models, Probe, resolve_model
from daiku.models.openai.responses import ResponsesDecoder
from daiku.models.table import PROVIDERS, LLMSettings
from daiku.models.transport.failures import from_status
from daiku.models.transport.service import Service
from daiku.run.rules.calls.toolnames import NameMap
from daiku.texts.text import render
from tests.cases import for_each
from tests.llm.conftest import Closing
from tests.llm.server import ModelServer, document, events
from tests.llm.talk import closing, hear, opened, settings, text_of
from tests.llm.test_model import CHAT, Waits, config, failing, saying
from tests.llm.test_model import hear as hear_adapter

SERVICE = Service(name="x", label="X", address="http://x/v1", key_env="X_API_KEY")


@for_each(
    ("status", "said", "message", "hint"),
    [
        (503, "Overloaded. Please wait.", "X が混み合っています: Overloaded. Please wait.", "少し待つか"),
        (503, "busy", "X が混み合っています: busy。", "少し待つか"),
        (500, "", "X でエラーが起きました（HTTP 500）。", "もう一度依頼してください。"),
        (
            403,
            "",
            "X がこの操作を許可していません。",
            "可能性があります。X の環境変数 X_API_KEY を設定するか、VS Code で「",
        ),
        (404, "だめです。", "X にこのモデルまたはアドレスがありません: だめです。", "llm.x.base_url"),
    ],
)
def test_a_vendors_own_words_stand_in_a_sentence_of_the_persons_language(
    status: int, said: str, message: str, hint: str
) -> None:
    failure = from_status(SERVICE, status, {"error": {"message": said}}).failure
    assert render(failure.message, "ja") == message
    assert hint in render(failure.hint, "ja")


async def test_another_try_and_another_model_are_told_in_japanese(model_server: ModelServer) -> None:
    models = Models(config(model_server, fallback_model="compatible/b"), clock=Waits().clock)
    model_server.answer(CHAT, *[failing(503, "Please wait.")] * 4, saying("from the other"))
    heard = await hear_adapter(models.resolve())
    told = [render(event.reason, "ja") for event in heard if isinstance(event, Restarted)]
    busy = "サーバー 127.0.0.1 が混み合っています: Please wait."
    assert told[0] == f"{busy} 再試行します（1/3）。"
    assert told[-1] == f"{busy}（4 回試行）代わりに compatible/b で続けます。"
    await models.aclose()


def test_a_sentence_that_begins_with_its_service_names_it_in_the_persons_language() -> None:
    entry = PROVIDERS["editor"]
    failure = from_status(entry.service(entry.settings), 503, "").failure
    assert failure.message == "The editor is overloaded."
    assert render(failure.message, "ja") == "エディターが混み合っています。"


def test_an_unknown_provider_is_told_in_japanese_with_the_names_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        resolve_model(LLMSettings(), "opnai/x", Probe(lambda _: None))
    failure = caught.value.failure
    assert failure.message == "Unknown provider “opnai” in the model “opnai/x”. Did you mean openai?"
    assert (
        render(failure.message, "ja")
        == "モデル「opnai/x」のプロバイダー「opnai」はありません。openai のことですか？"
    )
    assert "anthropic、openai、gemini" in render(failure.hint, "ja")


def test_a_response_that_its_service_cancelled_is_told_as_such() -> None:
    decoder = ResponsesDecoder(SERVICE, NameMap())
    decoder.feed(b'{"status": "cancelled"}')
    with pytest.raises(LLMTimeoutError) as caught:
        decoder.finish()
    assert (caught.value.status, caught.value.failure.retryable) == (500, True)
    assert caught.value.failure.message == "X failed (HTTP 500): the response was cancelled."
    assert (
        render(caught.value.failure.message, "ja")
        == "X でエラーが起きました（HTTP 500）: 応答が取り消されました。"
    )


async def test_a_refusal_without_a_word_is_ours_to_tell_and_is_not_streamed(
    model_server: ModelServer, closing_after: Closing
) -> None:
    claude = closing_after(opened("anthropic", settings(model_server)))
    refusal = {"type": "message_delta", "delta": {"stop_reason": "refusal"}, "usage": {"output_tokens": 1}}
    begin = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}}
    model_server.answer("/v1/messages", events(begin, refusal, {"type": "message_stop"}))
    heard = await hear(claude)
    assert text_of(heard) == ""
    said = closing(heard).message.text
    assert (said, render(said, "ja")) == ("The model declined to answer.", "モデルが回答を断りました。")


async def test_what_a_list_says_of_a_model_is_in_the_persons_language(
    model_server: ModelServer, closing_after: Closing
) -> None:
    ollama = closing_after(opened("ollama", settings(model_server)))
    model_server.answer("/api/tags", document({"models": [{"model": "qwen3"}]}))
    model_server.answer("/api/show", document({}))
    (model,) = await ollama.models()
    assert render(model.trait, "ja") == "このマシンで動作、無料"
