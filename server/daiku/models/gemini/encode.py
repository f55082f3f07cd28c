"""Requests as Gemini's generateContent takes them: contents, function declarations, thought signatures."""

from __future__ import annotations

from typing import Literal, assert_never, cast

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject
from daiku.domain.messages import AssistantMessage, Image, Message, ModelRequest, ToolMessage, UserMessage
from daiku.domain.tools import ToolCall, ToolSpec
from daiku.models.catalogue import find_model
from daiku.models.transport.history import History, join_arrays
from daiku.models.transport.stream import encode_json
from daiku.run.rules.calls.toolnames import wire_name

_KEPT = {
    "title", "description", "enum", "items", "properties", "required", "minItems", "maxItems", "minimum",
    "maximum", "minLength", "maxLength", "pattern", "minProperties", "maxProperties", "default", "nullable",
    "propertyOrdering",
}  # fmt: skip
_FORMATS = {"string": {"enum", "date-time"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}
_DEPTH = 12


def parameters(schema: JsonObject) -> JsonObject | None:
    """`schema` of a tool's arguments as Gemini takes it; None for a tool without arguments, because
    an object without properties is refused."""
    cleaned = _clean(schema, schema, 0)
    return cleaned if cleaned.get("properties") else None


def _clean(node: JsonValue, root: JsonObject, depth: int) -> JsonObject:
    if not isinstance(node, dict) or depth > _DEPTH:
        return {"type": "string"} if node is not True else {}
    node = _resolved(node, root)
    options, nullable = _options(node)
    if len(options) == 1:
        rest = {key: value for key, value in node.items() if key not in {"anyOf", "oneOf", "type", "enum"}}
        option = options[0] if isinstance(options[0], dict) else {"type": "string"}
        only = _clean({**option, **rest}, root, depth + 1)
        return {**only, "nullable": True} if nullable else only
    out: JsonObject = {key: value for key, value in node.items() if key in _KEPT}
    if nullable:
        out["nullable"] = True
    if options:
        choices: list[JsonValue] = [_clean(option, root, depth + 1) for option in options]
        told = {key: value for key, value in out.items() if key in {"title", "description", "nullable"}}
        return {**told, "anyOf": choices}
    kinds = node.get("type")
    kind = kinds if isinstance(kinds, str) else _guess(node)
    if kind:
        out["type"] = kind
    _constants(out, node, kind)
    if out.get("default", 0) is None:
        del out["default"]
    if isinstance(node.get("format"), str) and node["format"] in _FORMATS.get(kind, set()):
        out["format"] = node["format"]
    _parts(out, root, depth, kind)
    return _as_json_text(out) if depth == 1 and kind == "object" and not out.get("properties") else out


def _as_json_text(node: JsonObject) -> JsonObject:
    """An argument that may hold any keys, as text: such an object is refused, or comes back empty. What is called
    takes an object's JSON text for the object."""
    told = node.get("description")
    kept = {key: value for key, value in node.items() if key == "nullable"}
    return {
        **kept,
        "type": "string",
        "description": f"{told} (a JSON object as text)" if told else "a JSON object as text",
    }


def _options(node: JsonObject) -> tuple[list[JsonValue], bool]:
    """The alternatives of `node` without null (a list of types is one of them), and whether null is one."""
    options = [option for key in ("anyOf", "oneOf") for option in _list(node.get(key))]
    if isinstance(kinds := node.get("type"), list):
        plain = {key: value for key, value in node.items() if key not in {"anyOf", "oneOf"}}
        options += [{**plain, "type": kind} for kind in kinds if isinstance(kind, str)]
    real = [option for option in options if not _is_null(option)]
    return real, len(real) < len(options)


def _parts(out: JsonObject, root: JsonObject, depth: int, kind: str) -> None:
    properties = out.get("properties")
    if isinstance(properties, dict):
        out["properties"] = {name: _clean(value, root, depth + 1) for name, value in properties.items()}
        out["required"] = [
            name for name in _list(out.get("required")) if isinstance(name, str) and name in properties
        ]
        if not out["required"]:
            del out["required"]
    else:
        out.pop("properties", None)
        out.pop("required", None)
    if kind == "array":
        out["items"] = _clean(out.get("items", {"type": "string"}), root, depth + 1)
    else:
        out.pop("items", None)


def _constants(out: JsonObject, node: JsonObject, kind: str) -> None:
    """Choices are strings or they are told in the description."""
    choices = [node["const"]] if "const" in node else _list(node.get("enum"))
    out.pop("enum", None)
    if not choices:
        return
    named = [choice for choice in choices if isinstance(choice, str) and choice]
    if kind in {"string", ""} and named:
        out["type"] = "string"
        out["enum"] = cast("list[JsonValue]", named)
    else:
        told = "One of " + ", ".join(str(choice) for choice in choices) + "."
        description = out.get("description")
        out["description"] = f"{description} {told}" if isinstance(description, str) else told


def _resolved(node: JsonObject, root: JsonObject) -> JsonObject:
    """`node` with its reference and its `allOf` put in."""
    for _ in range(_DEPTH):
        reference = node.get("$ref")
        if not isinstance(reference, str):
            break
        target: JsonValue = root
        for step in reference.removeprefix("#").strip("/").split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        rest = {key: value for key, value in node.items() if key != "$ref"}
        node = {**target, **rest} if isinstance(target, dict) else rest
    for part in _list(node.get("allOf")):
        if isinstance(part, dict):
            node = {**_resolved(part, root), **{k: v for k, v in node.items() if k != "allOf"}}
    return node


def _guess(node: JsonObject) -> str:
    if "properties" in node or "additionalProperties" in node:
        return "object"
    if "items" in node:
        return "array"
    return ""


def _is_null(option: JsonValue) -> bool:
    return isinstance(option, dict) and option.get("type") == "null"


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


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
                text = (encode_json({"text": message.text}),) if message.text else ()
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


def _inline(image: Image) -> bytes:
    return encode_json({"inlineData": {"mimeType": image.media_type, "data": image.data}})


def _response(message: ToolMessage, *, with_id: bool) -> tuple[bytes, ...]:
    key = "result" if message.ok else "error"
    response: JsonObject = {"name": wire_name(message.tool), "response": {key: message.text}}
    if with_id:
        response["id"] = message.call_id
    return (encode_json({"functionResponse": response}), *map(_inline, message.images))


def _own(message: AssistantMessage, model: str) -> JsonObject | None:
    own = message.opaque.get(PROTOCOL)
    return own if isinstance(own, dict) and own.get("model") == model else None


def _reply_parts(
    message: AssistantMessage, own: JsonObject | None, *, signed: bool, ids: bool
) -> tuple[bytes, ...]:
    order = own.get("parts") if own is not None else None
    if isinstance(order, list) and (parts := _as_they_came(message, order, ids=ids)) is not None:
        return parts
    text = (encode_json({"text": message.text}),) if message.text else ()
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
            parts.append(encode_json({**part, "thoughtSignature": signature} if signature else part))
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
    return encode_json(part)


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
        groups.insert(0, ("user", False, [encode_json({"text": "(nothing)"})]))
    if groups[-1][0] != "user":
        groups.append(("user", False, [encode_json({"text": "Go on."})]))
    return join_arrays(b'{"contents":[', ((_HEADS[role], parts) for role, _, parts in groups), b"]}")


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
