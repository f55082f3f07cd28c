"""Validation of arguments against an external tool's JSON Schema; unsupported keywords are ignored."""

from __future__ import annotations

import json
from typing import cast

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.run.rules.calls.toolnames import nearest_names
from daiku.texts.rules.truncate import truncate_middle

_MAX_DEPTH = 12
_MOST_PROBLEMS = 8
_MOST_SHOWN = 80
_JSON_FILES = (".json", ".jsonc", ".json5", ".geojson", ".webmanifest", ".ipynb", ".code-workspace", ".har")


def repair_args(schema: JsonObject, args: JsonObject) -> JsonObject:
    """Convert values of another form if the schema leaves one meaning, as `parse_arguments` does."""
    return _repair_object(args, schema, schema, 0)


def _repair_object(value: JsonObject, node: JsonValue, root: JsonObject, depth: int) -> JsonObject:
    properties = _properties(node)
    required = _strings(node.get("required")) if isinstance(node, dict) else ()
    result: JsonObject = {}
    for key, item in value.items():
        kinds = _possible_kinds(properties.get(key), root)
        if item is None and key in properties and key not in required and kinds and "null" not in kinds:
            continue
        rest = node.get("additionalProperties") if isinstance(node, dict) else None
        result[key] = _repair(item, properties.get(key, rest), root, value, depth + 1)
    return result


def _repair(
    value: JsonValue, node: JsonValue, root: JsonObject, siblings: JsonObject, depth: int
) -> JsonValue:
    node = _only_option(_resolve(node, root), root)
    kinds = _possible_kinds(node, root)
    if not kinds or depth > _MAX_DEPTH or not isinstance(node, dict) or value is None:
        return value
    if not any(_has_kind(value, kind) for kind in kinds):
        value = _convert_to_kind(value, kinds, node, siblings)
    if isinstance(value, dict):
        return _repair_object(value, node, root, depth)
    if isinstance(value, list) and "items" in node:
        return [_repair(item, node["items"], root, {}, depth + 1) for item in value[:1000]] + value[1000:]
    return value


def _convert_to_kind(value: JsonValue, kinds: set[str], node: JsonObject, siblings: JsonObject) -> JsonValue:
    """Return `value` as one of `kinds`, or unchanged if its meaning is uncertain."""
    if "string" in kinds:
        return _convert_to_text(value, siblings) if kinds <= {"string", "null"} else value
    if isinstance(value, str):
        try:
            inner = cast("JsonValue", json.loads(value, strict=False))
        except (ValueError, RecursionError):
            inner = value
        if any(_has_kind(inner, kind) for kind in kinds):
            return inner
    wraps = isinstance(value, dict | str)
    return [value] if wraps and kinds <= {"array", "null"} and "items" in node else value


def parse_json_text(text: str) -> JsonValue:
    """Return the object or list in JSON `text`, else None."""
    try:
        value: JsonValue = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _convert_to_text(value: JsonValue, siblings: JsonObject) -> JsonValue:
    """Return an object or list as JSON if another argument names a JSON file, else unchanged."""
    names_json_file = any(
        isinstance(each, str) and each.lower().endswith(_JSON_FILES) for each in siblings.values()
    )
    if (
        isinstance(value, dict | list)
        and names_json_file
        and not (isinstance(value, dict) and "$ref" in value)
    ):
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return value


def _only_option(node: JsonValue, root: JsonObject) -> JsonValue:
    """Return the only non-null option of a union, else the node itself."""
    options = (node.get("anyOf") or node.get("oneOf")) if isinstance(node, dict) else None
    if not isinstance(options, list):
        return node
    others = [each for each in (_resolve(option, root) for option in options) if _kinds(each) != {"null"}]
    return others[0] if len(others) == 1 and len(others) < len(options) else node


def problems_of(schema: JsonObject, args: JsonObject) -> tuple[str, ...]:
    """Return what is wrong with `args`, one line each. Never raises: an invalid schema accepts everything.

    Patterns are not checked: an untrusted regular expression may take forever.
    """
    problems: list[str] = []
    _check(args, schema, schema, "", 0, problems)
    return tuple(problems[:_MOST_PROBLEMS])


def usage_of(schema: JsonObject) -> str:
    """Return the arguments in one line: `{"path": string, "limit"?: integer}`."""
    required = _strings(schema.get("required"))
    parts = [
        f'"{name}"{"" if name in required else "?"}: {_format_type(_resolve(value, schema), schema, 0)}'
        for name, value in _properties(schema).items()
    ]
    return "{" + ", ".join(parts) + "}"


def _check(
    value: JsonValue, node: JsonValue, root: JsonObject, path: str, depth: int, problems: list[str]
) -> None:
    node = _resolve(node, root)
    if not isinstance(node, dict) or depth > _MAX_DEPTH or len(problems) >= _MOST_PROBLEMS:
        if node is False:
            problems.append(f"{path or 'the arguments'} must not be given")
        return
    if not _check_union(value, node, root, path, depth, problems):
        return
    choices = node.get("enum")
    if isinstance(choices, list) and value not in choices:
        allowed = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices[:20])
        problems.append(f"{path}: must be one of {allowed} ({_format_value(value)})")
        return
    kinds = _kinds(node)
    if kinds and not any(_has_kind(value, kind) for kind in kinds):
        problems.append(
            f"{path or 'the arguments'}: must be {' or '.join(sorted(kinds))} ({_format_value(value)})"
        )
        return
    if isinstance(value, dict):
        _check_object(value, node, root, path, depth, problems)
    elif isinstance(value, list) and "items" in node:
        for index, item in enumerate(value[:1000]):
            _check(item, node["items"], root, f"{path}[{index}]", depth + 1, problems)


def _check_union(
    value: JsonValue, node: JsonObject, root: JsonObject, path: str, depth: int, problems: list[str]
) -> bool:
    options = node.get("anyOf") or node.get("oneOf")
    if not isinstance(options, list) or not options:
        return True
    for option in options[:50]:
        option_problems: list[str] = []
        _check(value, option, root, path, depth + 4, option_problems)
        if not option_problems:
            return True
    types = " | ".join(_format_type(_resolve(option, root), root, 0) for option in options[:10])
    problems.append(f"{path or 'the arguments'}: must be {types} ({_format_value(value)})")
    return False


def _check_object(
    value: JsonObject, node: JsonObject, root: JsonObject, path: str, depth: int, problems: list[str]
) -> None:
    properties = _properties(node)
    prefix = f"{path}." if path else ""
    problems += [f"{prefix}{name} is missing" for name in _strings(node.get("required")) if name not in value]
    for key, item in value.items():
        if key in properties:
            _check(item, properties[key], root, f"{prefix}{key}", depth + 1, problems)
        elif node.get("additionalProperties") is False and "patternProperties" not in node:
            similar = nearest_names(key, properties, 1)
            problems.append(f"{prefix}{key} is not known{f'; did you mean {similar[0]}?' if similar else ''}")


def _resolve(node: JsonValue, root: JsonObject) -> JsonValue:
    """Return the target of a reference within the schema; {} for any other reference."""
    for _ in range(_MAX_DEPTH):
        if not isinstance(node, dict) or not isinstance(reference := node.get("$ref"), str):
            return node
        target: JsonValue = root
        if not reference.startswith("#"):
            return {}
        for part in [p for p in reference[1:].split("/") if p]:
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name, {}) if isinstance(target, dict) else {}
        node = target
    return {}


def _properties(schema: JsonValue) -> JsonObject:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _strings(value: JsonValue) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _kinds(node: JsonValue) -> set[str]:
    kinds = node.get("type") if isinstance(node, dict) else None
    return {kinds} if isinstance(kinds, str) else set(_strings(kinds))


def _possible_kinds(node: JsonValue, root: JsonObject) -> set[str]:
    """Return the types that the schema allows; empty if unspecified."""
    node = _resolve(node, root)
    options = (node.get("anyOf") or node.get("oneOf")) if isinstance(node, dict) else None
    if not isinstance(options, list):
        return _kinds(node)
    kinds = [_kinds(_resolve(option, root)) for option in options[:50]]
    return {kind for some in kinds for kind in some} if all(kinds) else set()


def _has_kind(value: JsonValue, kind: str) -> bool:
    match kind:
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "integer":
            is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return is_whole and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return True


def _format_type(node: JsonValue, root: JsonObject, depth: int) -> str:
    if not isinstance(node, dict) or depth > 3:
        return "any"
    if isinstance(choices := node.get("enum"), list):
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices[:20])
    options = node.get("anyOf") or node.get("oneOf")
    if isinstance(options, list):
        return " | ".join(_format_type(_resolve(option, root), root, depth + 1) for option in options[:10])
    kinds = _kinds(node)
    if kinds == {"array"}:
        return f"[{_format_type(_resolve(node.get('items'), root), root, depth + 1)}, …]"
    if kinds == {"object"} and (properties := _properties(node)):
        required = _strings(node.get("required"))
        inner = (
            f'"{k}"{"" if k in required else "?"}: {_format_type(_resolve(v, root), root, depth + 1)}'
            for k, v in list(properties.items())[:30]
        )
        return "{" + ", ".join(inner) + "}"
    return " | ".join(sorted(kinds)) or "any"


def _format_value(value: JsonValue) -> str:
    excerpt = truncate_middle(json.dumps(value, ensure_ascii=False, default=str), _MOST_SHOWN)
    return f"given: {' '.join(excerpt.split())}"
