"""Embeddings over HTTP: the protocols of the providers, batches, tries again, answers in no form."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import SecretStr

from daiku.domain.config import ProviderSettings
from daiku.domain.errors import DaikuError, LLMAuthError, StreamCutError, UsageError
from daiku.memory.rules.vectors import to_integers
from daiku.models.adapter import Clock
from daiku.models.embed import BATCH_SIZE, Embedder, HashedWords, open_embedder
from daiku.models.table import LLMSettings
from tests.llm.server import ModelServer, document

NAMES = ("openai", "compatible", "lmstudio", "ollama", "gemini")


async def _at_once(_: float) -> None:
    pass


def embedder(server: ModelServer, provider: str) -> Embedder:
    given = ProviderSettings(
        base_url=f"{server.url}/v1" if provider in NAMES[:3] else server.url, api_key=SecretStr("k-123")
    )
    llm = LLMSettings().model_copy(update={provider: given})
    return open_embedder(f"{provider}/m", llm, Clock(_at_once, lambda: 0.5))


def answer_of(provider: str, *vectors: list[float]) -> dict[str, Any]:
    match provider:
        case "ollama":
            return {"embeddings": list(vectors)}
        case "gemini":
            return {"embeddings": [{"values": each} for each in vectors]}
        case _:
            return {
                "data": [{"index": at, "embedding": each} for at, each in reversed(list(enumerate(vectors)))]
            }


PATHS = {"ollama": "/api/embed", "gemini": "/v1beta/models/m:batchEmbedContents"}


@pytest.mark.parametrize("provider", NAMES)
async def test_each_protocol_gives_the_vectors_in_the_order_of_the_texts(
    model_server: ModelServer, provider: str
) -> None:
    path = PATHS.get(provider, "/v1/embeddings")
    model_server.answer(path, document(answer_of(provider, [3.0, 4.0], [0.0, 2.0])))
    made = embedder(model_server, provider)
    assert await made.embed(["one", " "]) == [to_integers([3.0, 4.0]), to_integers([0.0, 1.0])]
    await made.aclose()
    (asked,) = model_server.asked
    header = "x-goog-api-key" if provider == "gemini" else "authorization"
    assert asked.headers[header].removeprefix("Bearer ") == "k-123"
    assert "one" in str(asked.json)
    assert made.name == f"{provider}/m"
    assert f"{provider}/m" in made.describe


async def test_many_texts_are_asked_for_in_batches(model_server: ModelServer) -> None:
    sizes = [BATCH_SIZE, BATCH_SIZE, 3]
    model_server.answer("/v1/embeddings", *(document(answer_of("openai", *[[1.0]] * size)) for size in sizes))
    made = embedder(model_server, "openai")
    assert len(await made.embed(["x"] * sum(sizes))) == sum(sizes)
    assert [len(asked.json["input"]) for asked in model_server.asked] == sizes
    await made.aclose()


async def test_a_temporary_failure_is_tried_again_and_a_wrong_key_is_not(model_server: ModelServer) -> None:
    busy = document({"error": {"message": "busy"}}, 503)
    model_server.answer("/v1/embeddings", busy, busy, document(answer_of("openai", [1.0])))
    made = embedder(model_server, "openai")
    assert await made.embed(["x"]) == [to_integers([1.0])]
    assert len(model_server.asked) == 3
    model_server.answer("/v1/embeddings", document({"error": {"message": "no"}}, 401))
    with pytest.raises(LLMAuthError):
        await made.embed(["x"])
    assert len(model_server.asked) == 4
    await made.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": []},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": [1.0, None]}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": [0.5] * 5000}]},
    ],
)
async def test_an_answer_in_no_form_is_a_failure_and_no_vector(
    model_server: ModelServer, answer: dict[str, Any]
) -> None:
    model_server.answer("/v1/embeddings", document(answer))
    made = embedder(model_server, "openai")
    with pytest.raises(StreamCutError):
        await made.embed(["x"])
    await made.aclose()


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("anthropic/claude", "is not an embedding model"),
        ("openai", "is not an embedding model"),
        ("nobody/x", "is not an embedding model"),
        ("openai/x", "key"),
        ("compatible/x", "address"),
    ],
)
def test_what_cannot_embed_is_refused_in_a_sentence(name: str, why: str) -> None:
    with pytest.raises(DaikuError) as wrong:
        open_embedder(name, LLMSettings())
    assert why in f"{wrong.value.failure.message} {wrong.value.failure.hint}"


async def test_without_a_model_words_are_compared_and_that_is_said() -> None:
    made = open_embedder("", LLMSettings())
    assert isinstance(made, HashedWords)
    assert "not meanings" in made.describe
    one, other = await made.embed(["the same", "the same"])
    assert one == other
    assert issubclass(UsageError, DaikuError)
