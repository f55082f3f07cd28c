"""Encoder for Chat Completions requests: messages and tools as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias, assert_never
from urllib.parse import urlsplit

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.messages import AssistantMessage, Image, Message, ModelRequest, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.models.transport.calls import shorten_call_id
from daiku.models.transport.history import History
from daiku.models.transport.stream import encode_json
from daiku.run.rules.calls.toolnames import NameMap, wire_name

PROTOCOL = "openai-chat"
MAX_ID_LENGTH = 40
THINKING_FIELD = "reasoning_content"
Replay: TypeAlias = Literal["own", "every", "none"]
"""Replies that get their provider data back: those of the same model family; every reply, with empty thinking if
there is none, as DeepSeek requires; or none, for services that refuse such fields."""
_FAMILY = re.compile(r"[^/\s]*/|[A-Za-z]+")


class EncodedMessage(NamedTuple):
    """Message as JSON.

    `pictures` is a user message with a tool's images: the protocol accepts images from the user only, and nothing may
    separate the results of one turn.
    """

    json: bytes
    result: bool = False
    pictures: bytes = b""


def identify_author(address: str, model: str) -> str:
    """Return the service's host and the model's family: its maker and the leading letters of its name."""
    return f"{urlsplit(address).hostname or ''}/{''.join(_FAMILY.findall(model)[: 1 + model.count('/')])}"


def create_history(request: ModelRequest, address: str) -> History[EncodedMessage]:
    """Return a new history for the model family at `address`."""
    reader = identify_author(address, request.model)
    replay: Replay = (
        "none"
        if "provider_data" in request.refused
        else "every"
        if "no_thinking" in request.refused
        else "own"
    )

    def encode(message: Message, before: list[EncodedMessage]) -> EncodedMessage:
        del before
        return _encode_message(message, reader, replay)

    return History(encode)


def encode_messages(system: str, pieces: Iterable[EncodedMessage], role: str = "system") -> bytes:
    """Return the `messages` of a request; `role` is that of the system prompt."""
    out: list[bytes] = [encode_json({"role": role, "content": system})] if system else []
    deferred: list[bytes] = []
    for piece in pieces:
        if deferred and not piece.result:
            out += deferred
            deferred.clear()
        if piece.json:
            out.append(piece.json)
        if piece.pictures:
            deferred.append(piece.pictures)
    return b"[" + b",".join(out + deferred) + b"]"


def _encode_message(message: Message, reader: str, replay: Replay) -> EncodedMessage:
    match message:
        case UserMessage():
            return EncodedMessage(_encode_user(message.text, message.images))
        case AssistantMessage():
            return EncodedMessage(
                _encode_assistant(message, reader, replay) if message.text or message.calls else b""
            )
        case ToolMessage():
            result = encode_json(
                {
                    "role": "tool",
                    "tool_call_id": shorten_call_id(message.call_id, MAX_ID_LENGTH),
                    "content": message.text or "(no output)",
                }
            )
            image_message = (
                _encode_user(f"What {wire_name(message.tool)} shows:", message.images)
                if message.images
                else b""
            )
            return EncodedMessage(result, True, image_message)
        case _:
            assert_never(message)


def _encode_assistant(message: AssistantMessage, reader: str, replay: Replay) -> bytes:
    wire: JsonObject = {"role": "assistant", "content": message.text or None}
    stored = _get_own_data(message, reader) if replay != "none" else {}
    if message.calls:
        extras = stored.get("calls")
        has_all_extras = isinstance(extras, list) and len(extras) == len(message.calls)
        wire["tool_calls"] = [
            _encode_call(call, extras[index] if isinstance(extras, list) and has_all_extras else None)
            for index, call in enumerate(message.calls)
        ]
    fields = stored.get("fields")
    wire.update(fields if isinstance(fields, dict) else {})
    name = stored.get("thinking_field")
    if name == "content" and message.thinking:  # Mistral's thinking is part of the content
        thought: JsonObject = {"type": "thinking", "thinking": [{"type": "text", "text": message.thinking}]}
        text_parts: list[JsonValue] = [{"type": "text", "text": message.text}] if message.text else []
        wire["content"] = [thought, *text_parts]
    elif isinstance(name, str) and message.thinking:
        wire[name] = message.thinking
    if "reasoning_details" in stored:
        wire["reasoning_details"] = stored["reasoning_details"]
    if replay == "every":
        wire.setdefault(THINKING_FIELD, message.thinking if stored else "")
    return encode_json(wire)


def _get_own_data(message: AssistantMessage, reader: str) -> JsonObject:
    """Return the data of the reply that the family `reader` needs back; empty for a reply of another family."""
    stored = message.opaque.get(PROTOCOL)
    return stored if isinstance(stored, dict) and stored.get("author", reader) == reader else {}


def _encode_call(call: ToolCall, extra: JsonValue = None) -> JsonObject:
    # Servers parse the arguments in the history too, so malformed ones are sent back empty.
    return {
        **(extra if isinstance(extra, dict) else {}),
        "id": shorten_call_id(call.id, MAX_ID_LENGTH),
        "type": "function",
        "function": {"name": NameMap().to_wire(call.tool), "arguments": encode_json(call.args).decode()},
    }


def _encode_user(text: str, images: tuple[Image, ...]) -> bytes:
    if not images:
        return encode_json({"role": "user", "content": text})
    parts: list[JsonValue] = [{"type": "text", "text": text}] if text else []
    for image in images:
        url = f"data:{image.media_type};base64,{image.data}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return encode_json({"role": "user", "content": parts})


def encode_tools(tools: tuple[ToolSpec, ...], names: NameMap) -> bytes:
    return encode_json(
        [
            {
                "type": "function",
                "function": {
                    "name": names.to_wire(tool.name),
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in tools
        ]
    )
