"""Arguments of calls as models write them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from daiku.models.transport.calls import CallParts, build_calls, parse_arguments, shorten_call_id
from daiku.run.rules.calls.toolnames import NameMap
from tests.cases import for_each


@for_each(
    ("text", "args"),
    [
        ("", {}),
        ("  \n", {}),
        ("null", {}),
        ("{}", {}),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": "one\ntwo"}', {"a": "one\ntwo"}),
        ('{"a": "\\ud83d\\ude00\\ud83d"}', {"a": "😀\N{REPLACEMENT CHARACTER}"}),
    ],
)
def test_arguments_are_read(text: str, args: object) -> None:
    assert parse_arguments(text) == (args, None)


@for_each("text", ['{"a":', "[1]", "3", "true", "{'a': 1}", '{"a": NaN}', "{}{}", "[" * 100_000])
def test_what_is_no_object_is_malformed(text: str) -> None:
    assert parse_arguments(text) == ({}, text)


@given(st.dictionaries(st.text(), st.text() | st.integers()))
def test_every_object_is_read_back(args: dict[str, str | int]) -> None:
    assert parse_arguments(json.dumps(args)) == (args, None)


@for_each(
    "pieces",
    [["files__read"], ["files__", "read"], ["files__read", "files__read"], ["files__", "files__read"]],
)
def test_a_name_is_whole_however_it_comes(pieces: list[str]) -> None:
    part = CallParts(id="a")
    for piece in pieces:
        part.add_name(piece)
    assert build_calls([part], NameMap())[0].tool == "files/read"


def test_ids_fit_the_service_and_stay_the_same() -> None:
    long = "toolu_" + "x" * 80
    assert shorten_call_id("call_1", 40) == "call_1"
    assert shorten_call_id(long, 40) == shorten_call_id(long, 40)
    assert len(shorten_call_id(long, 40)) <= 40
    assert shorten_call_id("a b", 40) != "a b"
