"""The `gemini` provider: Google's generateContent over HTTP, without an SDK."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from urllib.parse import quote, urlsplit

import httpx2

from daiku.core.calls.toolnames import NameMap
from daiku.domain.base import JsonObject
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import LLMError
from daiku.domain.messages import ModelEvent, ModelInfo, ModelRequest
from daiku.llm.catalogue import model_info
from daiku.llm.gemini.decode import GeminiDecoder
from daiku.llm.gemini.encode import Content, body, encode_tools, history
from daiku.llm.transport.addresses import join_url
from daiku.llm.transport.history import Histories, LastResult
from daiku.llm.transport.service import Service
from daiku.llm.transport.stream import encode_json
from daiku.llm.transport.wire import HttpService, number, stream_reply

_VERSION = re.compile(r"/v\d+\w*$")
_NO_CHAT = re.compile(r"embedding|-tts|-image|imagen|veo|aqa|-live|native-audio|robotics|computer-use")
PAGES = 20


class GeminiProvider:
    """Gemini's own protocol, at Google or another `base_url` (with or without a version in its path)."""

    name = "gemini"

    def __init__(self, service: Service, settings: ProviderSettings) -> None:
        self._service = service
        self._settings = settings
        address = (
            service.address
            if _VERSION.search(urlsplit(service.address).path)
            else join_url(service.address, "/v1beta")
        )
        key = settings.api_key.get_secret_value()
        self._http = HttpService(service, settings, address, {"x-goog-api-key": key})
        self._histories = Histories[Content](history)
        self._tools = LastResult(encode_tools)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        contents = self._histories.of(request).encode(request.messages)
        content = body(request, contents, self._tools.of(request.tools))
        decoder = GeminiDecoder(self._service, names=NameMap(request.tools), model=request.model)
        path = f"{_path(request.model)}:streamGenerateContent?alt=sse"

        async def open_response() -> httpx2.Response:
            return await self._http.send("POST", path, content)

        return stream_reply(self._service, self._settings, open_response, decoder)

    async def models(self) -> tuple[ModelInfo, ...]:
        found: list[ModelInfo] = []
        token = ""
        for _ in range(PAGES):
            page = await self._http.read("GET", f"models?pageSize=1000{token}")
            models = page.get("models")
            entries = [m for m in models if isinstance(m, dict)] if isinstance(models, list) else []
            found.extend(_info(entry) for entry in entries if _chats(entry))
            if not isinstance(more := page.get("nextPageToken"), str) or not more:
                break
            token = f"&pageToken={quote(more, safe='')}"
        return tuple(found)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        contents = self._histories.of(request).encode(request.messages)
        whole = b'{"generateContentRequest":{"model":' + encode_json(_path(request.model)) + b","
        content = whole + body(request, contents, self._tools.of(request.tools))[1:] + b"}"
        try:
            counted = await self._http.read("POST", f"{_path(request.model)}:countTokens", content)
        except LLMError as error:
            if error.status in (404, 405, 501):
                return None  # a server that only speaks like Gemini
            raise
        total = counted.get("totalTokens")
        return total if isinstance(total, int) else None

    async def aclose(self) -> None:
        await self._http.aclose()


def _path(model: str) -> str:
    """`models/x`; names that are paths already (tunedModels/x) stay."""
    return quote(model if "/" in model else f"models/{model}", safe="/:.@")


def _chats(entry: JsonObject) -> bool:
    methods = entry.get("supportedGenerationMethods")
    generates = not isinstance(methods, list) or "generateContent" in methods
    return generates and not _NO_CHAT.search(str(entry.get("name", "")))


def _info(entry: JsonObject) -> ModelInfo:
    known = model_info(
        "gemini",
        str(entry.get("name", "")).removeprefix("models/"),
        context=number(entry.get("inputTokenLimit")),
        max_output=number(entry.get("outputTokenLimit")),
    )
    thinking = entry.get("thinking")
    images = {"images": known.images or known.name.startswith("gemini-")}
    return known.model_copy(update=images | ({"thinking": thinking} if isinstance(thinking, bool) else {}))
