"""Requests of OpenAI's Chat Completions protocol: the conversation and the tools as JSON, made once."""

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
LONGEST_ID = 40
THINKING_FIELD = "reasoning_content"
Replay: TypeAlias = Literal["own", "every", "none"]
"""Which replies get their provider data back: those of the same model family; every reply, with empty thinking where
there is none, as DeepSeek demands; or none, as services demand that refuse such fields."""
_FAMILY = re.compile(r"[^/\s]*/|[A-Za-z]+")


class Piece(NamedTuple):
    """A message as JSON. `pictures` is the user message with what a tool showed: the protocol takes
    pictures from the user only, and nothing may stand between the results of one turn."""

    json: bytes
    result: bool = False
    pictures: bytes = b""


def author(address: str, model: str) -> str:
    """Return the service's host and the family of `model`: its maker and the letters that its name begins with."""
    return f"{urlsplit(address).hostname or ''}/{''.join(_FAMILY.findall(model)[: 1 + model.count('/')])}"


def history(request: ModelRequest, address: str) -> History[Piece]:
    """Return a new history for the model family at `address` that the request is for."""
    reader = author(address, request.model)
    replay: Replay = (
        "none"
        if "provider_data" in request.refused
        else "every"
        if "no_thinking" in request.refused
        else "own"
    )

    def encode(message: Message, before: list[Piece]) -> Piece:
        del before
        return _encode(message, reader, replay)

    return History(encode)


def message_array(system: str, pieces: Iterable[Piece], role: str = "system") -> bytes:
    """Return the `messages` of a request; `role` is the one of the system text."""
    out: list[bytes] = [encode_json({"role": role, "content": system})] if system else []
    held: list[bytes] = []
    for piece in pieces:
        if held and not piece.result:
            out += held
            held.clear()
        if piece.json:
            out.append(piece.json)
        if piece.pictures:
            held.append(piece.pictures)
    return b"[" + b",".join(out + held) + b"]"


def _encode(message: Message, reader: str, replay: Replay) -> Piece:
    match message:
        case UserMessage():
            return Piece(_user(message.text, message.images))
        case AssistantMessage():
            return Piece(_assistant(message, reader, replay) if message.text or message.calls else b"")
        case ToolMessage():
            result = encode_json(
                {
                    "role": "tool",
                    "tool_call_id": shorten_call_id(message.call_id, LONGEST_ID),
                    "content": message.text or "(no output)",
                }
            )
            shown = _user(f"What {wire_name(message.tool)} shows:", message.images) if message.images else b""
            return Piece(result, True, shown)
        case _:
            assert_never(message)


def _assistant(message: AssistantMessage, reader: str, replay: Replay) -> bytes:
    wire: JsonObject = {"role": "assistant", "content": message.text or None}
    kept = _own_data(message, reader) if replay != "none" else {}
    if message.calls:
        extras = kept.get("calls")
        same = isinstance(extras, list) and len(extras) == len(message.calls)
        wire["tool_calls"] = [
            _call(call, extras[place] if isinstance(extras, list) and same else None)
            for place, call in enumerate(message.calls)
        ]
    fields = kept.get("fields")
    wire.update(fields if isinstance(fields, dict) else {})
    name = kept.get("thinking_field")
    if name == "content" and message.thinking:  # Mistral's thinking is a part of the content
        thought: JsonObject = {"type": "thinking", "thinking": [{"type": "text", "text": message.thinking}]}
        said: list[JsonValue] = [{"type": "text", "text": message.text}] if message.text else []
        wire["content"] = [thought, *said]
    elif isinstance(name, str) and message.thinking:
        wire[name] = message.thinking
    if "reasoning_details" in kept:
        wire["reasoning_details"] = kept["reasoning_details"]
    if replay == "every":
        wire.setdefault(THINKING_FIELD, message.thinking if kept else "")
    return encode_json(wire)


def _own_data(message: AssistantMessage, reader: str) -> JsonObject:
    """Return what the family `reader` needs back of its reply; empty for a reply of another family."""
    kept = message.opaque.get(PROTOCOL)
    return kept if isinstance(kept, dict) and kept.get("author", reader) == reader else {}


def _call(call: ToolCall, extra: JsonValue = None) -> JsonObject:
    # Servers parse the arguments of the history too, so what was malformed goes back as empty.
    return {
        **(extra if isinstance(extra, dict) else {}),
        "id": shorten_call_id(call.id, LONGEST_ID),
        "type": "function",
        "function": {"name": NameMap().to_wire(call.tool), "arguments": encode_json(call.args).decode()},
    }


def _user(text: str, images: tuple[Image, ...]) -> bytes:
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
