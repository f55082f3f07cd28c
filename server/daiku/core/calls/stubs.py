"""Tools as a prompt tells of them, for models that have no tools of their own."""

from __future__ import annotations

import json
from collections.abc import Iterable

from daiku.core.calls.toolnames import wire_name
from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolSpec


def prompt_stub(tools: Iterable[ToolSpec]) -> str:
    """One line for each tool, by the name that a model calls it: `"name": {"type":"object",…}`, the JSON Schema of its
    arguments with its description (R1.39)."""
    return ",\n".join(f"{_json(wire_name(tool.name))}: {_json(_described(tool))}" for tool in tools)


def _described(tool: ToolSpec) -> JsonObject:
    """The description stands behind the type: first what it is, then what it does, then its arguments."""
    head: JsonObject = {"type": "object", "description": " ".join(tool.description.split())}
    return head | {key: value for key, value in tool.parameters.items() if key not in head}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
