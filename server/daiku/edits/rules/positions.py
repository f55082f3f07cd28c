"""Positions of the language server protocol in texts: lines end with \\n, \\r\\n or \\r, units as negotiated."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, TypeAlias

from daiku.domain.runs import Position, Range

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

_END = re.compile(r"\r\n|\n|\r")
_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}


def line_starts(text: str) -> list[int]:
    """Index of the first character of each line; one line more than there are line ends."""
    return [0, *(match.end() for match in _END.finditer(text))]


def line_at(text: str, starts: Sequence[int], line: int) -> str:
    """The text of a line without its end."""
    end = starts[line + 1] if line + 1 < len(starts) else len(text)
    stop = end
    if line + 1 < len(starts):
        stop -= 2 if text[end - 2 : end] == "\r\n" else 1
    return text[starts[line] : stop]


def index_in_line(line: str, units: int, encoding: Encoding) -> int:
    """The character that `units` point at: within a character its beginning, past the end the end."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    codec, width = _CODECS[encoding]
    data = line.encode(codec, "surrogatepass")[: units * width]
    return len(data.decode(codec, "ignore"))


def units_of(text: str, encoding: Encoding) -> int:
    """How many units `text` (a part of a line) takes."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    codec, width = _CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // width


def offset_of(text: str, starts: Sequence[int], position: Position, encoding: Encoding) -> int:
    """Index into `text`; what lies outside is brought to the nearest place."""
    if position.line < 0:
        return 0
    if position.line >= len(starts):
        return len(text)
    line = line_at(text, starts, position.line)
    return starts[position.line] + index_in_line(line, max(position.character, 0), encoding)


def position_of(text: str, starts: Sequence[int], offset: int, encoding: Encoding) -> Position:
    """The position of an index into `text`."""
    line = bisect_right(starts, offset) - 1
    return Position(line=line, character=units_of(text[starts[line] : offset], encoding))


def range_of(text: str, starts: Sequence[int], start: int, end: int, encoding: Encoding) -> Range:
    """The range between two indices."""
    return Range(
        start=position_of(text, starts, start, encoding), end=position_of(text, starts, end, encoding)
    )
