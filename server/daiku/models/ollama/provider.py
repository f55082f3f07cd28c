"""The `ollama` provider: local models over Ollama's native protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import assert_never

import httpx2
from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject, long_id
from daiku.domain.config import ProviderSettings
from daiku.domain.errors import ContextOverflowError, Failure, LLMRequestError
from daiku.domain.messages import (
    AssistantMessage,
    Effort,
    FinishReason,
    Image,
    Message,
    ModelEvent,
    ModelInfo,
    ModelRequest,
    Reply,
    TextDelta,
    ThinkingDelta,
    ToolMessage,
    Usage,
    UserMessage,
)
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.models.tokens import estimate_request
from daiku.models.transport.calls import parse_arguments
from daiku.models.transport.failures import from_body, stream_cut_error
from daiku.models.transport.history import Histories, History, LastResult
from daiku.models.transport.service import Service
from daiku.models.transport.stream import (
    LineParser,
    SurrogateReplacer,
    encode_json,
    parse_json,
    replace_surrogates,
)
from daiku.models.transport.wire import HttpService, read_object, stream_reply, to_count
from daiku.run.rules.calls.toolnames import NameMap, wire_name
from daiku.texts.text import Text, text

KEEP_ALIVE = "30m"
"""Time that the server keeps a model loaded, to bridge pauses between turns: loading takes longer than most replies."""
PROTOCOL = "ollama"


def create_history(request: ModelRequest) -> History[tuple[bytes, ...]]:
    """Return a new history. Thinking is sent back only to the model that it came from."""
    model = "" if "provider_data" in request.refused else request.model

    def encode(message: Message, _before: list[tuple[bytes, ...]]) -> tuple[bytes, ...]:
        match message:
            case UserMessage():
                return (encode_json(_add_images({"role": "user", "content": message.text}, message.images)),)
            case ToolMessage():
                return _encode_result(message)
            case AssistantMessage():
                return (_encode_assistant(message, model),) if message.text or message.calls else ()
            case _:
                assert_never(message)

    return History(encode)


def _add_images(message: JsonObject, images: tuple[Image, ...]) -> JsonObject:
    return {**message, "images": [image.data for image in images]} if images else message


def _encode_result(message: ToolMessage) -> tuple[bytes, ...]:
    text = message.text if message.ok else f"Failed: {message.text}"
    name = wire_name(message.tool)
    result: JsonObject = {"role": "tool", "content": text, "tool_name": name, "tool_call_id": message.call_id}
    if not message.images:
        return (encode_json(result),)
    image_message: JsonObject = {"role": "user", "content": f"The picture that {name} returned:"}
    return (encode_json(result), encode_json(_add_images(image_message, message.images)))


def _encode_assistant(message: AssistantMessage, model: str) -> bytes:
    wire: JsonObject = {"role": "assistant", "content": message.text}
    if message.calls:
        wire["tool_calls"] = [_encode_call(call) for call in message.calls]
    if message.thinking and message.opaque.get(PROTOCOL) == model:
        wire["thinking"] = message.thinking
    return encode_json(wire)


def _encode_call(call: ToolCall) -> JsonValue:
    return {"id": call.id, "function": {"name": wire_name(call.tool), "arguments": call.args}}


def encode_tools(tools: tuple[ToolSpec, ...]) -> bytes:
    """Return the tools as JSON; b"" if there are none."""
    return encode_json([_encode_tool(tool) for tool in tools]) if tools else b""


def encode_body(
    request: ModelRequest, messages: list[tuple[bytes, ...]], tools: bytes, *, window: int, thinks: bool
) -> bytes:
    """Return the request as JSON; `window` is the context window in tokens that the server allocates."""
    options: JsonObject = {}
    if window:
        options["num_ctx"] = window
    if request.max_output:
        options["num_predict"] = request.max_output
    options.update(request.options)
    head: JsonObject = {"model": request.model, "stream": True, "keep_alive": KEEP_ALIVE}
    if options:
        head["options"] = options
    if request.schema is not None:
        head["format"] = request.schema
    if thinks and request.effort:
        head["think"] = _encode_effort(request.model, request.effort)
    pieces = [piece for message in messages for piece in message]
    if request.system.strip():
        pieces.insert(0, encode_json({"role": "system", "content": request.system}))
    offered = b',"tools":' + tools if tools else b""
    start = encode_json(head)[:-1] + offered + b',"messages":['
    return b"".join([start, b",".join(pieces), b"]}"])


def _encode_effort(model: str, effort: Effort) -> JsonValue:
    if effort == "none":
        return False
    return effort if "gpt-oss" in model else True  # other models only have on and off


def _encode_tool(tool: ToolSpec) -> JsonValue:
    return {
        "type": "function",
        "function": {
            "name": wire_name(tool.name),
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


class OllamaDecoder:
    """Decoder of one reply: one JSON object per line, the last one with `done`."""

    def __init__(self, service: Service, *, names: NameMap | None = None, model: str = "") -> None:
        self._service = service
        self._names = names or NameMap()
        self._model = self._requested = model
        self._cutter = LineParser()
        self._replacer = SurrogateReplacer()
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[ToolCall] = []
        self._last: JsonObject | None = None

    @property
    def ended(self) -> bool:
        return self._last is not None

    def feed(self, data: bytes) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for line in self._cutter.feed(data):
            if self._last is None:
                self._handle_line(read_object(self._service, line), events)
        return events

    def finish(self) -> Reply:
        """Return the reply. Raises StreamCutError if no line was marked as done."""
        for line in self._cutter.flush():
            try:
                value = parse_json(line)
            except ValueError:
                continue  # partial JSON of a cut stream
            if isinstance(value, dict):
                self._handle_line(value, [])
        if self._last is None:
            raise stream_cut_error(self._service)
        self._texts.append(self._replacer.flush())
        message = AssistantMessage(
            text=Text("".join(self._texts)),
            thinking=replace_surrogates("".join(self._thoughts)),
            calls=tuple(self._calls),
            opaque={PROTOCOL: self._requested} if self._thoughts else {},
        )
        usage = Usage(
            model=self._model,
            prompt_tokens=to_count(self._last.get("prompt_eval_count")),
            completion_tokens=to_count(self._last.get("eval_count")),
        )
        return Reply(message, usage, self._finish_reason(self._last.get("done_reason")))

    def _handle_line(self, line: JsonObject, events: list[ModelEvent]) -> None:
        if line.get("error"):
            raise from_body(self._service, line)
        model, message = line.get("model"), line.get("message")
        self._model = self._model or (model if isinstance(model, str) else "")
        if isinstance(message, dict):
            self._handle_message(message, events)
        elif isinstance(text := line.get("response"), str):  # some proxies use the form of /api/generate
            self._handle_message({"content": text, "thinking": line.get("thinking")}, events)
        if line.get("done") is True:
            self._last = line

    def _handle_message(self, message: JsonObject, events: list[ModelEvent]) -> None:
        thinking, text, calls = message.get("thinking"), message.get("content"), message.get("tool_calls")
        if isinstance(thinking, str) and thinking:
            self._thoughts.append(thinking)
            events.append(ThinkingDelta(replace_surrogates(thinking)))
        if isinstance(text, str) and text and (text := self._replacer.feed(text)):
            self._texts.append(text)
            events.append(TextDelta(text))
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict) and isinstance(function := call.get("function"), dict):
                self._handle_call(call.get("id"), function)

    def _handle_call(self, call_id: JsonValue, function: JsonObject) -> None:
        name, raw_args = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or not name:
            return
        args, malformed = (raw_args, None) if isinstance(raw_args, dict) else ({}, None)
        if isinstance(raw_args, str):
            args, malformed = parse_arguments(raw_args)
        used_ids = {call.id for call in self._calls}
        is_usable = isinstance(call_id, str) and call_id and call_id not in used_ids
        self._calls.append(
            ToolCall(
                id=call_id if isinstance(call_id, str) and is_usable else long_id("call"),
                tool=self._names.to_name(replace_surrogates(name)),
                args=args,
                malformed=malformed,
            )
        )

    def _finish_reason(self, reason: JsonValue) -> FinishReason:
        if reason == "length":
            return "length"
        if self._calls:
            return "tool_calls"
        return "stop" if reason in {"stop", None, ""} else "other"


MAX_CONCURRENT_DETAILS = 4
"""Maximum number of concurrent requests for model details."""
MIN_MEASURED_TOKENS = 500
"""Minimum estimated tokens of a request that corrects estimates: in shorter ones the model's template dominates."""


@dataclass(frozen=True, slots=True)
class ModelDetails:
    """Properties of a model from the server; `capabilities` is None if an old server lists no capabilities."""

    context: int = 0
    capabilities: frozenset[str] | None = None

    def may_have(self, capability: str) -> bool:
        """Return True if the model may have the capability: it lists it, or the server lists none."""
        return self.capabilities is None or capability in self.capabilities


class OllamaProvider:
    """Provider for Ollama's `/api/chat`, with an explicit context window, images, thinking, and tools."""

    name = "ollama"

    def __init__(self, service: Service, settings: ProviderSettings, default_context: int) -> None:
        self._service = service
        self._settings = settings
        self._context = settings.context_length or default_context
        key = settings.api_key.get_secret_value()
        self._http = HttpService(service, settings, service.address, {"authorization": f"Bearer {key}"})
        self._histories = Histories[tuple[bytes, ...]](create_history)
        self._tools = LastResult(encode_tools)
        self._details: dict[str, ModelDetails] = {}
        self._scales: dict[str, float] = {}
        """Tokens counted by the server per estimated token, by model; at least 1."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        decoder = OllamaDecoder(self._service, names=NameMap(request.tools), model=request.model)
        messages = self._histories.of(request).encode(request.messages)

        async def open_response() -> httpx2.Response:
            details = await self._fetch_details(request.model)
            window = self._choose_window(details)
            if request.tools and not details.may_have("tools"):
                raise self._no_tools_error(request.model)
            has_thinking = details.capabilities is not None and "thinking" in details.capabilities
            tools = self._tools.of(request.tools)
            content = encode_body(request, messages, tools, window=window, thinks=has_thinking)
            if len(content) > window:  # a token is at least one byte, so shorter requests fit
                self._check_size(request, window)
            try:
                return await self._http.send("POST", "/api/chat", content)
            except LLMRequestError as error:
                raise self._add_hint(error, request.model) from error

        async with aclosing(stream_reply(self._service, self._settings, open_response, decoder)) as pieces:
            async for event in pieces:
                if isinstance(event, Reply):
                    self._learn_scale(request, event.usage.prompt_tokens)
                yield event

    async def models(self) -> tuple[ModelInfo, ...]:
        entries = (await self._http.read("GET", "/api/tags")).get("models")
        names = [
            name
            for entry in (entries if isinstance(entries, list) else [])
            if isinstance(entry, dict) and isinstance(name := entry.get("model") or entry.get("name"), str)
        ]
        semaphore = asyncio.Semaphore(MAX_CONCURRENT_DETAILS)

        async def describe_model(name: str) -> ModelInfo | None:
            async with semaphore:
                details = await self._fetch_details(name)
            if not details.may_have("completion"):
                return None  # an embedding model
            return ModelInfo(
                provider=self.name,
                name=name,
                context=self._choose_window(details),
                tools=details.may_have("tools"),
                images=details.capabilities is not None and "vision" in details.capabilities,
                thinking=details.capabilities is not None and "thinking" in details.capabilities,
                trait=text("llm.trait.ollama"),
            )

        infos = await asyncio.gather(*(describe_model(name) for name in names))
        return tuple(model for model in infos if model is not None)

    async def count_tokens(self, request: ModelRequest) -> int | None:
        return None

    async def aclose(self) -> None:
        await self._http.aclose()

    def _choose_window(self, details: ModelDetails) -> int:
        return min(self._context, details.context) if details.context else self._context

    def _learn_scale(self, request: ModelRequest, counted: int) -> None:
        estimate = estimate_request(request)
        if estimate >= MIN_MEASURED_TOKENS:
            self._scales[request.model] = max(1.0, counted / estimate)

    def _check_size(self, request: ModelRequest, window: int) -> None:
        """Raise ContextOverflowError for a request that the server would silently truncate."""
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

    def _no_tools_error(self, model: str, status: int = 400) -> LLMRequestError:
        return LLMRequestError(
            Failure(
                kind="bad_request",
                message=text("llm.no_tools", model=model),
                hint=text("llm.use_action_list"),
            ),
            status=status,
            codes=("tools_unsupported",),
        )

    def _add_hint(self, error: LLMRequestError, model: str) -> LLMRequestError:
        if error.status == 404:
            failure = error.failure.model_copy(update={"hint": text("llm.pull_model", model=model)})
            return LLMRequestError(failure, status=404, said=error.said, codes=error.codes)
        if "does not support tools" in error.said:
            return self._no_tools_error(model, error.status)
        return error

    async def _fetch_details(self, model: str) -> ModelDetails:
        """Return what `/api/show` reports, requested once per model; empty details for an old server."""
        if model not in self._details:
            try:
                document = await self._http.read("POST", "/api/show", encode_json({"model": model}))
            except LLMRequestError as error:
                if error.status == 404:
                    return ModelDetails()  # unknown model: the chat request raises the error with a hint
                raise
            self._details[model] = _decode_details(document)
        return self._details[model]


def _decode_details(document: JsonObject) -> ModelDetails:
    capabilities, details = document.get("capabilities"), document.get("model_info")
    items = details.items() if isinstance(details, dict) else ()
    lengths = [value for key, value in items if key.endswith(".context_length")]
    return ModelDetails(
        context=max((to_count(length) for length in lengths), default=0),
        capabilities=frozenset(str(a) for a in capabilities) if isinstance(capabilities, list) else None,
    )
