"""Requests of OpenAI's Chat Completions protocol: the conversation and the tools as JSON, made once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, assert_never

from pydantic import JsonValue

from daiku.core.calls.toolnames import NameMap, wire_name
from daiku.domain.base import JsonObject
from daiku.domain.messages import AssistantMessage, Image, Message, ModelRequest, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.llm.transport.calls import wire_id
from daiku.llm.transport.history import History
from daiku.llm.transport.stream import encode_json

PROTOCOL = "openai-chat"
LONGEST_ID = 40


class Piece(NamedTuple):
    """A message as JSON. `pictures` is the user message with what a tool showed: the protocol takes
    pictures from the user only, and nothing may stand between the results of one turn."""

    json: bytes
    result: bool = False
    pictures: bytes = b""


def history(request: ModelRequest) -> History[Piece]:
    """A new history; the Chat protocol is the same for all models."""
    del request
    return History(_encode)


def message_array(system: str, pieces: Iterable[Piece]) -> bytes:
    """The `messages` of a request."""
    out: list[bytes] = [encode_json({"role": "system", "content": system})] if system else []
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


def _encode(message: Message, before: list[Piece]) -> Piece:
    del before
    match message:
        case UserMessage():
            return Piece(_user(message.text, message.images))
        case AssistantMessage():
            return Piece(_assistant(message) if message.text or message.calls else b"")
        case ToolMessage():
            result = encode_json(
                {
                    "role": "tool",
                    "tool_call_id": wire_id(message.call_id, LONGEST_ID),
                    "content": message.text or "(no output)",
                }
            )
            shown = _user(f"What {wire_name(message.tool)} shows:", message.images) if message.images else b""
            return Piece(result, True, shown)
        case _:
            assert_never(message)


def _assistant(message: AssistantMessage) -> bytes:
    wire: JsonObject = {"role": "assistant", "content": message.text or None}
    if message.calls:
        wire["tool_calls"] = [_call(call) for call in message.calls]
        kept = message.opaque.get(PROTOCOL)
        if isinstance(kept, dict):  # thinking models want their thoughts back while they use tools
            field = kept.get("thinking_field")
            if isinstance(field, str) and message.thinking:
                wire[field] = message.thinking
            if "reasoning_details" in kept:
                wire["reasoning_details"] = kept["reasoning_details"]
    return encode_json(wire)


def _call(call: ToolCall) -> JsonObject:
    # Servers parse the arguments of the history too, so what was malformed goes back as empty.
    return {
        "id": wire_id(call.id, LONGEST_ID),
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
