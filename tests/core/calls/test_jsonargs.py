"""Arguments against a ready JSON Schema: told precisely, mended where nothing is lost, total."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daiku.run.rules.calls.jsonargs import problems_of, repair_args, usage_of
from tests.cases import for_each

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {"Place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
    "properties": {
        "path": {"type": "string"},
        "limit": {"type": "integer", "default": 3},
        "kind": {"enum": ["a", "b"]},
        "place": {"$ref": "#/$defs/Place"},
        "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    },
    "required": ["path"],
    "additionalProperties": False,
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)
words = st.sampled_from(
    ["type", "properties", "items", "anyOf", "oneOf", "enum", "required", "$ref", "additionalProperties"]
)
schemas = st.recursive(
    json_values | st.sampled_from(["object", "array", "string", "#", "#/properties/a", "http://a/b"]),
    lambda inner: (
        st.dictionaries(words | st.text(max_size=3), inner, max_size=4) | st.lists(inner, max_size=3)
    ),
    max_leaves=25,
)


@for_each(
    ("args", "told"),
    [
        ({}, "path is missing"),
        ({"path": 1}, "path: must be string (given: 1)"),
        ({"path": "a", "limit": "x"}, "limit: must be integer"),
        ({"path": "a", "limit": True}, "limit: must be integer"),
        ({"path": "a", "kind": "c"}, 'kind: must be one of "a", "b"'),
        ({"path": "a", "place": {}}, "place.x is missing"),
        ({"path": "a", "tags": [1]}, "tags: must be [string, …] | null"),
        ({"path": "a", "pth": "b"}, "pth is not known; did you mean path?"),
    ],
)
def test_what_is_wrong_is_told(args: dict[str, Any], told: str) -> None:
    (problem,) = problems_of(SCHEMA, args)
    assert told in problem


def test_right_arguments_pass() -> None:
    args: dict[str, Any] = {"path": "a", "limit": 2.0, "kind": "a", "place": {"x": 1}, "tags": None}
    assert problems_of(SCHEMA, args) == ()


def test_two_habits_of_models_are_mended() -> None:
    args: dict[str, Any] = {"path": "a", "limit": None, "tags": '["x"]', "place": '{"x": 1}'}
    assert repair_args(SCHEMA, args) == {"path": "a", "tags": ["x"], "place": {"x": 1}}
    assert repair_args(SCHEMA, {"path": None}) == {"path": None}


def test_the_usage_is_one_line() -> None:
    assert usage_of(SCHEMA) == (
        '{"path": string, "limit"?: integer, "kind"?: "a" | "b", "place"?: {"x": number},'
        ' "tags"?: [string, …] | null}'
    )


def test_a_schema_that_refers_to_itself_ends() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/properties/b"}}}
    value: dict[str, Any] = {}
    for _ in range(100):
        value = {"a": value, "b": 1}
    assert problems_of(schema, value) == ()


@given(
    st.dictionaries(st.text(max_size=4), schemas, max_size=5),
    st.dictionaries(st.text(max_size=4), json_values, max_size=4),
)
def test_no_schema_of_a_stranger_raises(schema: Any, args: Any) -> None:
    problems_of(schema, repair_args(schema, args))
    usage_of(schema)
