"""Embeddings: texts as vectors, from a model of a provider, or from their words alone without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import quote

from pydantic import JsonValue

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import Failure, LLMError, UsageError
from daiku.memory.rules.vectors import Vector, whole_vector
from daiku.models.adapter import Clock
from daiku.models.choice import Probe, missing_requirement
from daiku.models.embedder import Embedder, HashedWords
from daiku.models.retries.policy import RetryPolicy, retry_delay
from daiku.models.table import PROVIDERS, LLMSettings
from daiku.models.transport.addresses import join_url
from daiku.models.transport.failures import unreadable_error
from daiku.models.transport.service import Service
from daiku.models.transport.stream import encode_json
from daiku.models.transport.wire import HttpService
from daiku.texts.text import Text, joined, text

BATCH = 64
"""Texts of one request."""
LEAST_ALIKE = 0.3
"""Texts that a model finds less alike than this have nothing to do with one another."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """An embedder that cannot be asked as things are: its key is missing. What it would be asked fails with that."""

    name: str
    wrong: LLMError
    unrelated: float = LEAST_ALIKE

    @property
    def describe(self) -> Text:
        return self.wrong.failure.message

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        raise self.wrong

    async def aclose(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class _Protocol:
    """How a kind of service is asked: its path and body, its answer, and how it is shown a key."""

    path: Callable[[str], str]
    body: Callable[[str, Sequence[str]], JsonObject]
    read: Callable[[JsonObject], list[JsonValue]]
    key_headers: Callable[[str], Mapping[str, str]] = lambda key: {"authorization": f"Bearer {key}"}
    address: Callable[[str], str] = str


@dataclass(slots=True)
class ServiceEmbedder:
    """An embedding model of a provider, asked in batches and again where a failure is temporary."""

    model: str
    service: Service
    settings: ProviderSettings
    protocol: _Protocol
    policy: RetryPolicy = RetryPolicy()
    clock: Clock = field(default_factory=Clock)
    unrelated: float = LEAST_ALIKE
    _http: HttpService | None = None
    _loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        return f"{self.service.name}/{self.model}"

    @property
    def describe(self) -> Text:
        return text("memory.matches_meanings", model=self.name)

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        found: list[Vector] = []
        for start in range(0, len(texts), BATCH):
            found += await self._batch(texts[start : start + BATCH])
        return found

    async def aclose(self) -> None:
        if self._http is not None and self._loop is asyncio.get_running_loop():
            await self._http.aclose()

    async def _batch(self, texts: Sequence[str]) -> list[Vector]:
        attempt = 1
        while True:
            try:
                return self._vectors(await self._ask(texts), len(texts))
            except LLMError as error:
                wait = retry_delay(attempt, error, self.policy, self.clock.chance())
                if wait is None:
                    raise
            await self.clock.sleep(wait)
            attempt += 1

    async def _ask(self, texts: Sequence[str]) -> JsonObject:
        here = asyncio.get_running_loop()
        if (
            self._http is None or self._loop is not here
        ):  # connections belong to the loop that they were opened on
            self._loop = here
            headers = self.protocol.key_headers(self.settings.api_key.get_secret_value())
            address = self.protocol.address(self.service.address)
            self._http = HttpService(self.service, self.settings, address, headers)
        # A service refuses an empty text; one space has no meaning either.
        body = encode_json(self.protocol.body(self.model, [each if each.strip() else "-" for each in texts]))
        return await self._http.read("POST", self.protocol.path(self.model), body)

    def _vectors(self, answer: JsonObject, count: int) -> list[Vector]:
        found = self.protocol.read(answer)
        try:
            vectors = [whole_vector(_numbers(values)) for values in found]
        except (TypeError, ValueError) as wrong:
            raise unreadable_error(self.service, str(wrong)) from wrong
        if len(vectors) != count or len({len(vector) for vector in vectors}) > 1:
            raise unreadable_error(self.service, f"{len(vectors)} vectors for {count} texts")
        return vectors


def _numbers(values: JsonValue) -> list[float]:
    """The components of a vector. Raises TypeError for anything else."""
    if not isinstance(values, list):
        raise TypeError("a vector is a list of numbers")
    found = [float(value) for value in values if isinstance(value, int | float)]
    if len(found) != len(values):
        raise TypeError("a vector has numbers only")
    return found


def _entries(answer: JsonObject, key: str, inner: str) -> list[JsonValue]:
    listed = answer.get(key)
    return (
        [entry.get(inner) for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )


def _openai_entries(answer: JsonObject) -> list[JsonValue]:
    """The vectors in the order of the texts: `index` says which is whose."""
    listed = answer.get("data")
    entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    places = [entry.get("index") for entry in entries]
    if sorted(place for place in places if isinstance(place, int)) == list(range(len(entries))):
        entries.sort(key=lambda entry: int(str(entry.get("index"))))
    return [entry.get("embedding") for entry in entries]


def _ollama_entries(answer: JsonObject) -> list[JsonValue]:
    listed = answer.get("embeddings")
    return listed if isinstance(listed, list) else []


def _gemini_model(model: str) -> str:
    return quote(model if "/" in model else f"models/{model}", safe="/:.@")


_OPENAI = _Protocol(
    lambda _: "/embeddings",
    lambda model, texts: {"model": model, "input": [*texts], "encoding_format": "float"},
    _openai_entries,
)
_PROTOCOLS: Mapping[str, _Protocol] = {
    "openai": _OPENAI,
    "compatible": _OPENAI,
    "lmstudio": _OPENAI,
    "ollama": _Protocol(
        lambda _: "/api/embed", lambda model, texts: {"model": model, "input": [*texts]}, _ollama_entries
    ),
    "gemini": _Protocol(
        lambda model: f"/{_gemini_model(model)}:batchEmbedContents",
        lambda model, texts: {
            "requests": [
                {"model": _gemini_model(model), "content": {"parts": [{"text": each}]}} for each in texts
            ]
        },
        lambda answer: _entries(answer, "embeddings", "values"),
        lambda key: {"x-goog-api-key": key},
        lambda address: address if "/v1" in address else join_url(address, "/v1beta"),
    ),
}


def open_embedder(name: str, llm: LLMSettings, clock: Clock | None = None) -> Embedder:
    """The embedder that a setting names: `provider/model`, or empty for words alone; it connects when first asked.
    Raises UsageError: no such provider, or one without embeddings; LLMError: its key or address is missing."""
    if not name.strip():
        return HashedWords()
    provider, _, model = name.strip().partition("/")
    if provider not in _PROTOCOLS or not model:
        names = joined("list", [f"{each}/MODEL" for each in _PROTOCOLS])
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
    return ServiceEmbedder(model, service, settings, _PROTOCOLS[provider], clock=clock or Clock())


def embedder_of(name: str, llm: LLMSettings) -> Embedder:
    """The embedder of the settings. A missing key is no reason not to start: until it is there words are searched.
    Raises UsageError for a name that means no embedder."""
    try:
        return open_embedder(name, llm)
    except LLMError as wrong:
        return Unusable(name, wrong)
