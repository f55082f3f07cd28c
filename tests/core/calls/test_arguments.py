"""Arguments whose meaning is certain are read, whatever form they have; all others are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, ValidationError

from daiku.run.rules.calls.arguments import parse_arguments
from daiku.run.rules.calls.dialects import translate_dialect
from daiku.run.rules.calls.jsonargs import problems_of, repair_args
from tests.cases import for_each


class Edit(BaseModel):
    model_config = ConfigDict(extra="forbid")
    search: str
    replace: str
    replace_all: bool = False


class Args(BaseModel):
    model_config = ConfigDict(extra="forbid")
    path: str
    content: str = ""
    edits: tuple[Edit, ...] = ()
    paths: list[str] | None = None
    limit: int | None = None
    exact: bool = False
    options: dict[str, int] = {}


SCHEMA = Args.model_json_schema()
ONE = {"search": "a", "replace": "b"}
TEXT = json.dumps(ONE)
PACKAGE = {"name": "x", "version": "1", "ünï": [1, {"a": None}]}
INDENTED = json.dumps(PACKAGE, indent=2, ensure_ascii=False) + "\n"

READ: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"edits": TEXT}, {"edits": [ONE]}),
    ({"edits": f"[{TEXT}]"}, {"edits": [ONE]}),
    ({"edits": [TEXT, TEXT]}, {"edits": [ONE, ONE]}),
    ({"edits": json.dumps([TEXT])}, {"edits": [ONE]}),
    ({"edits": ONE}, {"edits": [ONE]}),
    ({"edits": [TEXT, ONE]}, {"edits": [ONE, ONE]}),
    ({"edits": [{**ONE, "replace_all": "true"}]}, {"edits": [{**ONE, "replace_all": True}]}),
    ({"path": "pkg.json", "content": PACKAGE}, {"path": "pkg.json", "content": INDENTED}),
    ({"path": "a/B.JSON", "content": [1]}, {"path": "a/B.JSON", "content": "[\n  1\n]\n"}),
    ({"paths": "a.py"}, {"paths": ["a.py"]}),
    ({"paths": '["a.py", "b.py"]'}, {"paths": ["a.py", "b.py"]}),
    ({"paths": None}, {"paths": None}),
    ({"limit": "12"}, {"limit": 12}),
    ({"exact": "true"}, {"exact": True}),
    ({"exact": None}, {}),
    ({"options": '{"a": "1"}'}, {"options": {"a": 1}}),
]
REFUSED: list[dict[str, Any]] = [
    {"content": PACKAGE},  # which language, which layout: nobody knows
    {"path": "a.py", "content": PACKAGE},
    {"path": "a.json", "content": {"$ref": "a1.text"}},
    {"path": "a.json", "content": True},
    {"edits": "not JSON"},
    {"edits": ["not JSON"]},
    {"edits": "[[[["},
    {"edits": 5},
    {"edits": [{**ONE, "search": 5}]},
    {"content": 5},
    {"paths": [1]},
    {"limit": "many"},
    {"limit": {"a": 1}},
    {"path": None},
    {"options": "[1]"},
]


@for_each(("args", "meant"), READ)
def test_a_certain_meaning_is_read(args: dict[str, Any], meant: dict[str, Any]) -> None:
    before = json.dumps(args)
    parsed = parse_arguments(Args, {"path": "x", **args})
    assert parsed == Args.model_validate({"path": "x", **meant})
    assert json.dumps(args) == before


@for_each(("args", "meant"), READ)
def test_tools_with_a_ready_schema_are_read_alike(args: dict[str, Any], meant: dict[str, Any]) -> None:
    repaired = repair_args(SCHEMA, {"path": "x", **args})
    assert repaired == {"path": "x", **meant}
    assert problems_of(SCHEMA, repaired) == ()


@for_each("args", REFUSED)
def test_an_uncertain_meaning_is_refused(args: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parse_arguments(Args, {"path": "x", **args})
    assert problems_of(SCHEMA, repair_args(SCHEMA, {"path": "x", **args}))


@for_each(
    "edits",
    [
        ['{"old_string": "a", "new_string": "b"}'],
        '[{"old_string": "a", "new_string": "b"}]',
        '{"oldText": "a", "newText": "b"}',
        [TEXT],
    ],
)
def test_edits_in_strings_are_read_in_the_words_of_other_tools(edits: Any) -> None:
    known = frozenset({"path", "edits"})
    meant = translate_dialect("files/edit", {"path": "x", "edits": edits}, known)
    assert parse_arguments(Args, meant.args).edits == (Edit.model_validate(ONE),)
    assert translate_dialect("files/edit", meant.args, known).args == meant.args


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(Args.model_fields)), json_values | json_values.map(json.dumps)))
def test_any_arguments_are_read_or_refused(args: dict[str, Any]) -> None:
    try:
        parsed = parse_arguments(Args, args)
    except ValidationError:
        return
    assert parse_arguments(Args, parsed.model_dump(mode="json")) == parsed
