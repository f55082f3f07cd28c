"""The `ollama` provider: models on one's own machine, over Ollama's native protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx2
from pydantic import JsonValue

from daiku.core.calls.toolnames import NameMap
from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import ContextOverflowError, Failure, LLMRequestError
from daiku.domain.messages import ModelEvent, ModelInfo, ModelRequest, Reply
from daiku.llm.ollama.codec import OllamaDecoder, body, encode_tools, history
from daiku.llm.tokens import estimate_request
from daiku.llm.transport.history import Histories, LastResult
from daiku.llm.transport.service import Service
from daiku.llm.transport.stream import encode_json
from daiku.llm.transport.wire import HttpService, number, stream_reply
from daiku.texts.text import text

LISTED_AT_ONCE = 4

LEAST_MEASURED = 500
"""Estimated tokens of a request by which an estimate is corrected: in shorter ones the model's template counts most."""


@dataclass(frozen=True, slots=True)
class Card:
    """A model's properties from the Ollama server; `able` is None if an old server lists no abilities."""

    context: int = 0
    able: frozenset[str] | None = None

    def can(self, what: str) -> bool:
        return self.able is None or what in self.able


class OllamaProvider:
    """Ollama's `/api/chat` with the context window that is really set up, pictures, thinking, tools."""

    name = "ollama"

    def __init__(self, service: Service, settings: ProviderSettings, default_context: int) -> None:
        self._service = service
        self._settings = settings
        self._context = settings.context_length or default_context
        key = settings.api_key.get_secret_value()
        self._http = HttpService(service, settings, service.address, {"authorization": f"Bearer {key}"})
        self._histories = Histories[tuple[bytes, ...]](history)
        self._tools = LastResult(encode_tools)
        self._cards: dict[str, Card] = {}
        self._scales: dict[str, float] = {}
        """For each model the tokens that the server counted per estimated token, at least 1."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        decoder = OllamaDecoder(self._service, names=NameMap(request.tools), model=request.model)
        messages = self._histories.of(request).encode(request.messages)

        async def open_response() -> httpx2.Response:
            card = await self._card(request.model)
            window = self._window(card)
            if request.tools and not card.can("tools"):
                raise self._no_tools(request.model)
            thinks = card.able is not None and "thinking" in card.able
            tools = self._tools.of(request.tools)
            content = body(request, messages, tools, window=window, thinks=thinks)
            if len(content) > window:  # a token is a byte at least: what is shorter fits
                self._check_size(request, window)
            try:
                return await self._http.send("POST", "/api/chat", content)
            except LLMRequestError as error:
                raise self._explain(error, request.model) from error

        async with aclosing(stream_reply(self._service, self._settings, open_response, decoder)) as pieces:
            async for event in pieces:
                if isinstance(event, Reply):
                    self._learn_scale(request, event.usage.prompt_tokens)
                yield event

    async def models(self) -> tuple[ModelInfo, ...]:
        listed = (await self._http.read("GET", "/api/tags")).get("models")
        names = [
            name
            for entry in (listed if isinstance(listed, list) else [])
            if isinstance(entry, dict) and isinstance(name := entry.get("model") or entry.get("name"), str)
        ]
        gate = asyncio.Semaphore(LISTED_AT_ONCE)

        async def one(name: str) -> ModelInfo | None:
            async with gate:
                card = await self._card(name)
            if not card.can("completion"):
                return None  # it embeds, it does not talk
            return ModelInfo(
                provider=self.name,
                name=name,
                context=self._window(card),
                tools=card.can("tools"),
                images=card.able is not None and "vision" in card.able,
                thinking=card.able is not None and "thinking" in card.able,
                trait=text("llm.trait.ollama"),
            )

        found = await asyncio.gather(*(one(name) for name in names))
        return tuple(model for model in found if model is not None)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    async def aclose(self) -> None:
        await self._http.aclose()

    def _window(self, card: Card) -> int:
        return min(self._context, card.context) if card.context else self._context

    def _learn_scale(self, request: ModelRequest, counted: int) -> None:
        estimate = estimate_request(request)
        if estimate >= LEAST_MEASURED:
            self._scales[request.model] = max(1.0, counted / estimate)

    def _check_size(self, request: ModelRequest, window: int) -> None:
        """Say what the server would not: it silently forgets the beginning of what is too long."""
        if (size := int(estimate_request(request) * self._scales.get(request.model, 1.0))) > window:
            raise ContextOverflowError(
                Failure(
                    kind="context_overflow",
                    message=text(
                        "llm.window_too_small", count=f"{size:,}", model=request.model, most=f"{window:,}"
                    ),
                    hint=text("llm.compact_or_raise"),
                )
            )

    def _no_tools(self, model: str, status: int = 400) -> LLMRequestError:
        return LLMRequestError(
            Failure(
                kind="bad_request",
                message=text("llm.no_tools", model=model),
                hint=text("llm.use_action_list"),
            ),
            status=status,
            codes=("tools_unsupported",),
        )

    def _explain(self, error: LLMRequestError, model: str) -> LLMRequestError:
        if error.status == 404:
            failure = error.failure.model_copy(update={"hint": text("llm.pull_model", model=model)})
            return LLMRequestError(failure, status=404, said=error.said, codes=error.codes)
        if "does not support tools" in error.said:
            return self._no_tools(model, error.status)
        return error

    async def _card(self, model: str) -> Card:
        """What `/api/show` says, asked once for each model; nothing where the server is too old."""
        if model not in self._cards:
            try:
                told = await self._http.read("POST", "/api/show", encode_json({"model": model}))
            except LLMRequestError as error:
                if error.status == 404:
                    return Card()  # not there: the chat call says so, with the hint
                raise
            self._cards[model] = _card(told)
        return self._cards[model]


def _card(told: JsonObject) -> Card:
    able, details = told.get("capabilities"), told.get("model_info")
    lengths: list[JsonValue] = []
    if isinstance(details, dict):
        lengths = [value for key, value in details.items() if key.endswith(".context_length")]
    return Card(
        context=max((number(length) for length in lengths), default=0),
        able=frozenset(str(a) for a in able) if isinstance(able, list) else None,
    )
