"""The JSON of a notebook by its spans: where members and elements are, and values written in its own layout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pydantic import JsonValue

from daiku.dataclass import dataclass
from daiku.domain.base import JsonObject

_BLANK = re.compile(r"[ \t\n\r]*")
_INDENTED = re.compile(r"\{(\r?\n)([ \t]+)\"")
_DECODER = json.JSONDecoder()


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def members(text: str, at: int) -> Iterator[tuple[str, JsonValue, int, int]]:
    """Key, value and the value's span for each member of the object that begins at `at`; valid JSON."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        value, at = _DECODER.raw_decode(text, start)
        yield key, value, start, at
        at = _skip(text, at)
        at = _skip(text, at + 1) if text[at] == "," else at


def elements(text: str, at: int) -> Iterator[tuple[JsonValue, int, int]]:
    """Value and span for each element of the array that begins at `at`; valid JSON."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield value, at, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at


@dataclass(frozen=True, slots=True)
class Layout:
    """How a JSON text is laid out; without `unit` it is all in one line."""

    unit: str
    newline: str
    ascii: bool

    def line(self, depth: int) -> str:
        """Return a line break with the indentation of `depth`; empty if the JSON is on one line."""
        return self.newline + self.unit * depth if self.unit else ""

    def string(self, value: str) -> str:
        """Encode a string as JSON, escaped in the way this document does."""
        return json.dumps(value, ensure_ascii=self.ascii)


def layout_of(text: str) -> Layout:
    """The layout of a JSON text, from its beginning; escapes only where it has them and nothing else."""
    match = _INDENTED.match(text.lstrip())
    escapes = text.isascii() and re.search(r"\\u[0-9a-fA-F]{4}", text) is not None
    return Layout(match[2] if match else "", match[1] if match else "\n", escapes)


def _lines(source: str) -> list[str]:
    parts = source.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def format_source(source: str, text: str, start: int, end: int, layout: Layout) -> str:
    """A cell's source as its former value (`text[start:end]`) was written: string or lines, and their layout."""
    former = text[start:end]
    if former.startswith('"'):
        return layout.string(source)
    lines = [layout.string(line) for line in _lines(source)]
    if not lines:
        return "[]"
    inner = former[1:-1]
    first, last = inner[: _skip(inner, 0)], inner[len(inner.rstrip()) :]
    if inner.strip():
        between = f",{first}" if first else ", "
        return f"[{first}{between.join(lines)}{last}]"
    if not layout.unit:
        return f"[{', '.join(lines)}]"
    row = text[text.rfind("\n", 0, start) + 1 : start]
    indent = layout.newline + row[: len(row) - len(row.lstrip())]
    return f"[{indent}{layout.unit}{f',{indent}{layout.unit}'.join(lines)}{indent}]"


def format_cell(kind: str, source: str, cell_id: str | None, metadata: JsonObject, layout: Layout) -> str:
    """A whole cell as Jupyter writes one, two levels deep."""
    value: JsonObject = {"cell_type": kind}
    if kind == "code":
        value["execution_count"] = None
    if cell_id:
        value["id"] = cell_id
    value["metadata"] = metadata
    if kind == "code":
        value["outputs"] = []
    value["source"] = list(_lines(source))
    if not layout.unit:
        return json.dumps(value, ensure_ascii=layout.ascii)
    text = json.dumps(value, ensure_ascii=layout.ascii, indent=layout.unit)
    return text.replace("\n", layout.newline + layout.unit * 2)
