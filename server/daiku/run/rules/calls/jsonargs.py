"""Check arguments against an external tool's JSON Schema; keywords that are not checked here are let pass."""

from __future__ import annotations

import json
from typing import cast

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.run.rules.calls.toolnames import nearest_names
from daiku.texts.rules.truncate import truncate_middle

_DEPTH = 12
_PROBLEMS = 8
_SHOWN = 80
_JSON_FILES = (".json", ".jsonc", ".json5", ".geojson", ".webmanifest", ".ipynb", ".code-workspace", ".har")


def repair_args(schema: JsonObject, args: JsonObject) -> JsonObject:
    """Read values of another form where the schema leaves one meaning, as `parse_arguments` does."""
    return _fit_object(args, schema, schema, 0)


def _fit_object(value: JsonObject, node: JsonValue, root: JsonObject, depth: int) -> JsonObject:
    properties = _properties(node)
    required = _names(node.get("required")) if isinstance(node, dict) else ()
    found: JsonObject = {}
    for key, item in value.items():
        kinds = _possible_kinds(properties.get(key), root)
        if item is None and key in properties and key not in required and kinds and "null" not in kinds:
            continue
        rest = node.get("additionalProperties") if isinstance(node, dict) else None
        found[key] = _fit(item, properties.get(key, rest), root, value, depth + 1)
    return found


def _fit(value: JsonValue, node: JsonValue, root: JsonObject, siblings: JsonObject, depth: int) -> JsonValue:
    node = _only_option(_resolved(node, root), root)
    kinds = _possible_kinds(node, root)
    if not kinds or depth > _DEPTH or not isinstance(node, dict) or value is None:
        return value
    if not any(_is(value, kind) for kind in kinds):
        value = _as_kind(value, kinds, node, siblings)
    if isinstance(value, dict):
        return _fit_object(value, node, root, depth)
    if isinstance(value, list) and "items" in node:
        return [_fit(item, node["items"], root, {}, depth + 1) for item in value[:1000]] + value[1000:]
    return value


def _as_kind(value: JsonValue, kinds: set[str], node: JsonObject, siblings: JsonObject) -> JsonValue:
    """Return `value` as one of `kinds`, or as it is where its meaning is not certain."""
    if "string" in kinds:
        return _as_text(value, siblings) if kinds <= {"string", "null"} else value
    if isinstance(value, str):
        try:
            inner = cast("JsonValue", json.loads(value, strict=False))
        except (ValueError, RecursionError):
            inner = value
        if any(_is(inner, kind) for kind in kinds):
            return inner
    wraps = isinstance(value, dict | str)
    return [value] if wraps and kinds <= {"array", "null"} and "items" in node else value


def parse_json_text(text: str) -> JsonValue:
    """Return the object or list that `text` is as JSON; None if it is none."""
    try:
        value: JsonValue = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _as_text(value: JsonValue, siblings: JsonObject) -> JsonValue:
    """Return an object or list as JSON if another argument names a JSON file, else the value as it is."""
    named = any(isinstance(each, str) and each.lower().endswith(_JSON_FILES) for each in siblings.values())
    if isinstance(value, dict | list) and named and not (isinstance(value, dict) and "$ref" in value):
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    return value


def _only_option(node: JsonValue, root: JsonObject) -> JsonValue:
    """Return the only option besides null of a choice, else the node itself."""
    options = (node.get("anyOf") or node.get("oneOf")) if isinstance(node, dict) else None
    if not isinstance(options, list):
        return node
    others = [each for each in (_resolved(option, root) for option in options) if _kinds(each) != {"null"}]
    return others[0] if len(others) == 1 and len(others) < len(options) else node


def problems_of(schema: JsonObject, args: JsonObject) -> tuple[str, ...]:
    """List what is wrong with `args`, one line each. Never raises: an invalid schema accepts everything. Patterns are
    not checked: an untrusted regular expression may take forever."""
    found: list[str] = []
    _check(args, schema, schema, "", 0, found)
    return tuple(found[:_PROBLEMS])


def usage_of(schema: JsonObject) -> str:
    """The arguments in one line: `{"path": string, "limit"?: integer}`."""
    required = _names(schema.get("required"))
    parts = [
        f'"{name}"{"" if name in required else "?"}: {_words(_resolved(value, schema), schema, 0)}'
        for name, value in _properties(schema).items()
    ]
    return "{" + ", ".join(parts) + "}"


def _check(
    value: JsonValue, node: JsonValue, root: JsonObject, where: str, depth: int, found: list[str]
) -> None:
    node = _resolved(node, root)
    if not isinstance(node, dict) or depth > _DEPTH or len(found) >= _PROBLEMS:
        if node is False:
            found.append(f"{where or 'the arguments'} must not be given")
        return
    if not _any_of(value, node, root, where, depth, found):
        return
    choices = node.get("enum")
    if isinstance(choices, list) and value not in choices:
        told = ", ".join(json.dumps(choice, ensure_ascii=False) for choice in choices[:20])
        found.append(f"{where}: must be one of {told} ({_given(value)})")
        return
    kinds = _kinds(node)
    if kinds and not any(_is(value, kind) for kind in kinds):
        found.append(f"{where or 'the arguments'}: must be {' or '.join(sorted(kinds))} ({_given(value)})")
        return
    if isinstance(value, dict):
        _check_object(value, node, root, where, depth, found)
    elif isinstance(value, list) and "items" in node:
        for at, item in enumerate(value[:1000]):
            _check(item, node["items"], root, f"{where}[{at}]", depth + 1, found)


def _any_of(
    value: JsonValue, node: JsonObject, root: JsonObject, where: str, depth: int, found: list[str]
) -> bool:
    options = node.get("anyOf") or node.get("oneOf")
    if not isinstance(options, list) or not options:
        return True
    for option in options[:50]:
        tried: list[str] = []
        _check(value, option, root, where, depth + 4, tried)
        if not tried:
            return True
    words = " | ".join(_words(_resolved(option, root), root, 0) for option in options[:10])
    found.append(f"{where or 'the arguments'}: must be {words} ({_given(value)})")
    return False


def _check_object(
    value: JsonObject, node: JsonObject, root: JsonObject, where: str, depth: int, found: list[str]
) -> None:
    properties = _properties(node)
    before = f"{where}." if where else ""
    found += [f"{before}{name} is missing" for name in _names(node.get("required")) if name not in value]
    for key, item in value.items():
        if key in properties:
            _check(item, properties[key], root, f"{before}{key}", depth + 1, found)
        elif node.get("additionalProperties") is False and "patternProperties" not in node:
            near = nearest_names(key, properties, 1)
            found.append(f"{before}{key} is not known{f'; did you mean {near[0]}?' if near else ''}")


def _resolved(node: JsonValue, root: JsonObject) -> JsonValue:
    """What a reference within the schema points at; any other reference is anything."""
    for _ in range(_DEPTH):
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
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _names(value: JsonValue) -> tuple[str, ...]:
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _kinds(node: JsonValue) -> set[str]:
    kinds = node.get("type") if isinstance(node, dict) else None
    return {kinds} if isinstance(kinds, str) else set(_names(kinds))


def _possible_kinds(node: JsonValue, root: JsonObject) -> set[str]:
    """The types that a value may have by the schema; empty where it does not say."""
    node = _resolved(node, root)
    options = (node.get("anyOf") or node.get("oneOf")) if isinstance(node, dict) else None
    if not isinstance(options, list):
        return _kinds(node)
    kinds = [_kinds(_resolved(option, root)) for option in options[:50]]
    return {kind for some in kinds for kind in some} if all(kinds) else set()


def _is(value: JsonValue, kind: str) -> bool:
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
            whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
            return whole and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return True


def _words(node: JsonValue, root: JsonObject, depth: int) -> str:
    if not isinstance(node, dict) or depth > 3:
        return "any"
    if isinstance(choices := node.get("enum"), list):
        return " | ".join(json.dumps(choice, ensure_ascii=False) for choice in choices[:20])
    options = node.get("anyOf") or node.get("oneOf")
    if isinstance(options, list):
        return " | ".join(_words(_resolved(option, root), root, depth + 1) for option in options[:10])
    kinds = _kinds(node)
    if kinds == {"array"}:
        return f"[{_words(_resolved(node.get('items'), root), root, depth + 1)}, …]"
    if kinds == {"object"} and (properties := _properties(node)):
        required = _names(node.get("required"))
        inner = (
            f'"{k}"{"" if k in required else "?"}: {_words(_resolved(v, root), root, depth + 1)}'
            for k, v in list(properties.items())[:30]
        )
        return "{" + ", ".join(inner) + "}"
    return " | ".join(sorted(kinds)) or "any"


def _given(value: JsonValue) -> str:
    shown = truncate_middle(json.dumps(value, ensure_ascii=False, default=str), _SHOWN)
    return f"given: {' '.join(shown.split())}"
