"""The `ollama` provider: models on one's own machine, over Ollama's native protocol."""

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
"""A person thinks between two turns; loading a model anew takes longer than most replies."""
PROTOCOL = "ollama"


def history(request: ModelRequest) -> History[tuple[bytes, ...]]:
    """Return a new history; thinking goes back only to the model that it came from."""
    model = "" if "provider_data" in request.refused else request.model

    def encode(message: Message, _before: list[tuple[bytes, ...]]) -> tuple[bytes, ...]:
        match message:
            case UserMessage():
                return (encode_json(_with_images({"role": "user", "content": message.text}, message.images)),)
            case ToolMessage():
                return _result(message)
            case AssistantMessage():
                return (_assistant(message, model),) if message.text or message.calls else ()
            case _:
                assert_never(message)

    return History(encode)


def _with_images(message: JsonObject, images: tuple[Image, ...]) -> JsonObject:
    return {**message, "images": [image.data for image in images]} if images else message


def _result(message: ToolMessage) -> tuple[bytes, ...]:
    text = message.text if message.ok else f"Failed: {message.text}"
    name = wire_name(message.tool)
    result: JsonObject = {"role": "tool", "content": text, "tool_name": name, "tool_call_id": message.call_id}
    if not message.images:
        return (encode_json(result),)
    shown: JsonObject = {"role": "user", "content": f"The picture that {name} returned:"}
    return (encode_json(result), encode_json(_with_images(shown, message.images)))


def _assistant(message: AssistantMessage, model: str) -> bytes:
    wire: JsonObject = {"role": "assistant", "content": message.text}
    if message.calls:
        wire["tool_calls"] = [_call(call) for call in message.calls]
    if message.thinking and message.opaque.get(PROTOCOL) == model:
        wire["thinking"] = message.thinking
    return encode_json(wire)


def _call(call: ToolCall) -> JsonValue:
    return {"id": call.id, "function": {"name": wire_name(call.tool), "arguments": call.args}}


def encode_tools(tools: tuple[ToolSpec, ...]) -> bytes:
    """Return the tools as JSON; b"" if there are none."""
    return encode_json([_tool(tool) for tool in tools]) if tools else b""


def body(
    request: ModelRequest, messages: list[tuple[bytes, ...]], tools: bytes, *, window: int, thinks: bool
) -> bytes:
    """Return the request as JSON; `window` is the context in tokens that the server sets up."""
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
        head["think"] = _think(request.model, request.effort)
    pieces = [piece for message in messages for piece in message]
    if request.system.strip():
        pieces.insert(0, encode_json({"role": "system", "content": request.system}))
    offered = b',"tools":' + tools if tools else b""
    start = encode_json(head)[:-1] + offered + b',"messages":['
    return b"".join([start, b",".join(pieces), b"]}"])


def _think(model: str, effort: Effort) -> JsonValue:
    if effort == "none":
        return False
    return effort if "gpt-oss" in model else True  # the others only know on and off


def _tool(tool: ToolSpec) -> JsonValue:
    return {
        "type": "function",
        "function": {
            "name": wire_name(tool.name),
            "description": tool.description,
            "parameters": tool.parameters,
        },
    }


class OllamaDecoder:
    """Reads one reply: one JSON object a line, the last with `done`."""

    def __init__(self, service: Service, *, names: NameMap | None = None, model: str = "") -> None:
        self._service = service
        self._names = names or NameMap()
        self._model = self._asked = model
        self._cutter = LineParser()
        self._mender = SurrogateReplacer()
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
                self._line(read_object(self._service, line), events)
        return events

    def finish(self) -> Reply:
        """Return the whole reply. Raises StreamCutError if no line was marked as done."""
        for line in self._cutter.flush():
            try:
                value = parse_json(line)
            except ValueError:
                continue  # cut within
            if isinstance(value, dict):
                self._line(value, [])
        if self._last is None:
            raise stream_cut_error(self._service)
        self._texts.append(self._mender.flush())
        message = AssistantMessage(
            text=Text("".join(self._texts)),
            thinking=replace_surrogates("".join(self._thoughts)),
            calls=tuple(self._calls),
            opaque={PROTOCOL: self._asked} if self._thoughts else {},
        )
        usage = Usage(
            model=self._model,
            prompt_tokens=to_count(self._last.get("prompt_eval_count")),
            completion_tokens=to_count(self._last.get("eval_count")),
        )
        return Reply(message, usage, self._reason(self._last.get("done_reason")))

    def _line(self, line: JsonObject, events: list[ModelEvent]) -> None:
        if line.get("error"):
            raise from_body(self._service, line)
        model, message = line.get("model"), line.get("message")
        self._model = self._model or (model if isinstance(model, str) else "")
        if isinstance(message, dict):
            self._message(message, events)
        elif isinstance(text := line.get("response"), str):  # /api/generate, which some proxies answer with
            self._message({"content": text, "thinking": line.get("thinking")}, events)
        if line.get("done") is True:
            self._last = line

    def _message(self, message: JsonObject, events: list[ModelEvent]) -> None:
        thinking, text, calls = message.get("thinking"), message.get("content"), message.get("tool_calls")
        if isinstance(thinking, str) and thinking:
            self._thoughts.append(thinking)
            events.append(ThinkingDelta(replace_surrogates(thinking)))
        if isinstance(text, str) and text and (text := self._mender.feed(text)):
            self._texts.append(text)
            events.append(TextDelta(text))
        for call in calls if isinstance(calls, list) else []:
            if isinstance(call, dict) and isinstance(function := call.get("function"), dict):
                self._call(call.get("id"), function)

    def _call(self, call_id: JsonValue, function: JsonObject) -> None:
        name, given = function.get("name"), function.get("arguments")
        if not isinstance(name, str) or not name:
            return
        args, malformed = (given, None) if isinstance(given, dict) else ({}, None)
        if isinstance(given, str):
            args, malformed = parse_arguments(given)
        known = {call.id for call in self._calls}
        usable = isinstance(call_id, str) and call_id and call_id not in known
        self._calls.append(
            ToolCall(
                id=call_id if isinstance(call_id, str) and usable else long_id("call"),
                tool=self._names.to_name(replace_surrogates(name)),
                args=args,
                malformed=malformed,
            )
        )

    def _reason(self, reason: JsonValue) -> FinishReason:
        if reason == "length":
            return "length"
        if self._calls:
            return "tool_calls"
        return "stop" if reason in {"stop", None, ""} else "other"


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
        context=max((to_count(length) for length in lengths), default=0),
        able=frozenset(str(a) for a in able) if isinstance(able, list) else None,
    )
