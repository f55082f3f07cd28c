"""The `anthropic` provider, which uses the low-level requests of anthropic's SDK."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import httpx2
from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.messages import ModelEvent, ModelInfo, ModelRequest
from daiku.models.anthropic.decode import AnthropicDecoder
from daiku.models.anthropic.encode import EncodedTurn, create_history, encode_body, encode_tools
from daiku.models.catalogue import build_model_info
from daiku.models.families import find_traits
from daiku.models.transport.addresses import join_url
from daiku.models.transport.client_errors import from_exception
from daiku.models.transport.history import Histories, LastResult
from daiku.models.transport.service import Service
from daiku.models.transport.wire import build_timeouts, create_http_client, read_object, stream_reply
from daiku.run.rules.calls.toolnames import NameMap

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

MAX_PAGES = 20
"""Maximum number of pages of a model list to read."""
INTERLEAVED = "interleaved-thinking-2025-05-14"


class AnthropicProvider:
    """Provider for Anthropic's Messages API and compatible services at another `base_url` (with or without `/v1`)."""

    name = "anthropic"

    def __init__(self, service: Service, settings: ProviderSettings) -> None:
        self._service = service
        self._settings = settings
        self._official = httpx2.URL(service.address).host == "api.anthropic.com"
        self._histories = Histories[EncodedTurn](create_history)
        self._tools = LastResult(encode_tools)
        self._client: AsyncAnthropic | None = None

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        turns = self._histories.of(request).encode(request.messages)
        content = encode_body(request, turns, self._tools.of(request.tools))
        decoder = AnthropicDecoder(
            self._service,
            names=NameMap(request.tools),
            model=request.model,
            after=turns[-1].mark if turns else "",
            prices=self._settings.price,
        )

        beta = self._list_betas(request)

        async def open_response() -> httpx2.Response:
            return await (await self._get_client()).post(
                join_url(self._service.address, "/v1/messages"),
                cast_to=httpx2.Response,
                content=content,
                options={"headers": {"anthropic-beta": beta}} if beta else {},
                stream=True,
            )

        return stream_reply(self._service, self._settings, open_response, decoder)

    def _list_betas(self, request: ModelRequest) -> str:
        """Return the betas to request: interleaved thinking for models that need it, and those of the settings."""
        thinks = request.effort not in ("", "none") and bool(request.tools)
        if not (self._official and thinks and find_traits(request.model).interleaved):
            return ""
        configured = (
            value for name, value in self._settings.headers.items() if name.lower() == "anthropic-beta"
        )
        return ",".join([*configured, INTERLEAVED])

    async def models(self) -> tuple[ModelInfo, ...]:
        models: list[ModelInfo] = []
        path = "/v1/models?limit=1000"
        for _ in range(MAX_PAGES):
            page = await self._get_json(path)
            data = page.get("data")
            models.extend(
                _decode_info(m) for m in (data if isinstance(data, list) else []) if isinstance(m, dict)
            )
            if page.get("has_more") is not True or not isinstance(last := page.get("last_id"), str):
                break
            path = f"/v1/models?limit=1000&after_id={last}"
        return tuple(model for model in models if model.name)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        turns = self._histories.of(request).encode(request.messages)
        try:
            response = await (await self._get_client()).post(
                join_url(self._service.address, "/v1/messages/count_tokens"),
                cast_to=httpx2.Response,
                content=encode_body(request, turns, self._tools.of(request.tools), counting=True),
            )
        except Exception as error:  # the SDK's own errors; they become LLMError here
            failure = from_exception(self._service, error)
            if failure.status in (404, 405, 501):
                return None  # a compatible server without this endpoint
            raise failure from error
        count = read_object(self._service, response.content).get("input_tokens")
        return count if isinstance(count, int) else None

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()

    async def _get_json(self, path: str) -> JsonObject:
        try:
            response = await (await self._get_client()).get(
                join_url(self._service.address, path), cast_to=httpx2.Response
            )
        except Exception as error:  # the SDK's own errors; they become LLMError here
            raise from_exception(self._service, error) from error
        return read_object(self._service, response.content)

    async def _get_client(self) -> AsyncAnthropic:
        if "anthropic" not in sys.modules:
            await asyncio.to_thread(importlib.import_module, "anthropic")
        if self._client is None:
            # imported on first use, as it takes 0.8 s
            from anthropic import AsyncAnthropic

            key = self._settings.api_key.get_secret_value()
            headers = dict(self._settings.headers)
            if not self._official and key:
                headers.setdefault("X-Api-Key", key)  # the header that most compatible servers read
            self._client = AsyncAnthropic(
                api_key=key or "none",
                base_url=self._service.address,
                max_retries=0,
                timeout=build_timeouts(self._settings),
                default_headers=headers,
                http_client=create_http_client(self._settings),
                open_telemetry=False,
            )
        return self._client


def _decode_info(model: JsonObject) -> ModelInfo:
    name, capabilities = model.get("id"), model.get("capabilities")
    info = build_model_info(
        "anthropic",
        name if isinstance(name, str) and model.get("lifecycle") != "retired" else "",
        context=_to_int(model.get("max_input_tokens")),
        max_output=_to_int(model.get("max_tokens")),
    )
    if not isinstance(capabilities, dict):
        return info.model_copy(update={"images": True})
    return info.model_copy(
        update={
            "images": _is_supported(capabilities.get("image_input")),
            "thinking": _is_supported(capabilities.get("thinking")),
        }
    )


def _to_int(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _is_supported(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.get("supported") is True
