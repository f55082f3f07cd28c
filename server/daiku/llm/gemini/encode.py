"""Requests as Gemini's generateContent takes them: contents, function declarations, thought signatures."""

from __future__ import annotations

from typing import Literal, assert_never

from pydantic import JsonValue

from daiku.core.calls.toolnames import wire_name
from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.messages import AssistantMessage, Image, Message, ModelRequest, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.llm.catalogue import find_model
from daiku.llm.gemini.schema import parameters
from daiku.llm.transport.history import History, splice
from daiku.llm.transport.stream import encode_json

PROTOCOL = "gemini"
"""The key of what only this service understands in `AssistantMessage.opaque`."""

NO_SIGNATURE = "skip_thought_signature_validator"
"""What Gemini 3 accepts in place of a signature, for calls that it did not make itself."""

_BUDGETS = {"none": 0, "low": 4_096, "medium": 12_288, "high": 24_576}
_SMALLEST_OF_PRO = 128
_HEADS = {role: b'{"role":"%b","parts":[' % role.encode() for role in ("user", "model")}


@dataclass(frozen=True, slots=True)
class Content:
    """One message as parts of JSON; `joins` where the next one of its kind belongs to the same content."""

    role: Literal["user", "model"]
    parts: tuple[bytes, ...]
    joins: bool = True


def history(request: ModelRequest) -> History[Content]:
    """A new history for the request's model."""
    model = request.model
    signed = thinks_in_levels(model)
    ids: dict[str, bool] = {}

    def encode(message: Message, _before: list[Content]) -> Content:
        match message:
            case UserMessage():
                text = (_part({"text": message.text}),) if message.text else ()
                return Content("user", (*map(_inline, message.images), *text), joins=False)
            case ToolMessage():
                return Content("user", _response(message, with_id=ids.get(message.call_id, False)))
            case AssistantMessage():
                own = _own(message, model)
                known_ids = own is not None and own.get("ids") is True
                ids.update({call.id: known_ids for call in message.calls})
                return Content("model", _reply_parts(message, own, signed=signed, ids=known_ids))
            case _:
                assert_never(message)

    return History(encode)


def _part(part: JsonObject) -> bytes:
    return encode_json(part)


def _inline(image: Image) -> bytes:
    return _part({"inlineData": {"mimeType": image.media_type, "data": image.data}})


def _response(message: ToolMessage, *, with_id: bool) -> tuple[bytes, ...]:
    key = "result" if message.ok else "error"
    response: JsonObject = {"name": wire_name(message.tool), "response": {key: message.text}}
    if with_id:
        response["id"] = message.call_id
    return (_part({"functionResponse": response}), *map(_inline, message.images))


def _own(message: AssistantMessage, model: str) -> JsonObject | None:
    own = message.opaque.get(PROTOCOL)
    return own if isinstance(own, dict) and own.get("model") == model else None


def _reply_parts(
    message: AssistantMessage, own: JsonObject | None, *, signed: bool, ids: bool
) -> tuple[bytes, ...]:
    order = own.get("parts") if own is not None else None
    if isinstance(order, list) and (parts := _as_they_came(message, order, ids=ids)) is not None:
        return parts
    text = (_part({"text": message.text}),) if message.text else ()
    calls = [
        _call(call, NO_SIGNATURE if signed and place == 0 else "") for place, call in enumerate(message.calls)
    ]
    return (*text, *calls)


def _as_they_came(
    message: AssistantMessage, order: list[JsonValue], *, ids: bool
) -> tuple[bytes, ...] | None:
    """The parts with the signatures that they had; None where the message was edited since."""
    place, calls = 0, iter(message.calls)
    parts: list[bytes] = []
    for entry in order:
        if not isinstance(entry, dict):
            return None
        signature = entry.get("signature")
        signature = signature if isinstance(signature, str) else ""
        length = entry.get("length")
        if isinstance(length, int):
            part: JsonObject = {"text": message.text[place : place + length]}
            place += length
            parts.append(_part({**part, "thoughtSignature": signature} if signature else part))
        elif (call := next(calls, None)) is not None:
            parts.append(_call(call, signature, call_id=call.id if ids else ""))
        else:
            return None
    return tuple(parts) if place == len(message.text) and next(calls, None) is None else None


def _call(call: ToolCall, signature: str, call_id: str = "") -> bytes:
    args: JsonObject = call.args if call.malformed is None else {"malformed_arguments": call.malformed}
    function: JsonObject = {"name": wire_name(call.tool), "args": args}
    if call_id:
        function["id"] = call_id
    part: JsonObject = {"functionCall": function}
    if signature:
        part["thoughtSignature"] = signature
    return _part(part)


def encode_tools(tools: tuple[ToolSpec, ...]) -> bytes:
    """The tools as JSON, b"" where there are none."""
    declarations: list[JsonValue] = [_declaration(tool) for tool in tools]
    return encode_json([{"functionDeclarations": declarations}]) if tools else b""


def body(request: ModelRequest, contents: list[Content], tools: bytes) -> bytes:
    """The request's JSON."""
    parts = [b""]
    if request.system.strip():
        parts.append(b'"systemInstruction":' + encode_json({"parts": [{"text": request.system}]}))
    if tools:
        parts.append(b'"tools":' + tools)
    config = _config(request)
    if config:
        parts.append(b'"generationConfig":' + encode_json(config))
    return b"".join([*_contents(contents), b"]", b",".join(parts), b"}"])


def _contents(contents: list[Content]) -> list[bytes]:
    """Results of one reply's calls in one content, replies that follow each other in one; the
    person's words in contents of their own; the first is the person's."""
    groups: list[tuple[str, bool, list[bytes]]] = []
    for content in contents:
        if not content.parts:
            continue
        if groups and groups[-1][:2] == (content.role, True) and content.joins:
            groups[-1][2].extend(content.parts)
        else:
            groups.append((content.role, content.joins, list(content.parts)))
    if not groups or groups[0][0] != "user":
        groups.insert(0, ("user", False, [_part({"text": "(nothing)"})]))
    if groups[-1][0] != "user":
        groups.append(("user", False, [_part({"text": "Go on."})]))
    return splice(b'{"contents":[', ((_HEADS[role], parts) for role, _, parts in groups), b"]}")


def _declaration(tool: ToolSpec) -> JsonObject:
    declaration: JsonObject = {"name": wire_name(tool.name), "description": tool.description}
    schema = parameters(tool.parameters)
    if schema is not None:
        declaration["parameters"] = schema
    return declaration


def _config(request: ModelRequest) -> JsonObject:
    config: JsonObject = {}
    entry = find_model(request.model)
    limit = request.max_output or (entry.max_output if entry is not None else 0)
    if limit:
        config["maxOutputTokens"] = min(limit, entry.max_output) if entry is not None else limit
    thinking: JsonObject = {"includeThoughts": True}
    if thinks_in_levels(request.model):
        if request.effort == "none":
            thinking["thinkingLevel"] = "low" if "pro" in request.model else "minimal"
        elif request.effort:
            thinking["thinkingLevel"] = request.effort
        config["thinkingConfig"] = thinking
    elif entry is not None and entry.thinking == "budget":
        if request.effort:
            budget = _BUDGETS[request.effort]
            thinking["thinkingBudget"] = max(budget, _SMALLEST_OF_PRO) if "pro" in request.model else budget
            thinking["includeThoughts"] = budget > 0
        config["thinkingConfig"] = thinking
    config.update(request.options)
    return config


def thinks_in_levels(model: str) -> bool:
    """True for Gemini 3 and later, which also want a signature with every call."""
    name = model.rpartition("/")[2]
    return name.startswith("gemini-") and name[7:8].isdigit() and int(name[7:8]) >= 3
