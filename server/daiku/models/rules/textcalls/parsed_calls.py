"""Types for tool calls in reply text, and resolution of their tool names and arguments."""

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
"""Tags that contain calls or data."""


class WrittenCall(NamedTuple):
    """Call in a text; later calls refer to its result by `id`."""

    name: str
    args: JsonObject
    id: str = ""
    reasoning: str | None = None


class UnreadableCall(NamedTuple):
    """Text that is intended as a call but cannot be parsed; `problem` is a short reason."""

    problem: Text


_PREFIX = re.compile(r"^(?:functions|tools|default_api)\.(?=.)")
_NUMBER = re.compile(r":\d+$")


def strip_decoration(name: str) -> str:
    """Return the name without the prefix `functions.` and the number that templates add."""
    return _NUMBER.sub("", _PREFIX.sub("", name.strip()))


@dataclass(frozen=True, slots=True)
class OfferedTools:
    """Tools that a reply may call. Without any, every name counts as a tool."""

    specs: Sequence[ToolSpec] = ()
    _resolved: dict[str, str | None] = field(default_factory=dict[str, str | None])

    def resolve(self, name: str) -> str | None:
        """Return the tool that `name` means in any of its spellings; None if it is not a tool."""
        name = name.strip().strip("`\"'")
        if not self.specs:
            return name or None
        if name not in self._resolved:
            names = [spec.name for spec in self.specs]
            self._resolved[name] = match_spelling(name, names) or match_spelling(
                strip_decoration(name), names
            )
        return self._resolved[name]

    def with_tool_name(self, call: WrittenCall) -> WrittenCall:
        """Return the call with the tool's canonical name, if it has one."""
        return call._replace(name=self.resolve(call.name) or call.name.strip())

    def has_all(self, calls: Iterable[WrittenCall]) -> bool:
        """Return True if every call is to a tool on offer."""
        return all(self.resolve(call.name) is not None for call in calls)

    def has_no_parameters(self, name: str) -> bool:
        """Return True if `name` is a tool on offer without parameters."""
        tool = self.resolve(name)
        return any(spec.name == tool and not spec.parameters.get("properties") for spec in self.specs)

    def parse_texts(self, name: str, texts: dict[str, str], *, loose: bool = False) -> JsonObject:
        """Parse arguments given as text: as JSON unless the schema says string. `loose`: also without a schema."""
        tool = self.resolve(name)
        schema = next((spec.parameters for spec in self.specs if spec.name == tool), None)
        properties = schema.get("properties") if schema is not None else None
        schemas = properties if isinstance(properties, dict) else {}
        return {key: _parse_value(text, schemas.get(key), loose=loose) for key, text in texts.items()}


def _parse_value(text: str, schema: JsonValue, *, loose: bool) -> JsonValue:
    kinds = schema.get("type") if isinstance(schema, dict) else None
    is_text = kinds == "string" or (isinstance(kinds, list) and "string" in kinds)
    if is_text or (kinds is None and not loose):
        return text
    try:
        return cast("JsonValue", json.loads(text))
    except (ValueError, RecursionError):
        return text


def parse_object(value: JsonValue) -> JsonObject | None:
    """Return arguments as an object. They may be missing, or JSON text; None for anything else."""
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
