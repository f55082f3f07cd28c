"""Encoder and decoder for OpenAI's Responses protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.messages import (
    AssistantMessage,
    FinishReason,
    Image,
    Message,
    ModelEvent,
    ModelRequest,
    Reply,
    TextDelta,
    ThinkingDelta,
    ToolMessage,
    UserMessage,
)
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.models.openai.chat import read_usage
from daiku.models.transport.calls import CallParts, build_calls, shorten_call_id
from daiku.models.transport.failures import cancelled_error, from_body, stream_cut_error
from daiku.models.transport.history import History
from daiku.models.transport.service import Service
from daiku.models.transport.stream import SseParser, SurrogateReplacer, encode_json, replace_surrogates
from daiku.models.transport.wire import read_object
from daiku.run.rules.calls.toolnames import NameMap
from daiku.texts.text import Text

PROTOCOL = "openai-responses"
MAX_ID_LENGTH = 64


def create_history(request: ModelRequest, service: str) -> History[bytes]:
    """Return a new history for the request's model. Reasoning items are sent back only to their author."""
    reader = identify_author(service, request.model)

    def encode(message: Message, before: list[bytes]) -> bytes:
        del before
        match message:
            case UserMessage():
                return _encode_user(message.text, message.images)
            case AssistantMessage():
                return b",".join([encode_json(item) for item in _build_items(message, reader)])
            case ToolMessage():
                return _encode_output(message.call_id, message.text, message.images)
            case _:
                assert_never(message)

    return History(encode)


def encode_input(pieces: Iterable[bytes]) -> bytes:
    """Return the `input` of a request."""
    return b"[" + b",".join([piece for piece in pieces if piece]) + b"]"


def identify_author(service: str, model: str) -> str:
    """Return `service/model`, the only one that can read the reasoning items of its replies."""
    return f"{service}/{model}"


def _build_items(message: AssistantMessage, reader: str) -> list[JsonObject]:
    """Return the output items of the reply, in their original order if it matters."""
    stored = message.opaque.get(PROTOCOL)
    order = stored.get("items") if isinstance(stored, dict) and stored.get("author") == reader else None
    calls = {call.id: call for call in message.calls}
    text = message.text
    items: list[JsonObject] = []
    for mark in order if isinstance(order, list) else []:
        if not isinstance(mark, dict):
            continue
        match mark.get("type"):
            case "reasoning":
                items.append(mark)
            case "message":
                length = mark.get("length")
                part, text = (text[:length], text[length:]) if isinstance(length, int) else (text, "")
                phase = mark.get("phase")
                items += _build_message_items(part, {"phase": phase} if phase else {})
            case "function_call":
                call = calls.pop(str(mark.get("call_id")), None)
                if call is not None:
                    items.append(_encode_call(call))
            case _:
                pass
    items += _build_message_items(text, {})
    items += [_encode_call(call) for call in calls.values()]
    while items and items[-1].get("type") == "reasoning":
        items.pop()  # reasoning without a following item is refused
    return items


def _build_message_items(text: str, extra_fields: JsonObject) -> list[JsonObject]:
    if not text:
        return []
    content: list[JsonValue] = [{"type": "output_text", "text": text}]
    return [{"type": "message", "role": "assistant", "content": content, **extra_fields}]


def _encode_call(call: ToolCall) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": shorten_call_id(call.id, MAX_ID_LENGTH),
        "name": NameMap().to_wire(call.tool),
        "arguments": encode_json(call.args).decode(),
    }


def _encode_images(images: tuple[Image, ...]) -> list[JsonValue]:
    return [
        {"type": "input_image", "image_url": f"data:{i.media_type};base64,{i.data}", "detail": "auto"}
        for i in images
    ]


def _encode_user(text: str, images: tuple[Image, ...]) -> bytes:
    parts: list[JsonValue] = [{"type": "input_text", "text": text}] if text else []
    return encode_json({"type": "message", "role": "user", "content": parts + _encode_images(images)})


def _encode_output(call_id: str, text: str, images: tuple[Image, ...]) -> bytes:
    output: JsonValue = text or "(no output)"
    if images:
        parts: list[JsonValue] = [{"type": "input_text", "text": text}] if text else []
        output = parts + _encode_images(images)
    return encode_json(
        {"type": "function_call_output", "call_id": shorten_call_id(call_id, MAX_ID_LENGTH), "output": output}
    )


def encode_tools(tools: tuple[ToolSpec, ...], names: NameMap) -> bytes:
    return encode_json(
        [
            {
                "type": "function",
                "name": names.to_wire(tool.name),
                "description": tool.description,
                "parameters": tool.parameters,
                "strict": False,
            }
            for tool in tools
        ]
    )


_TEXT = {"response.output_text.delta", "response.refusal.delta"}
_THINKING = {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
_CLOSING = {"response.completed", "response.incomplete", "response.failed", "response.cancelled"}


class ResponsesDecoder:
    """Decoder of one reply of the Responses protocol. `author` is stored with the reasoning items."""

    def __init__(self, service: Service, names: NameMap, author: str = "") -> None:
        self._service = service
        self._names = names
        self._author = author
        self._cutter = SseParser()
        self._reset()

    def _reset(self) -> None:
        self._replacer = SurrogateReplacer()
        self._events: list[ModelEvent] = []
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._items: dict[int, JsonObject] = {}
        self._final: JsonObject | None = None
        self._has_refusal = False
        self._numbered = True
        self._last_number = -1
        self._seen_hashes: set[int] = set()

    @property
    def ended(self) -> bool:
        return self._final is not None

    def feed(self, data: bytes) -> list[ModelEvent]:
        for event in self._cutter.feed(data):
            self._handle_event(event.data)
        events, self._events = self._events, []
        return events

    def finish(self) -> Reply:
        document = self._cutter.document
        if document is not None:
            self._set_response(read_object(self._service, document))
        elif self._final is None:
            for event in self._cutter.flush():
                if event.data.endswith(b"}"):
                    self._handle_event(event.data)
        if self._final is None:
            raise stream_cut_error(self._service)
        return self._build_reply(self._final)

    def _handle_event(self, data: bytes) -> None:
        if data == b"[DONE]":
            return
        event = read_object(self._service, data)
        if self._final is not None:
            if event.get("type") != "response.created":
                return
            self._reset()  # a gateway that runs several steps sends several responses; use the last
        if self._numbered and self._is_duplicate(event.get("sequence_number"), data):
            return
        kind = event.get("type")
        delta = event.get("delta")
        if kind in _TEXT:
            if kind == "response.refusal.delta":
                self._has_refusal = True
            self._add_text(delta)
        elif kind in _THINKING:
            self._add_thinking(delta)
        elif kind == "response.output_item.done":
            item, index = event.get("item"), event.get("output_index")
            if isinstance(item, dict):
                self._items[index if isinstance(index, int) else len(self._items)] = item
        elif kind in _CLOSING:
            response = event.get("response")
            self._set_response(response if isinstance(response, dict) else {})
        elif kind == "error" or (kind is None and "error" in event):
            raise from_body(self._service, event)
        elif kind == "response.reasoning_summary_part.added" and event.get("summary_index"):
            self._add_thinking("\n\n")

    def _is_duplicate(self, number: JsonValue | None, data: bytes) -> bool:
        """Return True for an event that was sent again. Numbers that do not increase are ignored from then on."""
        if not isinstance(number, int):
            return False
        digest = hash(data)
        if number > self._last_number:
            self._last_number = number
            self._seen_hashes.add(digest)
            return False
        if digest in self._seen_hashes:
            return True
        self._numbered = False
        return False

    def _add_text(self, text: JsonValue | None) -> None:
        piece = self._replacer.feed(text) if isinstance(text, str) else ""
        if piece:
            self._texts.append(piece)
            self._events.append(TextDelta(piece))

    def _add_thinking(self, text: JsonValue | None) -> None:
        if isinstance(text, str) and text:
            self._thoughts.append(text)
            self._events.append(ThinkingDelta(replace_surrogates(text)))

    def _set_response(self, response: JsonObject) -> None:
        if response.get("status") in ("failed", "cancelled") or (
            response.get("error") and not response.get("output")
        ):
            if error := response.get("error"):
                raise from_body(self._service, {"error": error})
            raise cancelled_error(self._service)
        if not isinstance(response.get("output"), list) and not self._items and "status" not in response:
            raise from_body(self._service, response)
        self._final = response

    def _build_reply(self, response: JsonObject) -> Reply:
        items = [self._items[index] for index in sorted(self._items)]
        output = response.get("output")
        if isinstance(output, list) and output:
            items = [item for item in output if isinstance(item, dict)]
        self._texts.append(self._replacer.flush())
        streamed = "".join(self._texts)
        complete = replace_surrogates("".join(_read_text(item) for item in items))
        thinking = replace_surrogates(
            "".join(self._thoughts) or "\n\n".join(t for i in items for t in _read_thoughts(i))
        )
        calls = build_calls((_read_call(item) for item in items if item.get("type") in _CALLS), self._names)
        stored = _encode_items(items)
        message = AssistantMessage(
            text=Text(complete or streamed),
            thinking=thinking,
            calls=calls,
            opaque={PROTOCOL: {"author": self._author, "items": stored}} if stored else {},
        )
        usage = response.get("usage")
        model = response.get("model")
        return Reply(
            message,
            read_usage(usage if isinstance(usage, dict) else {}, model if isinstance(model, str) else ""),
            self._finish_reason(response, bool(calls)),
        )

    def _finish_reason(self, response: JsonObject, calls: bool) -> FinishReason:
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, dict) else None
        if reason in ("max_output_tokens", "max_tokens"):
            return "length"
        if reason == "content_filter" or self._has_refusal:
            return "content_filter"
        if response.get("status") in ("incomplete", "queued", "in_progress"):
            return "other"
        return "tool_calls" if calls else "stop"


_CALLS = {"function_call", "custom_tool_call"}


def _read_call(item: JsonObject) -> CallParts:
    parts = CallParts(id=str(item.get("call_id") or item.get("id") or ""))
    name = item.get("name")
    parts.add_name(name if isinstance(name, str) else "")
    if item.get("type") == "custom_tool_call":  # plain text instead of JSON
        parts.add_arguments({"input": item.get("input")})
    else:
        parts.add_arguments(item.get("arguments"))
    return parts


def _read_text(item: JsonObject) -> str:
    """Return the text of a message item, including a refusal."""
    content = item.get("content")
    if item.get("type") != "message" or not isinstance(content, list):
        return ""
    texts = [part.get("text") or part.get("refusal") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _read_thoughts(item: JsonObject) -> list[str]:
    """Return the parts of a reasoning item's summary, else of its content."""
    if item.get("type") != "reasoning":
        return []
    for key in ("summary", "content"):
        parts = item.get(key)
        texts = [p.get("text") for p in parts if isinstance(p, dict)] if isinstance(parts, list) else []
        if texts:
            return [text for text in texts if isinstance(text, str)]
    return []


def _encode_items(items: list[JsonObject]) -> list[JsonValue]:
    """Return the items to send back in order: complete reasoning items, and position and kind of the others.

    Empty if no reasoning item can be read again, which needs its encrypted or plain content.
    """
    stored: list[JsonValue] = []
    has_reasoning = False
    for item in items:
        match item.get("type"):
            case "reasoning" if item.get("encrypted_content") or item.get("content"):
                has_reasoning = True
                stored.append({k: v for k, v in item.items() if k != "status" and v is not None})
            case "message":
                entry: JsonObject = {"type": "message", "length": len(replace_surrogates(_read_text(item)))}
                if item.get("phase"):
                    entry["phase"] = item["phase"]
                stored.append(entry)
            case "function_call":
                stored.append({"type": "function_call", "call_id": item.get("call_id")})
            case _:
                pass
    return stored if has_reasoning else []
