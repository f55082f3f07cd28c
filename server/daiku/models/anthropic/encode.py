"""Requests as Anthropic's Messages API takes them: blocks, cache breakpoints, thinking."""

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
"""The key of what only this service understands in `AssistantMessage.opaque`."""

_CACHE = b',"cache_control":{"type":"ephemeral"}}'
_NOTHING = encode_json({"type": "text", "text": "(nothing)"})
_HEADS = {role: b'{"role":"%b","content":[' % role.encode() for role in ("user", "assistant")}
_GO_ON = encode_json({"type": "text", "text": "Go on."})
_BUDGETS: dict[Effort, int] = {"low": 4_096, "medium": 12_000, "high": 24_000}
SMALLEST_BUDGET = 1024
USUAL_OUTPUT = 64_000
UNKNOWN_OUTPUT = 8_192


@dataclass(frozen=True, slots=True)
class Turn:
    """One message as blocks of JSON. `mark` is a digest of the conversation up to and with it:
    thinking is only taken back behind exactly the words that it was made for."""

    role: Literal["user", "assistant"]
    blocks: tuple[bytes, ...]
    mark: str
    thinks: bool = False


def history(request: ModelRequest) -> History[Turn]:
    """Create an empty History that encodes messages for the request's model."""
    model = request.model

    def encode(message: Message, before: list[Turn]) -> Turn:
        mark = before[-1].mark if before else ""
        match message:
            case UserMessage():
                blocks = (*map(_image, message.images), *_text(message.text))
                return _turn("user", blocks or (_NOTHING,), mark)
            case ToolMessage():
                return _turn("user", (_result(message),), mark)
            case AssistantMessage():
                own = _own_blocks(message, model, mark)
                plain = (*_text(message.text), *map(_call, message.calls))
                made = _turn("assistant", plain, mark)
                return made if own is None else Turn("assistant", own, made.mark, thinks=True)
            case _:
                assert_never(message)

    return History(encode)


def _turn(role: Literal["user", "assistant"], blocks: tuple[bytes, ...], mark: str) -> Turn:
    digest = hashlib.blake2b(mark.encode(), digest_size=12)
    digest.update(role.encode())
    for block in blocks:
        digest.update(block)
    return Turn(role, blocks, digest.hexdigest())


def _text(text: str) -> tuple[bytes, ...]:
    """Blocks that are blank are refused, so they are left out."""
    return (encode_json({"type": "text", "text": text}),) if text.strip() else ()


def _image(image: Image) -> bytes:
    return encode_json(_image_block(image))


def _image_block(image: Image) -> JsonObject:
    source: JsonObject = {"type": "base64", "media_type": image.media_type, "data": image.data}
    return {"type": "image", "source": source}


def _result(message: ToolMessage) -> bytes:
    content: JsonValue = message.text
    if message.images and message.ok:  # a result that is an error may hold text only
        text: list[JsonValue] = [{"type": "text", "text": message.text}] if message.text.strip() else []
        content = [*text, *map(_image_block, message.images)]
    block: JsonObject = {"type": "tool_result", "tool_use_id": message.call_id, "content": content}
    if not message.ok:
        block["is_error"] = True
    return encode_json(block)


def _call(call: ToolCall) -> bytes:
    return encode_json(
        {
            "type": "tool_use",
            "id": call.id,
            "name": wire_name(call.tool),
            "input": call.args if call.malformed is None else {"malformed_arguments": call.malformed},
        }
    )


def _own_blocks(message: AssistantMessage, model: str, mark: str) -> tuple[bytes, ...] | None:
    """The reply's blocks in the order in which they came, thinking unchanged; None where the reply
    has none, is another model's, stands behind other words now, or was edited since."""
    own = message.opaque.get(PROTOCOL)
    if not isinstance(own, dict) or own.get("model") != model or own.get("after") != mark:
        return None
    order = own.get("blocks")
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
                blocks.extend(_text(message.text[text : text + length]))
                text += length
            case "thinking", int():
                part = message.thinking[thinking : thinking + length]
                thinking += length
                signature = entry.get("signature")
                blocks.append(encode_json({"type": "thinking", "thinking": part, "signature": signature}))
            case "redacted_thinking", _:
                blocks.append(encode_json({"type": "redacted_thinking", "data": entry.get("data")}))
            case "tool_use", _ if (call := next(calls, None)) is not None:
                blocks.append(_call(call))
            case _:
                return None
    whole = text == len(message.text) and thinking == len(message.thinking) and next(calls, None) is None
    return tuple(blocks) if whole else None


def encode_tools(tools: tuple[ToolSpec, ...]) -> tuple[bytes, ...]:
    """The tools as JSON, one by one."""
    return tuple(_tool(tool) for tool in tools)


def body(
    request: ModelRequest, turns: list[Turn], tools: tuple[bytes, ...], *, counting: bool = False
) -> bytes:
    """The request's JSON; `counting` leaves out what the counting endpoint does not take."""
    limit = max_tokens(request)
    parts = [b'{"model":' + encode_json(request.model)]
    if not counting:
        parts.append(b'"max_tokens":%d,"stream":true' % limit)
    thinking, effort = _thinking(request, turns, limit)
    if thinking is not None:
        parts.append(b'"thinking":' + encode_json(thinking))
    if request.options and not counting:
        parts.append(encode_json(dict(request.options))[1:-1])
    if effort and not counting:
        parts.append(b'"output_config":' + encode_json({"effort": effort}))
    if request.system.strip():
        system = encode_json({"type": "text", "text": request.system})
        parts.append(b'"system":[' + _breakpoint(system) + b"]")
    if tools:  # marked by themselves: another project's rules are another system text behind the same tools
        parts.append(b'"tools":[' + b",".join((*tools[:-1], _breakpoint(tools[-1]))) + b"]")
    return b"".join([b",".join(parts), *_messages(turns), b"]}"])


def _tool(tool: ToolSpec) -> bytes:
    schema: JsonObject = {"type": "object", **tool.parameters}
    return encode_json(
        {"name": wire_name(tool.name), "description": tool.description, "input_schema": schema}
    )


def _breakpoint(block: bytes) -> bytes:
    return block[:-1] + _CACHE


def _messages(turns: list[Turn]) -> list[bytes]:
    """Turns of one side joined, beginning and ending with the user's, with two cache breakpoints:
    what this request writes, and what the request before it wrote."""
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
        groups.append(("user", [_GO_ON]))
    for group in (groups[-1], groups[-3] if len(groups) > 2 else None):
        if group is not None:
            group[1][-1] = _breakpoint(group[1][-1])
    heads = ((_HEADS[role], blocks) for role, blocks in groups)
    return join_arrays(b',"messages":[', heads, b"]}")


def max_tokens(request: ModelRequest) -> int:
    """The output limit to ask for: the request's, at most what the model can."""
    entry = find_model(request.model)
    if entry is not None:
        return min(request.max_output or USUAL_OUTPUT, entry.max_output)
    return request.max_output or (USUAL_OUTPUT if "claude" in request.model else UNKNOWN_OUTPUT)


def _thinking(request: ModelRequest, turns: list[Turn], limit: int) -> tuple[JsonObject | None, str]:
    """The `thinking` object and the effort for this model."""
    effort = request.effort
    match _style(request.model), effort:
        case "adaptive", "none":
            return {"type": "disabled"}, ""
        case "between_tools", "none":
            return {"type": "between_tools"}, ""
        case (("adaptive" | "between_tools" | "always"), _):
            return {"type": "adaptive", "display": "summarized"}, "low" if effort == "none" else effort
        case "budget", ("low" | "medium" | "high"):
            budget = min(_BUDGETS[effort], limit // 2)
            if budget < SMALLEST_BUDGET or _in_a_step_without_thinking(turns):
                return None, ""
            return {"type": "enabled", "budget_tokens": budget}, ""
        case _:
            return None, ""


def _style(model: str) -> Thinking:
    entry = find_model(model)
    if entry is not None:
        return entry.thinking
    return "always" if model.startswith("claude-") else ""  # newer than the catalogue


def _in_a_step_without_thinking(turns: list[Turn]) -> bool:
    """With a budget, the reply whose tool results are being sent must begin with its thinking."""
    if not turns or not turns[-1].blocks or not turns[-1].blocks[0].startswith(b'{"type":"tool_result"'):
        return False
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    return last is not None and not last.thinks
