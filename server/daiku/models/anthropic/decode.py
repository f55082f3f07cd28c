"""Decoder for replies of Anthropic's Messages API."""

from __future__ import annotations

from pydantic import JsonValue

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject, long_id
from daiku.domain.config import Price
from daiku.domain.messages import (
    AssistantMessage,
    FinishReason,
    ModelEvent,
    Reply,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from daiku.domain.tools import ToolCall
from daiku.models.anthropic.encode import PROTOCOL
from daiku.models.catalogue import compute_cost
from daiku.models.transport.calls import parse_arguments
from daiku.models.transport.failures import from_body, stream_cut_error
from daiku.models.transport.service import Service
from daiku.models.transport.stream import SseParser, SurrogateReplacer, parse_json, replace_surrogates
from daiku.models.transport.wire import read_object
from daiku.run.rules.calls.toolnames import NameMap
from daiku.texts.text import Text, text

_FINISH: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


@dataclass(slots=True)
class _ContentBlock:
    """Content block that is being received."""

    kind: str
    parts: list[str] = field(default_factory=list[str])
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: JsonValue = None
    replacer: SurrogateReplacer = field(default_factory=SurrogateReplacer)

    @property
    def text(self) -> str:
        return "".join(self.parts)


class AnthropicDecoder:
    """Decoder of one reply.

    `model` and `after` (the digest of the conversation that it answers) are stored with its thinking; `names` maps
    wire names of tools to their names.
    """

    def __init__(
        self,
        service: Service,
        *,
        names: NameMap | None = None,
        model: str = "",
        after: str = "",
        prices: dict[str, Price] | None = None,
    ) -> None:
        self._service = service
        self._names = names or NameMap()
        self._model, self._after, self._prices = model, after, prices or {}
        self._cutter = SseParser()
        self._blocks: dict[int, _ContentBlock] = {}
        self._usage: dict[str, int] = {}
        self._answered_by = ""
        self._stop: str | None = None
        self._refusal = ""
        self._ended = False

    @property
    def ended(self) -> bool:
        return self._ended

    def feed(self, data: bytes) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        for event in self._cutter.feed(data):
            if not self._ended:
                self._handle_event(read_object(self._service, event.data), events)
        return events

    def finish(self) -> Reply:
        """Return the reply. Raises StreamCutError if the closing event is missing."""
        for event in self._cutter.flush():
            if not self._ended:
                self._handle_unterminated(event.data)
        if (document := self._cutter.document) is not None:
            self._read_document(document)
        if not self._ended:
            raise stream_cut_error(self._service)
        return self._build_reply()

    def _handle_unterminated(self, data: bytes) -> None:
        """Handle an event without its blank line; ignore a partial one, as it means a cut stream."""
        try:
            value = parse_json(data)
        except ValueError:
            return
        if isinstance(value, dict):
            self._handle_event(value, [])

    def _read_document(self, document: bytes) -> None:
        """Read a body that is one message or one error instead of a stream."""
        try:
            message = parse_json(document)
        except ValueError:
            return
        if not isinstance(message, dict) or message.get("type") == "error" or "error" in message:
            raise from_body(self._service, message)
        self._start_message(message)
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else []):
            if isinstance(block, dict):
                self._open_block(index, block, [])
        self._read_stop(message)
        self._ended = self._stop is not None

    def _handle_event(self, event: JsonObject, events: list[ModelEvent]) -> None:
        match event.get("type"):
            case "content_block_delta":
                delta = event.get("delta")
                block = self._blocks.get(_get_index(event))
                if isinstance(delta, dict) and block is not None:
                    _extend_block(block, delta, events)
            case "content_block_start":
                content = event.get("content_block")
                if isinstance(content, dict):
                    self._open_block(_get_index(event), content, events)
            case "message_start":
                message = event.get("message")
                if isinstance(message, dict):
                    self._start_message(message)
            case "message_delta":
                delta = event.get("delta")
                self._read_stop(delta if isinstance(delta, dict) else {})
                self._add_usage(event.get("usage"))
            case "message_stop":
                self._ended = True
            case "error":
                raise from_body(self._service, event)
            case None if "error" in event:
                raise from_body(self._service, event)
            case _:
                pass  # ping, content_block_stop, and future events

    def _start_message(self, message: JsonObject) -> None:
        model = message.get("model")
        self._answered_by = model if isinstance(model, str) else self._answered_by
        self._add_usage(message.get("usage"))

    def _add_usage(self, usage: JsonValue) -> None:
        """Store usage numbers. They are running totals, so later ones replace earlier ones."""
        if isinstance(usage, dict):
            self._usage.update({k: v for k, v in usage.items() if isinstance(v, int)})

    def _read_stop(self, delta: JsonObject) -> None:
        stop, details = delta.get("stop_reason"), delta.get("stop_details")
        self._stop = stop if isinstance(stop, str) else self._stop
        if isinstance(details, dict) and isinstance(why := details.get("explanation"), str):
            self._refusal = why

    def _open_block(self, index: int, content: JsonObject, events: list[ModelEvent]) -> None:
        """Open a content block. Some services send its first piece, or all of it, here."""
        block = self._blocks[index] = _ContentBlock(
            kind=_get_string(content, "type"),
            id=_get_string(content, "id"),
            name=_get_string(content, "name"),
            data=_get_string(content, "data"),
            signature=_get_string(content, "signature"),
            input=content.get("input"),
        )
        if first := _get_string(content, "text"):
            _extend_block(block, {"type": "text_delta", "text": first}, events)
        if first := _get_string(content, "thinking"):
            _extend_block(block, {"type": "thinking_delta", "thinking": first}, events)

    def _build_reply(self) -> Reply:
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        for block in blocks:
            if rest := block.replacer.flush():
                block.parts.append(rest)
        reply_text = Text("".join(block.text for block in blocks if block.kind == "text"))
        thinking = "".join(block.text for block in blocks if block.kind == "thinking")
        calls = tuple(self._build_call(block) for block in blocks if block.kind == "tool_use")
        finish = _FINISH.get(self._stop or "", "other")
        if finish == "content_filter" and not reply_text:
            reply_text = Text(self._refusal) if self._refusal else text("llm.declined")
        message = AssistantMessage(
            text=reply_text, thinking=thinking, calls=calls, opaque=self._encode_opaque(blocks)
        )
        return Reply(message, self._build_usage(), finish)

    def _build_call(self, block: _ContentBlock) -> ToolCall:
        args, malformed = parse_arguments(block.text)
        if not block.parts and isinstance(block.input, dict):
            args = block.input
        return ToolCall(
            id=block.id or long_id("call"),
            tool=self._names.to_name(replace_surrogates(block.name)),
            args=args,
            malformed=malformed,
        )

    def _encode_opaque(self, blocks: list[_ContentBlock]) -> JsonObject:
        """Return the data for sending the thinking back: order of blocks, signatures, and text lengths."""
        if not any(block.signature or block.data or block.kind == "thinking" for block in blocks):
            return {}
        order: list[JsonValue] = []
        for block in blocks:
            match block.kind:
                case "text":
                    order.append({"type": "text", "length": len(block.text)})
                case "thinking":
                    entry: JsonObject = {"type": "thinking", "length": len(block.text)}
                    order.append({**entry, "signature": block.signature})
                case "redacted_thinking":
                    order.append({"type": "redacted_thinking", "data": block.data})
                case "tool_use":
                    order.append({"type": "tool_use"})
                case _:
                    pass
        return {PROTOCOL: {"model": self._model, "after": self._after, "blocks": order}}

    def _build_usage(self) -> Usage:
        cached = self._usage.get("cache_read_input_tokens", 0)
        cache_writes = self._usage.get("cache_creation_input_tokens", 0)
        usage = Usage(
            model=self._answered_by or self._model,
            prompt_tokens=self._usage.get("input_tokens", 0) + cached + cache_writes,
            completion_tokens=self._usage.get("output_tokens", 0),
            cached_tokens=cached,
        )
        price = compute_cost(usage, self._model or usage.model, self._prices, cache_writes=cache_writes)
        return usage.model_copy(update={"cost": price})


def _extend_block(block: _ContentBlock, delta: JsonObject, events: list[ModelEvent]) -> None:
    kind = delta.get("type")
    if kind == "text_delta":
        text = delta.get("text")
        if isinstance(text, str) and (text := block.replacer.feed(text)):
            block.parts.append(text)
            events.append(TextDelta(text))
    elif kind == "input_json_delta":
        piece = delta.get("partial_json")
        if isinstance(piece, str):
            block.parts.append(piece)
    elif kind == "thinking_delta":
        text = delta.get("thinking")
        if isinstance(text, str) and (text := block.replacer.feed(text)):
            block.parts.append(text)
            events.append(ThinkingDelta(text))
    elif kind == "signature_delta":
        block.signature += _get_string(delta, "signature")


def _get_index(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0


def _get_string(value: JsonObject, key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""
