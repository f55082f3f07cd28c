"""Validation of tool arguments against the tool's model: repair safe mistakes, report others precisely."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from daiku.domain.base import JsonObject
from daiku.run.rules.calls.jsonargs import repair_args, usage_of
from daiku.run.rules.calls.toolnames import nearest_names
from daiku.texts.rules.truncate import truncate_middle

M = TypeVar("M", bound=BaseModel)

_MOST_SHOWN = 80


def schema_of(model: type[BaseModel]) -> JsonObject:
    """Return the model's JSON Schema as sent to models, without references, docstrings, and bounds."""
    raw = model.model_json_schema()
    definitions = raw.pop("$defs", {})
    for node in (raw, *definitions.values()):
        node.pop("description", None)
    schema = plain_schema(_inline(raw, definitions, ()))
    assert isinstance(schema, dict)
    schema.setdefault("type", "object")
    schema.setdefault("properties", {})
    return schema


_NOISE = frozenset(
    {
        *("additionalProperties", "default", "minLength", "maxLength", "minItems", "maxItems"),
        *("exclusiveMinimum", "minimum", "maximum", "title", "$schema"),
    }
)


def plain_schema(node: JsonValue) -> JsonValue:
    """Return a schema without keywords that models do not need: titles, defaults, bounds, optional null.

    Calls are validated against the complete schema.
    """
    if isinstance(node, list):
        return [plain_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    options = node.get("anyOf")
    if isinstance(options, list) and {"type": "null"} in options and len(options) == 2:
        only = options[0] if options[1] == {"type": "null"} else options[1]
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        node = {**only, **rest} if isinstance(only, dict) else node
    return {
        key: {name: plain_schema(each) for name, each in value.items()}
        if key == "properties" and isinstance(value, dict)
        else value
        if key in ("enum", "const", "required")
        else plain_schema(value)
        for key, value in node.items()
        if key not in _NOISE or (key == "additionalProperties" and isinstance(value, dict) and value)
    }


@cache
def schema_text(model: type[BaseModel]) -> str:
    """Return `schema_of` as JSON, cached for each model."""
    return json.dumps(schema_of(model), ensure_ascii=False)


def _inline(node: Any, definitions: JsonObject, within: tuple[str, ...]) -> JsonValue:
    if isinstance(node, list):
        return [_inline(item, definitions, within) for item in node]  # pyright: ignore[reportUnknownVariableType]  # JSON
    if not isinstance(node, dict):
        return node
    schema: dict[str, Any] = node  # pyright: ignore[reportUnknownVariableType]  # JSON
    reference = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    if reference and reference in definitions and reference not in within:
        rest = {k: v for k, v in schema.items() if k != "$ref"}
        target = _inline(definitions[reference], definitions, (*within, reference))
        assert isinstance(target, dict)
        return {**target, **rest}
    if reference in within:
        return {"type": "object"}
    return {
        key: _inline_properties(value, definitions, within)
        if key == "properties"
        else _inline(value, definitions, within)
        for key, value in schema.items()
        if key != "title"
    }


def _inline_properties(node: Any, definitions: JsonObject, within: tuple[str, ...]) -> JsonValue:
    """Inline the schemas of properties; a property named `title` is kept."""
    return {name: _inline(value, definitions, within) for name, value in node.items()}


def parse_arguments(model: type[M], args: JsonObject) -> M:
    """Return `args` as the tool's model (lax mode). Raises pydantic.ValidationError.

    Values of another form are converted if the schema leaves one meaning: JSON in a string, one value for a
    list, an object as the content of a JSON file, null for an optional argument.
    """
    try:
        return model.model_validate(args)
    except ValidationError:
        repaired = repair_args(model.model_json_schema(), args)
        if repaired == args:
            raise
        return model.model_validate(repaired)


def explain_problems(name: str, model: type[BaseModel], error: ValidationError) -> str:
    """Return what is wrong with the arguments of `name`, one line each, and the right form."""
    problems = error.errors(include_url=False)
    lines = [f"- {_describe_problem(problem, model)}" for problem in problems[:8]]
    if len(problems) > len(lines):
        lines.append(f"- … and {len(problems) - len(lines)} more")
    return f"{name} was not run: its arguments are wrong.\n" + "\n".join(lines) + f"\nRight: {usage(model)}"


def _describe_problem(problem: ErrorDetails, model: type[BaseModel]) -> str:
    path = ".".join(str(part) for part in problem["loc"]) or "the arguments"
    match problem["type"]:
        case "missing":
            return f"{path} is missing"
        case "extra_forbidden":
            similar = (
                nearest_names(str(problem["loc"][-1]), model.model_fields, 1)
                if len(problem["loc"]) == 1
                else ()
            )
            return f"{path} is not known{f'; did you mean {similar[0]}?' if similar else ''}"
        case _:
            value = truncate_middle(
                json.dumps(problem["input"], ensure_ascii=False, default=str), _MOST_SHOWN
            )
            message = problem["msg"][:1].lower() + problem["msg"][1:]
            return f"{path}: {message} (given: {' '.join(value.split())})"


def usage(model: type[BaseModel]) -> str:
    """Return the arguments in one line: `{"path": string, "start_line"?: integer}`."""
    return usage_of(schema_of(model))
