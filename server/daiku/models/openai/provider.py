"""The `openai` provider, also for compatible services, through the low-level methods of OpenAI's SDK."""

from __future__ import annotations

import asyncio
import importlib
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Literal

import httpx2
from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import Failure, LLMAuthError, LLMError
from daiku.domain.messages import ModelEvent, ModelInfo, ModelRequest
from daiku.domain.tools import ToolSpec
from daiku.models import catalogue
from daiku.models.families import find_traits
from daiku.models.openai import chat_request, responses
from daiku.models.openai.chat import ChatDecoder
from daiku.models.transport.addresses import join_url, strip_version
from daiku.models.transport.client_errors import from_exception
from daiku.models.transport.history import Histories, LastResult
from daiku.models.transport.service import Service
from daiku.models.transport.stream import encode_json
from daiku.models.transport.wire import (
    Decoder,
    build_timeouts,
    create_http_client,
    read_object,
    stream_reply,
    to_count,
)
from daiku.run.rules.calls.toolnames import NameMap
from daiku.texts.text import text

if TYPE_CHECKING:
    from openai import AsyncOpenAI


Api = Literal["chat", "responses"]

# Headers with which the SDK describes this machine. No service needs them.
_TELEMETRY = (
    *("X-Stainless-Lang", "X-Stainless-Package-Version", "X-Stainless-OS", "X-Stainless-Arch"),
    *("X-Stainless-Runtime", "X-Stainless-Runtime-Version", "X-Stainless-Async"),
    *("X-Stainless-Retry-Count", "X-Stainless-Read-Timeout"),
)
UNSENT = "-"
"""Placeholder idempotency key. OpenAI ignores these keys, and the SDK would create a random one per request."""
_NOT_FOR_CHAT = re.compile(
    r"embedding|whisper|tts|dall-e|moderation|transcribe|realtime|audio|image|sora|davinci|babbage|-instruct\b"
)


class OpenAIProvider:
    """Provider for OpenAI, or for a compatible service at `service.address`."""

    def __init__(self, service: Service, settings: ProviderSettings) -> None:
        self._service = service
        self._settings = settings
        self._official = httpx2.URL(service.address).host == "api.openai.com"
        auto: Api = "responses" if self._official else "chat"
        self._api: Api = auto if settings.api == "auto" else settings.api
        self._key = settings.api_key.get_secret_value()
        self._client: AsyncOpenAI | None = None
        self._headers: Mapping[str, str] = {}
        self._chats = Histories(lambda r: chat_request.create_history(r, service.address))
        self._responses = Histories(lambda r: responses.create_history(r, service.name))
        encode = chat_request.encode_tools if self._api == "chat" else responses.encode_tools
        self._tools = LastResult[tuple[ToolSpec, ...], bytes](lambda tools: encode(tools, NameMap(tools)))

    @property
    def name(self) -> str:
        return self._service.name

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        path = "/responses" if self._api == "responses" else "/chat/completions"
        decoder = self._create_decoder(request)

        async def open_response() -> httpx2.Response:
            return await self._post(path, request)

        return stream_reply(self._service, self._settings, open_response, decoder)

    async def models(self) -> tuple[ModelInfo, ...]:
        items = (await self._get_json("/models")).get("data")
        entries = [m for m in items if isinstance(m, dict)] if isinstance(items, list) else []
        infos = [decode_model_info(self.name, m, self._settings.context_length) for m in entries]
        return tuple(m for m in infos if m.name and not (self._official and _NOT_FOR_CHAT.search(m.name)))

    async def count_tokens(self, request: ModelRequest) -> int | None:
        if not (self._official and self._api == "responses"):
            return None
        body = self._encode_body(request, counting=True)
        try:
            client = await self._get_client()
            response = await client.post(
                join_url(self._service.address, "/responses/input_tokens"),
                cast_to=httpx2.Response,
                content=body,
            )
        except Exception as error:  # the SDK's own kinds; they become LLMError here
            raise from_exception(self._service, error) from error
        return to_count(read_object(self._service, response.content).get("input_tokens")) or None

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()

    def _create_decoder(self, request: ModelRequest) -> Decoder:
        names = NameMap(request.tools)
        if self._api == "chat":
            return ChatDecoder(self._service, names, request.model)
        author = responses.identify_author(self.name, request.model)
        return responses.ResponsesDecoder(self._service, names, author)

    async def _post(self, path: str, request: ModelRequest) -> httpx2.Response:
        body = self._encode_body(request)
        client = await self._get_client()
        return await client.post(
            self._build_url(path, request.refused),  # complete, as the SDK is slow at joining URLs
            cast_to=httpx2.Response,
            content=body,
            options={"headers": self._headers, "idempotency_key": UNSENT},
            stream=True,
            stream_cls=None,
        )

    def _build_url(self, path: str, refused: frozenset[str]) -> str:
        """Return the URL of `path`. If the service refused the path, add or remove `/v1`."""
        address = self._service.address
        if "path" in refused:
            without_version = strip_version(address)
            address = without_version if without_version != address else join_url(address, "/v1")
        return join_url(address, path)

    def _encode_body(self, request: ModelRequest, *, counting: bool = False) -> bytes:
        refused = request.refused
        if self._api == "chat":
            pieces = self._chats.of(request).encode(request.messages)
            head = {"model": request.model}
            array = b'"messages":' + chat_request.encode_messages(
                request.system, pieces, "user" if "system" in refused else "system"
            )
            fields = self._build_chat_fields(request)
        else:
            items = self._responses.of(request).encode(request.messages)
            head = {"model": request.model, **({"instructions": request.system} if request.system else {})}
            array = b'"input":' + responses.encode_input(items)
            fields = {} if counting else self._build_responses_fields(request)
        parts = [encode_json(dict(head))[:-1], array]
        if request.tools:
            parts.append(b'"tools":' + self._tools.of(request.tools))
        accepted: JsonObject = {key: value for key, value in fields.items() if key not in refused}
        if accepted:
            parts.append(encode_json(accepted)[1:-1])
        return b",".join(parts) + b"}"

    def _build_chat_fields(self, request: ModelRequest) -> JsonObject:
        fields: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}
        if request.max_output:
            names = ("max_completion_tokens", "max_tokens")
            name = next(
                (n for n in (names if self._official else names[::-1]) if n not in request.refused), ""
            )
            fields |= {name: request.max_output} if name else {}
        effort = request.effort or self._settings.effort
        if effort:
            fields["reasoning_effort"] = effort
        if self._official and request.session:
            fields["prompt_cache_key"] = request.session
        if verbosity := self._choose_verbosity(request):
            fields["verbosity"] = verbosity
        if request.schema is not None:
            form: JsonObject = {"name": "answer", "schema": request.schema}
            fields["response_format"] = {"type": "json_schema", "json_schema": form}
        fields.update(request.options)
        return fields

    def _choose_verbosity(self, request: ModelRequest) -> str:
        """Return the verbosity to request; "" if the service may not know the field."""
        is_supported = self._official and "verbosity" not in request.refused
        return find_traits(request.model).verbosity if is_supported else ""

    def _build_responses_fields(self, request: ModelRequest) -> JsonObject:
        fields: JsonObject = {"stream": True, "store": False}
        if request.max_output:
            fields["max_output_tokens"] = request.max_output
        entry = catalogue.find_model(request.model)
        if entry is None or entry.thinking:
            fields["include"] = ["reasoning.encrypted_content"]
            effort = request.effort or self._settings.effort
            fields["reasoning"] = {"summary": "auto", **({"effort": effort} if effort else {})}
        if self._official and request.session:
            fields["prompt_cache_key"] = request.session
        if verbosity := self._choose_verbosity(request):
            fields["text"] = {"verbosity": verbosity}
        fields.update(request.options)
        return fields

    async def _get_json(self, path: str) -> JsonObject:
        try:
            client = await self._get_client()
            response = await client.get(
                join_url(self._service.address, path) if path.startswith("/") else path,
                cast_to=httpx2.Response,
                options={"headers": self._headers},
            )
        except Exception as error:  # the SDK's own kinds; they become LLMError here
            raise from_exception(self._service, error) from error
        return read_object(self._service, response.content)

    async def _get_client(self) -> AsyncOpenAI:
        if self._client is not None:
            return self._client
        if self._official and not self._key:
            message = text("llm.needs_key", service="OpenAI")
            raise LLMAuthError(Failure(kind="auth", message=message, hint=self._service.key_hint))
        if "openai" not in sys.modules:
            await asyncio.to_thread(importlib.import_module, "openai")
            if self._client is not None:  # another request created the client meanwhile
                return self._client
        # Imported on first use, as it takes 0.4 s.
        from openai import AsyncOpenAI, Omit

        client = AsyncOpenAI(
            api_key=self._key,
            base_url=self._service.address,
            max_retries=0,
            timeout=build_timeouts(self._settings),
            default_headers=self._settings.headers,
            http_client=create_http_client(self._settings),
            _enforce_credentials=False,
        )
        if not self._official:
            client.organization = client.project = None  # set from the environment, but only for OpenAI
        has_own = any(name.lower() == "authorization" for name in self._settings.headers)
        unsent = _TELEMETRY if self._key or has_own else (*_TELEMETRY, "Authorization")
        self._headers = dict.fromkeys(unsent, Omit())  # pyright: ignore[reportAttributeAccessIssue]  # the SDK's way to send none
        self._client = client
        return client


def decode_model_info(provider: str, entry: JsonObject, context: int = 0) -> ModelInfo:
    """Decode an entry of `/models`, with the context window under any of the names that services use."""
    name = entry.get("id")
    meta = entry.get("meta")  # llama.cpp
    sources: tuple[JsonObject, ...] = (entry, meta) if isinstance(meta, dict) else (entry,)
    window = context or next(
        (size for source in sources for key in _WINDOW_KEYS if (size := to_count(source.get(key)))), 0
    )
    info = catalogue.build_model_info(
        provider,
        name if isinstance(name, str) else "",
        context=window,
        max_output=to_count(entry.get("max_completion_tokens") or entry.get("max_output_tokens")),
    )
    return info.model_copy(update={"images": True}) if _accepts_images(entry) else info


_WINDOW_KEYS = (
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
    "loaded_context_length",
    "n_ctx",
    "n_ctx_train",
)


def _accepts_images(entry: JsonObject) -> bool:
    """Return True if the entry says that the model accepts images."""
    architecture = entry.get("architecture")
    inputs: JsonValue = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    return entry.get("type") == "vlm" or (isinstance(inputs, list) and "image" in inputs)


class LMStudioProvider(OpenAIProvider):
    """Provider for LM Studio's OpenAI-compatible server, whose own model list includes context windows."""

    async def models(self) -> tuple[ModelInfo, ...]:
        root = strip_version(self._service.address)
        try:
            listed = (await self._get_json(join_url(root, "/api/v0/models"))).get("data")
        except LLMError as error:
            if error.status in (0, 401, 403):
                raise
            return await super().models()  # older than 0.3.6
        entries = [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
        # Loaded ones first: they respond immediately, and the first is the default model.
        entries.sort(key=lambda entry: entry.get("state") != "loaded")
        return tuple(
            self._decode_info(entry)
            for entry in entries
            if entry.get("id") and entry.get("type") != "embeddings"
        )

    def _decode_info(self, entry: JsonObject) -> ModelInfo:
        """Decode an entry. Values from LM Studio take precedence over the catalog."""
        window = to_count(entry.get("loaded_context_length")) or to_count(entry.get("max_context_length"))
        abilities = entry.get("capabilities")
        info = catalogue.build_model_info(
            self.name, str(entry["id"]), context=self._settings.context_length or window
        )
        updates = {"images": entry.get("type") == "vlm"}
        if isinstance(abilities, list):
            updates["tools"] = "tool_use" in abilities
        return info.model_copy(update=updates)
