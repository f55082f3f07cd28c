r"""Positions of the Language Server Protocol in texts: lines end with \n, \r\n or \r; units as negotiated."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, TypeAlias

from daiku.domain.runs import Position, Range

Encoding: TypeAlias = Literal["utf-8", "utf-16", "utf-32"]

_END = re.compile(r"\r\n|\n|\r")
_CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}


def find_line_starts(text: str) -> list[int]:
    """Return the index of the first character of each line, one more than there are line ends."""
    return [0, *(match.end() for match in _END.finditer(text))]


def get_line(text: str, starts: Sequence[int], line: int) -> str:
    """Return the text of a line without its line end."""
    end = starts[line + 1] if line + 1 < len(starts) else len(text)
    stop = end
    if line + 1 < len(starts):
        stop -= 2 if text[end - 2 : end] == "\r\n" else 1
    return text[starts[line] : stop]


def to_index(line: str, units: int, encoding: Encoding) -> int:
    """Return the index of the character at `units`: its start if within it, the line's end if past it."""
    if encoding == "utf-32" or line.isascii():
        return min(units, len(line))
    codec, width = _CODECS[encoding]
    data = line.encode(codec, "surrogatepass")[: units * width]
    return len(data.decode(codec, "ignore"))


def count_units(text: str, encoding: Encoding) -> int:
    """Return the number of units of `text` (a part of a line)."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    codec, width = _CODECS[encoding]
    return len(text.encode(codec, "surrogatepass")) // width


def to_offset(text: str, starts: Sequence[int], position: Position, encoding: Encoding) -> int:
    """Return the index into `text`; a position outside is clamped."""
    if position.line < 0:
        return 0
    if position.line >= len(starts):
        return len(text)
    line = get_line(text, starts, position.line)
    return starts[position.line] + to_index(line, max(position.character, 0), encoding)


def to_position(text: str, starts: Sequence[int], offset: int, encoding: Encoding) -> Position:
    """Return the position of an index into `text`."""
    line = bisect_right(starts, offset) - 1
    return Position(line=line, character=count_units(text[starts[line] : offset], encoding))


def to_range(text: str, starts: Sequence[int], start: int, end: int, encoding: Encoding) -> Range:
    """Return the range between two indices."""
    return Range(
        start=to_position(text, starts, start, encoding), end=to_position(text, starts, end, encoding)
    )
