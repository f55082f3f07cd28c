"""Encoder for Gemini's generateContent requests: contents, function declarations, and thought signatures."""

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

_SUPPORTED_KEYS = {
    "title", "description", "enum", "items", "properties", "required", "minItems", "maxItems", "minimum",
    "maximum", "minLength", "maxLength", "pattern", "minProperties", "maxProperties", "default", "nullable",
    "propertyOrdering",
}  # fmt: skip
_FORMATS = {"string": {"enum", "date-time"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}
_MAX_DEPTH = 12


def convert_schema(schema: JsonObject) -> JsonObject | None:
    """Convert the schema of a tool's arguments for Gemini; None for a tool without arguments.

    Gemini refuses an object without properties.
    """
    cleaned = _convert_node(schema, schema, 0)
    return cleaned if cleaned.get("properties") else None


def _convert_node(node: JsonValue, root: JsonObject, depth: int) -> JsonObject:
    if not isinstance(node, dict) or depth > _MAX_DEPTH:
        return {"type": "string"} if node is not True else {}
    node = _resolve(node, root)
    options, nullable = _list_options(node)
    if len(options) == 1:
        rest = {key: value for key, value in node.items() if key not in {"anyOf", "oneOf", "type", "enum"}}
        option = options[0] if isinstance(options[0], dict) else {"type": "string"}
        converted = _convert_node({**option, **rest}, root, depth + 1)
        return {**converted, "nullable": True} if nullable else converted
    out: JsonObject = {key: value for key, value in node.items() if key in _SUPPORTED_KEYS}
    if nullable:
        out["nullable"] = True
    if options:
        choices: list[JsonValue] = [_convert_node(option, root, depth + 1) for option in options]
        annotations = {
            key: value for key, value in out.items() if key in {"title", "description", "nullable"}
        }
        return {**annotations, "anyOf": choices}
    kinds = node.get("type")
    kind = kinds if isinstance(kinds, str) else _guess_type(node)
    if kind:
        out["type"] = kind
    _convert_constants(out, node, kind)
    if out.get("default", 0) is None:
        del out["default"]
    if isinstance(node.get("format"), str) and node["format"] in _FORMATS.get(kind, set()):
        out["format"] = node["format"]
    _convert_parts(out, root, depth, kind)
    return _convert_to_text(out) if depth == 1 and kind == "object" and not out.get("properties") else out


def _convert_to_text(node: JsonObject) -> JsonObject:
    """Convert an argument object with arbitrary keys to a string, as Gemini refuses it or returns it empty.

    Tools accept an object's JSON text for the object.
    """
    description = node.get("description")
    attributes = {key: value for key, value in node.items() if key == "nullable"}
    return {
        **attributes,
        "type": "string",
        "description": f"{description} (a JSON object as text)" if description else "a JSON object as text",
    }


def _list_options(node: JsonObject) -> tuple[list[JsonValue], bool]:
    """Return the alternatives of `node` without null, and whether null is one. A list of types counts too."""
    options = [option for key in ("anyOf", "oneOf") for option in _as_list(node.get(key))]
    if isinstance(kinds := node.get("type"), list):
        plain = {key: value for key, value in node.items() if key not in {"anyOf", "oneOf"}}
        options += [{**plain, "type": kind} for kind in kinds if isinstance(kind, str)]
    non_null = [option for option in options if not _is_null(option)]
    return non_null, len(non_null) < len(options)


def _convert_parts(out: JsonObject, root: JsonObject, depth: int, kind: str) -> None:
    properties = out.get("properties")
    if isinstance(properties, dict):
        out["properties"] = {
            name: _convert_node(value, root, depth + 1) for name, value in properties.items()
        }
        out["required"] = [
            name for name in _as_list(out.get("required")) if isinstance(name, str) and name in properties
        ]
        if not out["required"]:
            del out["required"]
    else:
        out.pop("properties", None)
        out.pop("required", None)
    if kind == "array":
        out["items"] = _convert_node(out.get("items", {"type": "string"}), root, depth + 1)
    else:
        out.pop("items", None)


def _convert_constants(out: JsonObject, node: JsonObject, kind: str) -> None:
    """Convert choices to an enum of strings, or else list them in the description."""
    choices = [node["const"]] if "const" in node else _as_list(node.get("enum"))
    out.pop("enum", None)
    if not choices:
        return
    names = [choice for choice in choices if isinstance(choice, str) and choice]
    if kind in {"string", ""} and names:
        out["type"] = "string"
        out["enum"] = cast("list[JsonValue]", names)
    else:
        sentence = "One of " + ", ".join(str(choice) for choice in choices) + "."
        description = out.get("description")
        out["description"] = f"{description} {sentence}" if isinstance(description, str) else sentence


def _resolve(node: JsonObject, root: JsonObject) -> JsonObject:
    """Return `node` with its reference and its `allOf` merged."""
    for _ in range(_MAX_DEPTH):
        reference = node.get("$ref")
        if not isinstance(reference, str):
            break
        target: JsonValue = root
        for step in reference.removeprefix("#").strip("/").split("/"):
            target = target.get(step) if isinstance(target, dict) else None
        rest = {key: value for key, value in node.items() if key != "$ref"}
        node = {**target, **rest} if isinstance(target, dict) else rest
    for part in _as_list(node.get("allOf")):
        if isinstance(part, dict):
            node = {**_resolve(part, root), **{k: v for k, v in node.items() if k != "allOf"}}
    return node


def _guess_type(node: JsonObject) -> str:
    if "properties" in node or "additionalProperties" in node:
        return "object"
    if "items" in node:
        return "array"
    return ""


def _is_null(option: JsonValue) -> bool:
    return isinstance(option, dict) and option.get("type") == "null"


def _as_list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


PROTOCOL = "gemini"
"""Key in `AssistantMessage.opaque` for data that only this service understands."""

NO_SIGNATURE = "skip_thought_signature_validator"
"""Placeholder that Gemini 3 accepts as the signature of calls that it did not make."""

_BUDGETS = {"none": 0, "low": 4_096, "medium": 12_288, "high": 24_576}
_MIN_PRO_BUDGET = 128
_HEADS = {role: b'{"role":"%b","parts":[' % role.encode() for role in ("user", "model")}


@dataclass(frozen=True, slots=True)
class Content:
    """One message as JSON parts; `joins` if the next message of its kind is merged into the same content."""

    role: Literal["user", "model"]
    parts: tuple[bytes, ...]
    joins: bool = True


def create_history(request: ModelRequest) -> History[Content]:
    """Return a new history for the request's model."""
    model = request.model
    needs_signatures = has_thinking_levels(model)
    ids: dict[str, bool] = {}

    def encode(message: Message, _before: list[Content]) -> Content:
        match message:
            case UserMessage():
                text = (encode_json({"text": message.text}),) if message.text else ()
                return Content("user", (*map(_encode_image, message.images), *text), joins=False)
            case ToolMessage():
                return Content("user", _encode_result(message, with_id=ids.get(message.call_id, False)))
            case AssistantMessage():
                stored = _get_stored(message, model)
                known_ids = stored is not None and stored.get("ids") is True
                ids.update({call.id: known_ids for call in message.calls})
                return Content(
                    "model", _encode_reply(message, stored, needs_signatures=needs_signatures, ids=known_ids)
                )
            case _:
                assert_never(message)

    return History(encode)


def _encode_image(image: Image) -> bytes:
    return encode_json({"inlineData": {"mimeType": image.media_type, "data": image.data}})


def _encode_result(message: ToolMessage, *, with_id: bool) -> tuple[bytes, ...]:
    key = "result" if message.ok else "error"
    response: JsonObject = {"name": wire_name(message.tool), "response": {key: message.text}}
    if with_id:
        response["id"] = message.call_id
    return (encode_json({"functionResponse": response}), *map(_encode_image, message.images))


def _get_stored(message: AssistantMessage, model: str) -> JsonObject | None:
    stored = message.opaque.get(PROTOCOL)
    return stored if isinstance(stored, dict) and stored.get("model") == model else None


def _encode_reply(
    message: AssistantMessage, stored: JsonObject | None, *, needs_signatures: bool, ids: bool
) -> tuple[bytes, ...]:
    order = stored.get("parts") if stored is not None else None
    if isinstance(order, list) and (parts := _restore_parts(message, order, ids=ids)) is not None:
        return parts
    text = (encode_json({"text": message.text}),) if message.text else ()
    calls = [
        _encode_call(call, NO_SIGNATURE if needs_signatures and index == 0 else "")
        for index, call in enumerate(message.calls)
    ]
    return (*text, *calls)


def _restore_parts(
    message: AssistantMessage, order: list[JsonValue], *, ids: bool
) -> tuple[bytes, ...] | None:
    """Return the parts with their original signatures; None if the message was edited since."""
    position, calls = 0, iter(message.calls)
    parts: list[bytes] = []
    for entry in order:
        if not isinstance(entry, dict):
            return None
        signature = entry.get("signature")
        signature = signature if isinstance(signature, str) else ""
        length = entry.get("length")
        if isinstance(length, int):
            part: JsonObject = {"text": message.text[position : position + length]}
            position += length
            parts.append(encode_json({**part, "thoughtSignature": signature} if signature else part))
        elif (call := next(calls, None)) is not None:
            parts.append(_encode_call(call, signature, call_id=call.id if ids else ""))
        else:
            return None
    return tuple(parts) if position == len(message.text) and next(calls, None) is None else None


def _encode_call(call: ToolCall, signature: str, call_id: str = "") -> bytes:
    args: JsonObject = call.args if call.malformed is None else {"malformed_arguments": call.malformed}
    function: JsonObject = {"name": wire_name(call.tool), "args": args}
    if call_id:
        function["id"] = call_id
    part: JsonObject = {"functionCall": function}
    if signature:
        part["thoughtSignature"] = signature
    return encode_json(part)


def encode_tools(tools: tuple[ToolSpec, ...]) -> bytes:
    """Return the tools as JSON; b"" if there are none."""
    declarations: list[JsonValue] = [_declare_tool(tool) for tool in tools]
    return encode_json([{"functionDeclarations": declarations}]) if tools else b""


def encode_body(request: ModelRequest, contents: list[Content], tools: bytes) -> bytes:
    """Return the request as JSON."""
    parts = [b""]
    if request.system.strip():
        parts.append(b'"systemInstruction":' + encode_json({"parts": [{"text": request.system}]}))
    if tools:
        parts.append(b'"tools":' + tools)
    config = _build_config(request)
    if config:
        parts.append(b'"generationConfig":' + encode_json(config))
    return b"".join([*_merge_contents(contents), b"]", b",".join(parts), b"}"])


def _merge_contents(contents: list[Content]) -> list[bytes]:
    """Merge results of one reply's calls and consecutive replies into one content each.

    User messages stay separate. The first and the last content are the user's.
    """
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


def _declare_tool(tool: ToolSpec) -> JsonObject:
    declaration: JsonObject = {"name": wire_name(tool.name), "description": tool.description}
    schema = convert_schema(tool.parameters)
    if schema is not None:
        declaration["parameters"] = schema
    return declaration


def _build_config(request: ModelRequest) -> JsonObject:
    config: JsonObject = {}
    entry = find_model(request.model)
    limit = request.max_output or (entry.max_output if entry is not None else 0)
    if limit:
        config["maxOutputTokens"] = min(limit, entry.max_output) if entry is not None else limit
    thinking: JsonObject = {"includeThoughts": True}
    if has_thinking_levels(request.model):
        if request.effort == "none":
            thinking["thinkingLevel"] = "low" if "pro" in request.model else "minimal"
        elif request.effort:
            thinking["thinkingLevel"] = request.effort
        config["thinkingConfig"] = thinking
    elif entry is not None and entry.thinking == "budget":
        if request.effort:
            budget = _BUDGETS[request.effort]
            thinking["thinkingBudget"] = max(budget, _MIN_PRO_BUDGET) if "pro" in request.model else budget
            thinking["includeThoughts"] = budget > 0
        config["thinkingConfig"] = thinking
    config.update(request.options)
    return config


def has_thinking_levels(model: str) -> bool:
    """Return True for Gemini 3 and later, which also require a signature with every call."""
    name = model.rpartition("/")[2]
    return name.startswith("gemini-") and name[7:8].isdigit() and int(name[7:8]) >= 3
