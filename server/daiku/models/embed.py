"""Embeddings of texts from a provider's embedding model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from pydantic import JsonValue

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import Failure, LLMError, UsageError
from daiku.memory.rules.vectors import Vector, to_integers
from daiku.models.adapter import Clock
from daiku.models.embedder import Embedder, HashedWords
from daiku.models.model import Probe, missing_requirement
from daiku.models.retries.policy import RetryPolicy, compute_retry_delay
from daiku.models.table import PROVIDERS, LLMSettings
from daiku.models.transport.addresses import join_url
from daiku.models.transport.failures import unreadable_error
from daiku.models.transport.service import Service
from daiku.models.transport.stream import encode_json
from daiku.models.transport.wire import HttpService
from daiku.texts.text import Text, joined, text

BATCH_SIZE = 64
"""Maximum number of texts per request."""
UNRELATED_COSINE = 0.3
"""Cosine below which texts are considered unrelated, for embedding models."""


@dataclass(frozen=True, slots=True)
class UnusableEmbedder:
    """Embedder without a key or an address; every call raises that error."""

    name: str
    error: LLMError
    unrelated: float = UNRELATED_COSINE

    @property
    def describe(self) -> Text:
        return self.error.failure.message

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise self.error

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""


@dataclass(frozen=True, slots=True)
class _EmbeddingApi:
    """Embedding API of a kind of service: path, body, response, and authentication headers."""

    path: Callable[[str], str]
    body: Callable[[str, Sequence[str]], JsonObject]
    read: Callable[[JsonObject], list[JsonValue]]
    key_headers: Callable[[str], Mapping[str, str]] = lambda key: {"authorization": f"Bearer {key}"}
    address: Callable[[str], str] = str


@dataclass(slots=True)
class ServiceEmbedder:
    """Embedding model of a provider. Requests are batched; temporary failures are retried."""

    model: str
    service: Service
    settings: ProviderSettings
    api: _EmbeddingApi
    policy: RetryPolicy = RetryPolicy()
    clock: Clock = field(default_factory=Clock)
    unrelated: float = UNRELATED_COSINE
    _http: HttpService | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        return f"{self.service.name}/{self.model}"

    @property
    def describe(self) -> Text:
        return text("memory.matches_meanings", model=self.name)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for start in range(0, len(texts), BATCH_SIZE):
            vectors += await self._embed_batch(texts[start : start + BATCH_SIZE])
        return vectors

    async def aclose(self) -> None:
        if self._http is not None and self._loop is asyncio.get_running_loop():
            await self._http.aclose()

    async def _embed_batch(self, texts: Sequence[str]) -> list[Vector]:
        attempt = 1
        while True:
            try:
                return self._decode_vectors(await self._send_request(texts), len(texts))
            except LLMError as error:
                wait = compute_retry_delay(attempt, error, self.policy, self.clock.chance())
                if wait is None:
                    raise
            await self.clock.sleep(wait)
            attempt += 1

    async def _send_request(self, texts: Sequence[str]) -> JsonObject:
        loop = asyncio.get_running_loop()
        # Connections belong to the event loop that opened them.
        if self._http is None or self._loop is not loop:
            self._loop = loop
            headers = self.api.key_headers(self.settings.api_key.get_secret_value())
            address = self.api.address(self.service.address)
            self._http = HttpService(self.service, self.settings, address, headers)
        # Services refuse empty and blank texts.
        body = encode_json(self.api.body(self.model, [item if item.strip() else "-" for item in texts]))
        return await self._http.read("POST", self.api.path(self.model), body)

    def _decode_vectors(self, answer: JsonObject, count: int) -> list[Vector]:
        entries = self.api.read(answer)
        try:
            vectors = [to_integers(_to_floats(values)) for values in entries]
        except (TypeError, ValueError) as error:
            raise unreadable_error(self.service, str(error)) from error
        if len(vectors) != count or len({len(vector) for vector in vectors}) > 1:
            raise unreadable_error(self.service, f"{len(vectors)} vectors for {count} texts")
        return vectors


def _to_floats(values: JsonValue) -> list[float]:
    """Return the components of a vector. Raises TypeError for anything else."""
    if not isinstance(values, list):
        raise TypeError("a vector is a list of numbers")
    numbers = [float(value) for value in values if isinstance(value, int | float)]
    if len(numbers) != len(values):
        raise TypeError("a vector has numbers only")
    return numbers


def _read_entries(answer: JsonObject, key: str, inner: str) -> list[JsonValue]:
    listed = answer.get(key)
    return (
        [entry.get(inner) for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )


def _read_openai_vectors(answer: JsonObject) -> list[JsonValue]:
    """Return the vectors in the order of the texts, sorted by `index`."""
    listed = answer.get("data")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    indexes = [entry.get("index") for entry in entries]
    if sorted(index for index in indexes if isinstance(index, int)) == list(range(len(entries))):
        entries.sort(key=lambda entry: int(str(entry.get("index"))))
    return [entry.get("embedding") for entry in entries]


def _read_ollama_vectors(answer: JsonObject) -> list[JsonValue]:
    listed = answer.get("embeddings")
    return listed if isinstance(listed, list) else []


def _encode_gemini_model(model: str) -> str:
    return quote(model if "/" in model else f"models/{model}", safe="/:.@")


_OPENAI = _EmbeddingApi(
    lambda _: "/embeddings",
    lambda model, texts: {"model": model, "input": [*texts], "encoding_format": "float"},
    _read_openai_vectors,
)
_EMBEDDING_APIS: Mapping[str, _EmbeddingApi] = {
    "openai": _OPENAI,
    "compatible": _OPENAI,
    "lmstudio": _OPENAI,
    "ollama": _EmbeddingApi(
        lambda _: "/api/embed", lambda model, texts: {"model": model, "input": [*texts]}, _read_ollama_vectors
    ),
    "gemini": _EmbeddingApi(
        lambda model: f"/{_encode_gemini_model(model)}:batchEmbedContents",
        lambda model, texts: {
            "requests": [
                {"model": _encode_gemini_model(model), "content": {"parts": [{"text": each}]}}
                for each in texts
            ]
        },
        lambda answer: _read_entries(answer, "embeddings", "values"),
        lambda key: {"x-goog-api-key": key},
        lambda address: address if "/v1" in address else join_url(address, "/v1beta"),
    ),
}


def open_embedder(name: str, llm: LLMSettings, clock: Clock | None = None) -> Embedder:
    """Return the embedder that a setting names: `provider/model`, or "" for word hashes. It connects on first use.

    Raises UsageError for an unknown provider or one without embeddings; LLMError for a missing key or address.
    """
    if not name.strip():
        return HashedWords()
    provider, _, model = name.strip().partition("/")
    if provider not in _EMBEDDING_APIS or not model:
        names = joined("list", [f"{provider_name}/MODEL" for provider_name in _EMBEDDING_APIS])
        raise UsageError(
            Failure(
                kind="usage",
                message=text("memory.no_embedder", name=name),
                hint=text("memory.embedders", names=names),
            )
        )
    llm.check()
    probe = Probe(lambda _: None, has_editor=False)
    if (problem := missing_requirement(llm, provider, probe)) is not None:
        raise problem
    settings = llm.of(provider)
    service = PROVIDERS[provider].service(settings)
    return ServiceEmbedder(model, service, settings, _EMBEDDING_APIS[provider], clock=clock or Clock())


def open_embedder_or_placeholder(name: str, llm: LLMSettings) -> Embedder:
    """Return the embedder of the settings. Without its key, return one that raises on use, so that Daiku can start.

    Raises UsageError for a name that is no embedder.
    """
    try:
        return open_embedder(name, llm)
    except LLMError as error:
        return UnusableEmbedder(name, error)
