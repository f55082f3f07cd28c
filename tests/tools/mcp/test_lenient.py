"""Careless answers of a server: one bad tool or block never hides the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp import types

from daiku.tools.mcp.definitions import clean_schema
from daiku.tools.mcp.transport.server_transport import repair_result
from tests.tools.mcp.play import playing, wild

GOOD: dict[str, Any] = {"name": "good", "description": "Works.", "inputSchema": {"type": "object"}}
CARELESS_TOOLS: list[dict[str, Any]] = [
    {
        "name": "t",
        "inputSchema": {"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {}}}]},
    },
    {"name": "t", "inputSchema": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}},
    {"name": "t", "inputSchema": {"properties": {"a": {"type": "string"}}}},
    {"name": "t", "inputSchema": {"type": ["object", "null"]}},
    {"name": "t", "inputSchema": {"type": "string"}},
    {"name": "t", "inputSchema": None},
    {"name": "t", "inputSchema": []},
    {"name": "t"},
    {"name": "t", "description": 7, "inputSchema": {"type": "object"}},
    {"name": "t", "title": {"en": "T"}, "inputSchema": {"type": "object"}},
    {"name": "t", "annotations": "read only", "inputSchema": {"type": "object"}},
    {"name": "t", "icons": [{"no": "src"}], "inputSchema": {"type": "object"}},
    {"name": "t", "outputSchema": {"anyOf": []}, "inputSchema": {"type": "object"}},
    {"name": "t", "outputSchema": "text", "inputSchema": {"type": "object"}},
]
NAMELESS: list[Any] = [{"inputSchema": {"type": "object"}}, {"name": None}, {"name": 3}, "tool", None, []]
ANSWERS: list[tuple[dict[str, Any], str]] = [
    ({"content": [{"type": "text", "text": "seven"}], "structuredContent": {"n": "seven"}}, "seven"),
    ({"content": "seven"}, "seven"),
    ({"content": ["seven"]}, "seven"),
    ({"content": {"type": "text", "text": "seven"}}, "seven"),
    ({"content": [{"text": "seven"}]}, "seven"),
    ({"content": [{"type": "txt", "text": "seven"}]}, "seven"),
    ({"content": [{"type": "text", "text": "seven"}, {"type": "image"}]}, "seven"),
    ({"content": [{"type": "text", "text": "seven"}], "structuredContent": [1]}, "seven"),
    ({"content": [{"type": "text", "text": "seven"}], "structuredContent": "x", "isError": 0}, "seven"),
    ({"structuredContent": {"n": "seven"}}, ""),
]


@pytest.mark.parametrize("tool", CARELESS_TOOLS, ids=lambda tool: json.dumps(tool)[12:60])
def test_a_careless_tool_is_completed_and_spares_the_others(tool: dict[str, Any]) -> None:
    page: dict[str, Any] = {"tools": [GOOD, tool]}
    repair_result(page)
    read = types.ListToolsResult.model_validate(page, by_name=False)
    assert [t.name for t in read.tools] == ["good", "t"]
    assert all(t.output_schema is None for t in read.tools)
    assert clean_schema(read.tools[1].input_schema)["type"] == "object"


@pytest.mark.parametrize("tool", NAMELESS, ids=str)
def test_a_tool_without_a_name_is_left_out_alone(tool: Any) -> None:
    page: dict[str, Any] = {"tools": [tool, GOOD]}
    repair_result(page)
    assert page["tools"] == [GOOD]


@pytest.mark.parametrize(("answer", "text"), ANSWERS, ids=lambda value: json.dumps(value)[:50])
def test_the_usable_text_of_a_careless_answer_is_kept(answer: dict[str, Any], text: str) -> None:
    repair_result(answer)
    read = types.CallToolResult.model_validate(answer, by_name=False)
    texts = [block.text for block in read.content if isinstance(block, types.TextContent)]
    assert texts[:1] == ([text] if text else [])


def test_a_correct_answer_is_left_as_it_is() -> None:
    image = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    answer: dict[str, Any] = {
        "content": [image, {"type": "text", "text": "x", "annotations": {"priority": 1}}],
        "isError": True,
    }
    before = json.loads(json.dumps(answer))
    repair_result(answer)
    assert answer == before


def test_alternatives_at_the_root_become_one_object() -> None:
    found = clean_schema(
        {
            "oneOf": [
                {"properties": {"a": {"type": "string"}, "k": {"type": "string"}}, "required": ["a", "k"]},
                {"properties": {"b": {"type": "string"}}, "required": ["b", "k"]},
            ],
            "properties": {"k": {"type": "integer"}},
        }
    )
    assert found == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}, "k": {"type": "integer"}},
        "required": ["k"],
    }


@pytest.mark.slow
async def test_a_real_server_with_one_careless_tool_keeps_all_its_tools(tmp_path: Path) -> None:
    async with playing(tmp_path, wild("careless")) as played:
        await played.allow()
        assert {"wild/good0", "wild/good23", "wild/odd"} <= set(played.tools)
        done = await played.call("wild/odd")
        assert done.ok
        assert done.text == "seven"
