"""JSON Schema reduced to the part of it that Gemini's function declarations accept."""

from __future__ import annotations

from typing import cast

from pydantic import JsonValue

from daiku.domain.base import JsonObject

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
