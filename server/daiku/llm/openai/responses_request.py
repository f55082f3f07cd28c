"""Requests of OpenAI's Responses protocol: the conversation as input items, made once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from pydantic import JsonValue

from daiku.core.calls.toolnames import NameMap
from daiku.domain.base import JsonObject
from daiku.domain.messages import AssistantMessage, Image, Message, ModelRequest, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.llm.transport.calls import wire_id
from daiku.llm.transport.history import History
from daiku.llm.transport.stream import encode_json

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
                items += _said(said, {"phase": phase} if phase else {})
            case "function_call":
                call = calls.pop(str(mark.get("call_id")), None)
                if call is not None:
                    items.append(_call(call))
            case _:
                pass
    items += _said(text, {})
    items += [_call(call) for call in calls.values()]
    while items and items[-1].get("type") == "reasoning":
        items.pop()  # a thought without the item that it led to is refused
    return items


def _said(text: str, more: JsonObject) -> list[JsonObject]:
    if not text:
        return []
    content: list[JsonValue] = [{"type": "output_text", "text": text}]
    return [{"type": "message", "role": "assistant", "content": content, **more}]


def _call(call: ToolCall) -> JsonObject:
    return {
        "type": "function_call",
        "call_id": wire_id(call.id, LONGEST_ID),
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
        {"type": "function_call_output", "call_id": wire_id(call_id, LONGEST_ID), "output": output}
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
