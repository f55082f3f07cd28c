"""Encoder for requests to Anthropic's Messages API: blocks, cache breakpoints, and thinking."""

from __future__ import annotations

import hashlib
from typing import Literal, assert_never

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.messages import (
    AssistantMessage,
    Effort,
    Image,
    Message,
    ModelRequest,
    ToolMessage,
    UserMessage,
)
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.models.catalogue import Thinking, find_model
from daiku.models.transport.history import History, join_arrays
from daiku.models.transport.stream import encode_json
from daiku.run.rules.calls.toolnames import wire_name

PROTOCOL = "anthropic"
"""Key in `AssistantMessage.opaque` for data that only this service understands."""

_CACHE = b',"cache_control":{"type":"ephemeral"}}'
_NOTHING = encode_json({"type": "text", "text": "(nothing)"})
_HEADS = {role: b'{"role":"%b","content":[' % role.encode() for role in ("user", "assistant")}
_CONTINUE = encode_json({"type": "text", "text": "Go on."})
_BUDGETS: dict[Effort, int] = {"low": 4_096, "medium": 12_000, "high": 24_000}
MIN_BUDGET = 1024
DEFAULT_OUTPUT_TOKENS = 64_000
UNKNOWN_MODEL_OUTPUT_TOKENS = 8_192


@dataclass(frozen=True, slots=True)
class EncodedTurn:
    """One message as JSON blocks.

    `mark` is a digest of the conversation up to and including it: thinking is accepted only after exactly the text
    that it was created for.
    """

    role: Literal["user", "assistant"]
    blocks: tuple[bytes, ...]
    mark: str
    thinks: bool = False


def create_history(request: ModelRequest) -> History[EncodedTurn]:
    """Create an empty History that encodes messages for the request's model."""
    model = request.model

    def encode(message: Message, before: list[EncodedTurn]) -> EncodedTurn:
        mark = before[-1].mark if before else ""
        match message:
            case UserMessage():
                blocks = (*map(_encode_image, message.images), *_encode_text(message.text))
                return _build_turn("user", blocks or (_NOTHING,), mark)
            case ToolMessage():
                return _build_turn("user", (_encode_result(message),), mark)
            case AssistantMessage():
                original = _restore_blocks(message, model, mark)
                blocks_without_thinking = (*_encode_text(message.text), *map(_encode_call, message.calls))
                plain_turn = _build_turn("assistant", blocks_without_thinking, mark)
                return (
                    plain_turn
                    if original is None
                    else EncodedTurn("assistant", original, plain_turn.mark, thinks=True)
                )
            case _:
                assert_never(message)

    return History(encode)


def _build_turn(role: Literal["user", "assistant"], blocks: tuple[bytes, ...], mark: str) -> EncodedTurn:
    digest = hashlib.blake2b(mark.encode(), digest_size=12)
    digest.update(role.encode())
    for block in blocks:
        digest.update(block)
    return EncodedTurn(role, blocks, digest.hexdigest())


def _encode_text(text: str) -> tuple[bytes, ...]:
    """Return the text as a block; no block for blank text, which is refused."""
    return (encode_json({"type": "text", "text": text}),) if text.strip() else ()


def _encode_image(image: Image) -> bytes:
    return encode_json(_image_block(image))


def _image_block(image: Image) -> JsonObject:
    source: JsonObject = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}


def _encode_result(message: ToolMessage) -> bytes:
    content: JsonValue = message.text
    if message.images and message.ok:  # error results may contain only text
        text: list[JsonValue] = [{"type": "text", "text": message.text}] if message.text.strip() else []
        content = [*text, *map(_image_block, message.images)]
    block: JsonObject = {"type": "tool_result", "tool_use_id": message.call_id, "content": content}
    if not message.ok:
        block["is_error"] = True
    return encode_json(block)


def _encode_call(call: ToolCall) -> bytes:
    return encode_json(
        {
            "type": "tool_use",
            "id": call.id,
            "name": wire_name(call.tool),
            "input": call.args if call.malformed is None else {"malformed_arguments": call.malformed},
        }
    )


def _restore_blocks(message: AssistantMessage, model: str, mark: str) -> tuple[bytes, ...] | None:
    """Return the reply's blocks in their original order with unchanged thinking.

    None if the reply has no such data, is another model's, follows a different conversation now, or was edited since.
    """
    stored = message.opaque.get(PROTOCOL)
    if not isinstance(stored, dict) or stored.get("model") != model or stored.get("after") != mark:
        return None
    order = stored.get("blocks")
    if not isinstance(order, list):
        return None
    text, thinking, calls = 0, 0, iter(message.calls)
    blocks: list[bytes] = []
    for entry in order:
        if not isinstance(entry, dict):
            return None
        length = entry.get("length")
        match entry.get("type"), length:
            case "text", int():
                blocks.extend(_encode_text(message.text[text : text + length]))
                text += length
            case "thinking", int():
                part = message.thinking[thinking : thinking + length]
                thinking += length
                signature = entry.get("signature")
                blocks.append(encode_json({"type": "thinking", "thinking": part, "signature": signature}))
            case "redacted_thinking", _:
                blocks.append(encode_json({"type": "redacted_thinking", "data": entry.get("data")}))
            case "tool_use", _ if (call := next(calls, None)) is not None:
                blocks.append(_encode_call(call))
            case _:
                return None
    is_complete = (
        text == len(message.text) and thinking == len(message.thinking) and next(calls, None) is None
    )
    return tuple(blocks) if is_complete else None


def encode_tools(tools: tuple[ToolSpec, ...]) -> tuple[bytes, ...]:
    """Return the JSON of each tool."""
    return tuple(_encode_tool(tool) for tool in tools)


def encode_body(
    request: ModelRequest, turns: list[EncodedTurn], tools: tuple[bytes, ...], *, counting: bool = False
) -> bytes:
    """Return the request as JSON; `counting` omits fields that the counting endpoint rejects."""
    limit = limit_output(request)
    parts = [b'{"model":' + encode_json(request.model)]
    if not counting:
        parts.append(b'"max_tokens":%d,"stream":true' % limit)
    thinking, effort = _encode_thinking(request, turns, limit)
    if thinking is not None:
        parts.append(b'"thinking":' + encode_json(thinking))
    if request.options and not counting:
        parts.append(encode_json(dict(request.options))[1:-1])
    if effort and not counting:
        parts.append(b'"output_config":' + encode_json({"effort": effort}))
    if request.system.strip():
        system = encode_json({"type": "text", "text": request.system})
        parts.append(b'"system":[' + _add_breakpoint(system) + b"]")
    if tools:  # a breakpoint of their own, as projects share tools but not the system prompt
        parts.append(b'"tools":[' + b",".join((*tools[:-1], _add_breakpoint(tools[-1]))) + b"]")
    return b"".join([b",".join(parts), *_encode_messages(turns), b"]}"])


def _encode_tool(tool: ToolSpec) -> bytes:
    schema: JsonObject = {"type": "object", **tool.parameters}
    return encode_json(
        {"name": wire_name(tool.name), "description": tool.description, "input_schema": schema}
    )


def _add_breakpoint(block: bytes) -> bytes:
    return block[:-1] + _CACHE


def _encode_messages(turns: list[EncodedTurn]) -> list[bytes]:
    """Return the messages with turns of one role merged, beginning and ending with the user's.

    Sets two cache breakpoints: at the end of this request and of the one before it.
    """
    groups: list[tuple[str, list[bytes]]] = []
    for turn in turns:
        if not turn.blocks:
            continue
        if groups and groups[-1][0] == turn.role:
            groups[-1][1].extend(turn.blocks)
        else:
            groups.append((turn.role, list(turn.blocks)))
    if not groups or groups[0][0] != "user":
        groups.insert(0, ("user", [_NOTHING]))
    if groups[-1][0] != "user":
        groups.append(("user", [_CONTINUE]))
    for group in (groups[-1], groups[-3] if len(groups) > 2 else None):
        if group is not None:
            group[1][-1] = _add_breakpoint(group[1][-1])
    heads = ((_HEADS[role], blocks) for role, blocks in groups)
    return join_arrays(b',"messages":[', heads, b"]}")


def limit_output(request: ModelRequest) -> int:
    """Return the output limit in tokens: the request's, capped by the model's."""
    entry = find_model(request.model)
    if entry is not None:
        return min(request.max_output or DEFAULT_OUTPUT_TOKENS, entry.max_output)
    return request.max_output or (
        DEFAULT_OUTPUT_TOKENS if "claude" in request.model else UNKNOWN_MODEL_OUTPUT_TOKENS
    )


def _encode_thinking(
    request: ModelRequest, turns: list[EncodedTurn], limit: int
) -> tuple[JsonObject | None, str]:
    """Return the `thinking` object and the effort for this model."""
    effort = request.effort
    match _find_thinking_style(request.model), effort:
        case "adaptive", "none":
            return {"type": "disabled"}, ""
        case "between_tools", "none":
            return {"type": "between_tools"}, ""
        case (("adaptive" | "between_tools" | "always"), _):
            return {"type": "adaptive", "display": "summarized"}, "low" if effort == "none" else effort
        case "budget", ("low" | "medium" | "high"):
            budget = min(_BUDGETS[effort], limit // 2)
            if budget < MIN_BUDGET or _continues_without_thinking(turns):
                return None, ""
            return {"type": "enabled", "budget_tokens": budget}, ""
        case _:
            return None, ""


def _find_thinking_style(model: str) -> Thinking:
    entry = find_model(model)
    if entry is not None:
        return entry.thinking
    return "always" if model.startswith("claude-") else ""  # newer than the catalog


def _continues_without_thinking(turns: list[EncodedTurn]) -> bool:
    """Return True if the reply whose tool results are being sent has no thinking, which a budget requires."""
    if not turns or not turns[-1].blocks or not turns[-1].blocks[0].startswith(b'{"type":"tool_result"'):
        return False
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    return last is not None and not last.thinks
