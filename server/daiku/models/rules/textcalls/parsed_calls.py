"""Types for tool calls found in reply text, and resolving their tool names and arguments."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from pydantic import JsonValue

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolSpec
from daiku.run.rules.calls.toolnames import match_spelling
from daiku.texts.text import Text

PLAIN_TAGS = ("tool", "tools", "response", "json")
"""Tags that hold calls or data."""


class WrittenCall(NamedTuple):
    """One call in a text; `id` is what later ones may refer to it by."""

    name: str
    args: JsonObject
    id: str = ""
    reasoning: str | None = None


class UnreadableCall(NamedTuple):
    """What is meant as a call and cannot be read; `problem` says why in a few words."""

    problem: Text


_PREFIX = re.compile(r"^(?:functions|tools|default_api)\.(?=.)")
_NUMBER = re.compile(r":\d+$")


def bare_name(name: str) -> str:
    """The name without what templates put around it: `functions.` before it, its number behind it."""
    return _NUMBER.sub("", _PREFIX.sub("", name.strip()))


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """The tools that a reply may call; where none are given every name is taken for one."""

    specs: Sequence[ToolSpec] = ()
    _known: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def resolve(self, name: str) -> str | None:
        """The tool that `name` means in any of its spellings, None for no tool."""
        name = name.strip().strip("`\"'")
        if not self.specs:
            return name or None
        if name not in self._known:
            names = [spec.name for spec in self.specs]
            self._known[name] = match_spelling(name, names) or match_spelling(bare_name(name), names)
        return self._known[name]

    def with_tool_name(self, call: WrittenCall) -> WrittenCall:
        """The call with the tool's own name, where it has one."""
        return call._replace(name=self.resolve(call.name) or call.name.strip())

    def knows(self, calls: Iterable[WrittenCall]) -> bool:
        """True where each of the calls is one of a tool."""
        return all(self.resolve(call.name) is not None for call in calls)

    def takes_nothing(self, name: str) -> bool:
        """Return True if `name` is a tool on offer that has no parameters."""
        found = self.resolve(name)
        return any(spec.name == found and not spec.parameters.get("properties") for spec in self.specs)

    def parse_texts(self, name: str, texts: dict[str, str], *, loose: bool = False) -> JsonObject:
        """Parse arguments given as text: as JSON unless the schema says string. `loose`: also without a schema."""
        found = self.resolve(name)
        schema = next((spec.parameters for spec in self.specs if spec.name == found), None)
        properties = schema.get("properties") if schema is not None else None
        known = properties if isinstance(properties, dict) else {}
        return {key: _value(text, known.get(key), loose=loose) for key, text in texts.items()}


def _value(text: str, schema: JsonValue, *, loose: bool) -> JsonValue:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    is_text = kinds == "string" or (isinstance(kinds, list) and "string" in kinds)
    if is_text or (kinds is None and not loose):
        return text
    try:
        return cast("JsonValue", json.loads(text))
    except (ValueError, RecursionError):
        return text


def whole_object(value: JsonValue) -> JsonObject | None:
    """Arguments as an object: they may be missing, or JSON written as a text; None where they are neither."""
    for _ in range(2):
        if not isinstance(value, str):
            break
        if not value.strip():
            return {}
        try:
            value = cast("JsonValue", json.loads(value, strict=False))
        except (ValueError, RecursionError):
            return None
    if value is None:
        return {}
    return value if isinstance(value, dict) else None
