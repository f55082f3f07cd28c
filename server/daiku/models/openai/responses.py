"""OpenAI's Responses protocol: the conversation as input items, and replies, streamed or whole."""

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
LONGEST_ID = 64


def history(request: ModelRequest, service: str) -> History[bytes]:
    """A new history for the request's model: reasoning items go back only to their author."""
    reader = author(service, request.model)

    def encode(message: Message, before: list[bytes]) -> bytes:
        del before
        match message:
            case UserMessage():
                return _user(message.text, message.images)
            case AssistantMessage():
                return b",".join([encode_json(item) for item in _items(message, reader)])
            case ToolMessage():
                return _output(message.call_id, message.text, message.images)
            case _:
                assert_never(message)

    return History(encode)


def input_array(pieces: Iterable[bytes]) -> bytes:
    """The `input` of a request."""
    return b"[" + b",".join([piece for piece in pieces if piece]) + b"]"


def author(service: str, model: str) -> str:
    """Return `service/model`, the only one that can read the reasoning items of its replies."""
    return f"{service}/{model}"


def _items(message: AssistantMessage, reader: str) -> list[JsonObject]:
    """The output items that the reply consisted of, in their order where it matters."""
    kept = message.opaque.get(PROTOCOL)
    order = kept.get("items") if isinstance(kept, dict) and kept.get("author") == reader else None
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
                said, text = (text[:length], text[length:]) if isinstance(length, int) else (text, "")
                phase = mark.get("phase")
                items += _message_items(said, {"phase": phase} if phase else {})
            case "function_call":
                call = calls.pop(str(mark.get("call_id")), None)
                if call is not None:
                    items.append(_call(call))
            case _:
                pass
    items += _message_items(text, {})
    items += [_call(call) for call in calls.values()]
    while items and items[-1].get("type") == "reasoning":
        items.pop()  # a thought without the item that it led to is refused
    return items


def _message_items(text: str, more: JsonObject) -> list[JsonObject]:
    if not text:
        return []
    content: list[JsonValue] = [{"type": "output_text", "text": text}]
    return [{"type": "message", "role": "assistant", "content": content, **more}]


def _call(call: ToolCall) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": shorten_call_id(call.id, LONGEST_ID),
        "name": NameMap().to_wire(call.tool),
        "arguments": encode_json(call.args).decode(),
    }


def _pictures(images: tuple[Image, ...]) -> list[JsonValue]:
    return [
        {"type": "input_image", "image_url": f"data:{i.media_type};base64,{i.data}", "detail": "auto"}
        for i in images
    ]


def _user(text: str, images: tuple[Image, ...]) -> bytes:
    parts: list[JsonValue] = [{"type": "input_text", "text": text}] if text else []
    return encode_json({"type": "message", "role": "user", "content": parts + _pictures(images)})


def _output(call_id: str, text: str, images: tuple[Image, ...]) -> bytes:
    output: JsonValue = text or "(no output)"
    if images:
        parts: list[JsonValue] = [{"type": "input_text", "text": text}] if text else []
        output = parts + _pictures(images)
    return encode_json(
        {"type": "function_call_output", "call_id": shorten_call_id(call_id, LONGEST_ID), "output": output}
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
    """One reply of the Responses protocol. `author` marks the reasoning items for `opaque`."""

    def __init__(self, service: Service, names: NameMap, author: str = "") -> None:
        self._service = service
        self._names = names
        self._author = author
        self._cutter = SseParser()
        self._begin()

    def _begin(self) -> None:
        self._mender = SurrogateReplacer()
        self._news: list[ModelEvent] = []
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._items: dict[int, JsonObject] = {}
        self._final: JsonObject | None = None
        self._refused = False
        self._numbered = True
        self._last_number = -1
        self._seen: set[int] = set()

    @property
    def ended(self) -> bool:
        return self._final is not None

    def feed(self, data: bytes) -> list[ModelEvent]:
        for event in self._cutter.feed(data):
            self._event(event.data)
        news, self._news = self._news, []
        return news

    def finish(self) -> Reply:
        document = self._cutter.document
        if document is not None:
            self._close(read_object(self._service, document))
        elif self._final is None:
            for event in self._cutter.flush():
                if event.data.endswith(b"}"):
                    self._event(event.data)
        if self._final is None:
            raise stream_cut_error(self._service)
        return self._reply(self._final)

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]":
            return
        event = read_object(self._service, data)
        if self._final is not None:
            if event.get("type") != "response.created":
                return
            self._begin()  # a gateway that runs several steps sends several responses: the last counts
        if self._numbered and self._repeated(event.get("sequence_number"), data):
            return
        kind = event.get("type")
        delta = event.get("delta")
        if kind in _TEXT:
            if kind == "response.refusal.delta":
                self._refused = True
            self._say(delta)
        elif kind in _THINKING:
            self._think(delta)
        elif kind == "response.output_item.done":
            item, place = event.get("item"), event.get("output_index")
            if isinstance(item, dict):
                self._items[place if isinstance(place, int) else len(self._items)] = item
        elif kind in _CLOSING:
            response = event.get("response")
            self._close(response if isinstance(response, dict) else {})
        elif kind == "error" or (kind is None and "error" in event):
            raise from_body(self._service, event)
        elif kind == "response.reasoning_summary_part.added" and event.get("summary_index"):
            self._think("\n\n")

    def _repeated(self, number: JsonValue | None, data: bytes) -> bool:
        """True for an event that was sent again. Numbers that do not rise are trusted no longer."""
        if not isinstance(number, int):
            return False
        mark = hash(data)
        if number > self._last_number:
            self._last_number = number
            self._seen.add(mark)
            return False
        if mark in self._seen:
            return True
        self._numbered = False
        return False

    def _say(self, text: JsonValue | None) -> None:
        said = self._mender.feed(text) if isinstance(text, str) else ""
        if said:
            self._texts.append(said)
            self._news.append(TextDelta(said))

    def _think(self, text: JsonValue | None) -> None:
        if isinstance(text, str) and text:
            self._thoughts.append(text)
            self._news.append(ThinkingDelta(replace_surrogates(text)))

    def _close(self, response: JsonObject) -> None:
        if response.get("status") in ("failed", "cancelled") or (
            response.get("error") and not response.get("output")
        ):
            if error := response.get("error"):
                raise from_body(self._service, {"error": error})
            raise cancelled_error(self._service)
        if not isinstance(response.get("output"), list) and not self._items and "status" not in response:
            raise from_body(self._service, response)
        self._final = response

    def _reply(self, response: JsonObject) -> Reply:
        items = [self._items[place] for place in sorted(self._items)]
        output = response.get("output")
        if isinstance(output, list) and output:
            items = [item for item in output if isinstance(item, dict)]
        self._texts.append(self._mender.flush())
        streamed = "".join(self._texts)
        whole = replace_surrogates("".join(_said(item) for item in items))
        thinking = replace_surrogates(
            "".join(self._thoughts) or "\n\n".join(t for i in items for t in _thoughts(i))
        )
        calls = build_calls((_parts(item) for item in items if item.get("type") in _CALLS), self._names)
        kept = _kept(items)
        message = AssistantMessage(
            text=Text(whole or streamed),
            thinking=thinking,
            calls=calls,
            opaque={PROTOCOL: {"author": self._author, "items": kept}} if kept else {},
        )
        usage = response.get("usage")
        model = response.get("model")
        return Reply(
            message,
            read_usage(usage if isinstance(usage, dict) else {}, model if isinstance(model, str) else ""),
            self._reason(response, bool(calls)),
        )

    def _reason(self, response: JsonObject, calls: bool) -> FinishReason:
        details = response.get("incomplete_details")
        why = details.get("reason") if isinstance(details, dict) else None
        if why in ("max_output_tokens", "max_tokens"):
            return "length"
        if why == "content_filter" or self._refused:
            return "content_filter"
        if response.get("status") in ("incomplete", "queued", "in_progress"):
            return "other"
        return "tool_calls" if calls else "stop"


_CALLS = {"function_call", "custom_tool_call"}


def _parts(item: JsonObject) -> CallParts:
    parts = CallParts(id=str(item.get("call_id") or item.get("id") or ""))
    name = item.get("name")
    parts.add_name(name if isinstance(name, str) else "")
    if item.get("type") == "custom_tool_call":  # free text instead of JSON
        parts.add_arguments({"input": item.get("input")})
    else:
        parts.add_arguments(item.get("arguments"))
    return parts


def _said(item: JsonObject) -> str:
    """The text of a message item, a refusal included."""
    content = item.get("content")
    if item.get("type") != "message" or not isinstance(content, list):
        return ""
    texts = [part.get("text") or part.get("refusal") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _thoughts(item: JsonObject) -> list[str]:
    """The parts of a reasoning item's summary, else of its content."""
    if item.get("type") != "reasoning":
        return []
    for key in ("summary", "content"):
        parts = item.get(key)
        texts = [p.get("text") for p in parts if isinstance(p, dict)] if isinstance(parts, list) else []
        if texts:
            return [text for text in texts if isinstance(text, str)]
    return []


def _kept(items: list[JsonObject]) -> list[JsonValue]:
    """What must go back in order: reasoning items whole, of the others only their place and kind.

    Nothing where no reasoning item can be read again, which needs its encrypted or its open content.
    """
    kept: list[JsonValue] = []
    found = False
    for item in items:
        match item.get("type"):
            case "reasoning" if item.get("encrypted_content") or item.get("content"):
                found = True
                kept.append({k: v for k, v in item.items() if k != "status" and v is not None})
            case "message":
                place: JsonObject = {"type": "message", "length": len(replace_surrogates(_said(item)))}
                if item.get("phase"):
                    place["phase"] = item["phase"]
                kept.append(place)
            case "function_call":
                kept.append({"type": "function_call", "call_id": item.get("call_id")})
            case _:
                pass
    return kept if found else []
