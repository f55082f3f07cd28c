"""The `gemini` provider: Google's generateContent API over HTTP, without an SDK."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from urllib.parse import quote, urlsplit

import httpx2
from pydantic import JsonValue

from daiku.domain.base import JsonObject, long_id
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import Failure, LLMError, LLMRequestError, StreamCutError
from daiku.domain.messages import (
    AssistantMessage,
    FinishReason,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Reply,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from daiku.domain.tools import ToolCall
from daiku.models.catalogue import build_model_info
from daiku.models.gemini.encode import PROTOCOL, Content, create_history, encode_body, encode_tools
from daiku.models.transport.addresses import join_url
from daiku.models.transport.failures import from_body, stream_cut_error
from daiku.models.transport.history import Histories, LastResult
from daiku.models.transport.service import Service
from daiku.models.transport.stream import SseParser, SurrogateReplacer, encode_json, parse_json
from daiku.models.transport.wire import HttpService, read_object, stream_reply, to_count
from daiku.run.rules.calls.toolnames import NameMap
from daiku.texts.text import Text, text

# Including the enum's numbers, which some gateways send.
_FINISH: dict[JsonValue, FinishReason] = {"STOP": "stop", 1: "stop", "MAX_TOKENS": "length", 2: "length"}
_FILTERED: set[JsonValue] = {
    "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "IMAGE_SAFETY", 3, 4, 6, 7, 8,
}  # fmt: skip
_BAD_CALL: set[JsonValue] = {"MALFORMED_FUNCTION_CALL", 9}


class GeminiDecoder:
    """Decoder of one reply: server-sent events, a JSON array of chunks, or one chunk."""

    def __init__(self, service: Service, *, names: NameMap | None = None, model: str = "") -> None:
        self._service = service
        self._names = names or NameMap()
        self._model, self._answered_by = model, ""
        self._cutter = SseParser()
        self._replacer = SurrogateReplacer()
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCall] = []
        self._order: list[JsonObject] = []
        self._signed = self._ids = False
        self._usage: JsonObject = {}
        self._finish: JsonValue = None

    @property
    def ended(self) -> bool:
        """False: only the end of the stream ends a reply, as usage may follow the finish reason."""
        return False

    def feed(self, data: bytes) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for event in self._cutter.feed(data):
            if event.data != b"[DONE]":
                self._handle_chunk(read_object(self._service, event.data), events)
        return events

    def finish(self) -> Reply:
        """Return the reply. Raises StreamCutError if no chunk had a finish reason."""
        rest = [event.data for event in self._cutter.flush()]
        if (document := self._cutter.document) is not None:
            rest.append(document)
        for data in rest:
            self._read_document(data)
        if self._finish is None:
            raise stream_cut_error(self._service)
        if self._finish in _BAD_CALL and not self._calls:
            raise StreamCutError(
                Failure(
                    kind="format",
                    message=text("llm.call_unreadable", service=self._service.label),
                    hint=text("llm.ask_another_model"),
                    retryable=True,
                )
            )
        return self._build_reply()

    def _read_document(self, data: bytes) -> None:
        try:
            value = parse_json(data)
        except ValueError:
            return  # partial JSON of a cut stream
        for chunk in value if isinstance(value, list) else [value]:
            if isinstance(chunk, dict):
                self._handle_chunk(chunk, [])

    def _handle_chunk(self, chunk: JsonObject, events: list[ModelEvent]) -> None:
        if "error" in chunk:
            raise from_body(self._service, chunk)
        if isinstance(usage := chunk.get("usageMetadata"), dict):
            self._usage = usage if "totalTokenCount" in usage else {**self._usage, **usage}
        if isinstance(model := chunk.get("modelVersion"), str):
            self._answered_by = model
        candidates = chunk.get("candidates")
        if isinstance(candidates, list) and candidates and isinstance(first := candidates[0], dict):
            content = first.get("content")
            parts = content.get("parts") if isinstance(content, dict) else None
            for part in parts if isinstance(parts, list) else []:
                if isinstance(part, dict):
                    self._handle_part(part, events)
            self._finish = first.get("finishReason") or self._finish
        elif isinstance(feedback := chunk.get("promptFeedback"), dict) and feedback.get("blockReason"):
            raise self._blocked_error(feedback)

    def _blocked_error(self, feedback: JsonObject) -> LLMRequestError:
        reason = feedback.get("blockReasonMessage") or feedback["blockReason"]
        return LLMRequestError(
            Failure(
                kind="content_filter",
                message=text("llm.blocked", service=self._service.label, words=str(reason)),
                hint=text("llm.say_it_differently"),
            )
        )

    def _handle_part(self, part: JsonObject, events: list[ModelEvent]) -> None:
        signature = part.get("thoughtSignature") or part.get("thought_signature")
        signature = signature if isinstance(signature, str) else ""
        call, text = part.get("functionCall"), part.get("text")
        if isinstance(call, dict):
            self._handle_call(call, signature)
        elif isinstance(text, str) and part.get("thought") is True:
            if text:
                self._thoughts.append(text)
                events.append(ThinkingDelta(text))
        elif isinstance(text, str):
            text = self._replacer.feed(text)
            self._store_text(text, signature)
            if text:
                events.append(TextDelta(text))

    def _store_text(self, text: str, signature: str) -> None:
        self._texts.append(text)
        last = self._order[-1] if self._order else {}
        length = last.get("length")
        if isinstance(length, int) and "signature" not in last and not signature:
            last["length"] = length + len(text)
        elif signature:
            self._signed = True
            self._order.append({"length": len(text), "signature": signature})
        elif text:
            self._order.append({"length": len(text)})

    def _handle_call(self, call: JsonObject, signature: str) -> None:
        name, args, call_id = call.get("name"), call.get("args"), call.get("id")
        if not name:  # another piece of the previous call, or its end
            if self._calls:
                _apply_partial_args(self._calls[-1].args, call.get("partialArgs"))
            return
        self._ids = self._ids or bool(call_id)
        self._calls.append(
            ToolCall(
                id=call_id if isinstance(call_id, str) and call_id else long_id("call"),
                tool=self._names.to_name(name if isinstance(name, str) else ""),
                args=dict(args) if isinstance(args, dict) else {},
            )
        )
        _apply_partial_args(self._calls[-1].args, call.get("partialArgs"))
        self._signed = self._signed or bool(signature)
        self._order.append({"signature": signature} if signature else {})

    def _build_reply(self) -> Reply:
        if rest := self._replacer.flush():
            self._store_text(rest, "")
        opaque: JsonObject = {}
        if self._signed or self._ids:
            order: list[JsonValue] = [*self._order]
            opaque = {PROTOCOL: {"model": self._model, "parts": order, "ids": self._ids}}
        message = AssistantMessage(
            text=Text("".join(self._texts)),
            thinking="".join(self._thoughts),
            calls=tuple(self._calls),
            opaque=opaque,
        )
        usage = Usage(
            model=self._answered_by or self._model,
            prompt_tokens=to_count(self._usage.get("promptTokenCount"))
            + to_count(self._usage.get("toolUsePromptTokenCount")),
            completion_tokens=to_count(self._usage.get("candidatesTokenCount"))
            + to_count(self._usage.get("thoughtsTokenCount")),
            cached_tokens=to_count(self._usage.get("cachedContentTokenCount")),
        )
        return Reply(message, usage, self._finish_reason())

    def _finish_reason(self) -> FinishReason:
        if self._finish in _FILTERED:
            return "content_filter"
        reason = _FINISH.get(self._finish, "other")
        return "tool_calls" if self._calls and reason in {"stop", "other"} else reason


_STEP = re.compile(r"""\.([^.\[]+)|\[(\d+)\]|\['([^']*)'\]""")


def _apply_partial_args(args: JsonObject, parts: JsonValue) -> None:
    """Set pieces of arguments at their `jsonPath`; append pieces of strings."""
    for part in parts if isinstance(parts, list) else []:
        if not isinstance(part, dict) or not isinstance(path := part.get("jsonPath"), str):
            continue
        value = next((part[key] for key in ("stringValue", "numberValue", "boolValue") if key in part), None)
        steps = [int(i) if i else name or quoted for name, i, quoted in _STEP.findall(path)]
        _set_at_path(args, steps, value)


def _set_at_path(target: JsonValue, steps: list[str | int], value: JsonValue) -> None:
    for index, step in enumerate(steps):
        is_last = index == len(steps) - 1
        new_value: JsonValue = value if is_last else [] if isinstance(steps[index + 1], int) else {}
        match target, step:
            case dict(), str():
                current = target.get(step)
                if is_last:
                    target[step] = (
                        current + value if isinstance(current, str) and isinstance(value, str) else value
                    )
                else:
                    target = target.setdefault(step, new_value)
            case list(), int() if step <= len(target):
                if step == len(target):
                    target.append(new_value)
                elif is_last:
                    current = target[step]
                    target[step] = (
                        current + value if isinstance(current, str) and isinstance(value, str) else value
                    )
                target = target[step]
            case _:
                return


_VERSION = re.compile(r"/v\d+\w*$")
_NO_CHAT = re.compile(r"embedding|-tts|-image|imagen|veo|aqa|-live|native-audio|robotics|computer-use")
MAX_PAGES = 20
"""Maximum number of pages of a model list to read."""


class GeminiProvider:
    """Provider for Gemini's protocol, at Google or another `base_url` (with or without a version in its path)."""

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
        self._histories = Histories[Content](create_history)
        self._tools = LastResult(encode_tools)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        contents = self._histories.of(request).encode(request.messages)
        content = encode_body(request, contents, self._tools.of(request.tools))
        decoder = GeminiDecoder(self._service, names=NameMap(request.tools), model=request.model)
        path = f"{_quote_model(request.model)}:streamGenerateContent?alt=sse"

        async def open_response() -> httpx2.Response:
            return await self._http.send("POST", path, content)

        return stream_reply(self._service, self._settings, open_response, decoder)

    async def models(self) -> tuple[ModelInfo, ...]:
        infos: list[ModelInfo] = []
        token = ""
        for _ in range(MAX_PAGES):
            page = await self._http.read("GET", f"models?pageSize=1000{token}")
            models = page.get("models")
            entries = [m for m in models if isinstance(m, dict)] if isinstance(models, list) else []
            infos.extend(_decode_info(entry) for entry in entries if _can_chat(entry))
            if not isinstance(next_token := page.get("nextPageToken"), str) or not next_token:
                break
            token = f"&pageToken={quote(next_token, safe='')}"
        return tuple(infos)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        contents = self._histories.of(request).encode(request.messages)
        head = b'{"generateContentRequest":{"model":' + encode_json(_quote_model(request.model)) + b","
        content = head + encode_body(request, contents, self._tools.of(request.tools))[1:] + b"}"
        try:
            answer = await self._http.read("POST", f"{_quote_model(request.model)}:countTokens", content)
        except LLMError as error:
            if error.status in (404, 405, 501):
                return None  # a compatible server without this endpoint
            raise
        total = answer.get("totalTokens")
        return total if isinstance(total, int) else None

    async def aclose(self) -> None:
        await self._http.aclose()


def _quote_model(model: str) -> str:
    """Return the model's URL path, `models/x`; names that are paths already (tunedModels/x) stay."""
    return quote(model if "/" in model else f"models/{model}", safe="/:.@")


def _can_chat(entry: JsonObject) -> bool:
    methods = entry.get("supportedGenerationMethods")
    generates = not isinstance(methods, list) or "generateContent" in methods
    return generates and not _NO_CHAT.search(str(entry.get("name", "")))


def _decode_info(entry: JsonObject) -> ModelInfo:
    info = build_model_info(
        "gemini",
        str(entry.get("name", "")).removeprefix("models/"),
        context=to_count(entry.get("inputTokenLimit")),
        max_output=to_count(entry.get("outputTokenLimit")),
    )
    thinking = entry.get("thinking")
    images = {"images": info.images or info.name.startswith("gemini-")}
    return info.model_copy(update=images | ({"thinking": thinking} if isinstance(thinking, bool) else {}))
