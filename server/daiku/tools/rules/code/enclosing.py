"""The definition around a place in a source text, by its tags and its indentation."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.tools.rules.code.repomap import Tag

_CLOSERS = (")", "]", "}", "{")
_GO_ON = ("{", ":", "(", ",", "=", "=>")
_MARKS = ("@", "#[")
_VALUES = frozenset(("constant", "variable", "field"))
"""Kinds of definitions that hold nothing."""


def enclosing_definition(
    lines: Sequence[str], first: int, last: int, tags: Sequence[Tag]
) -> tuple[int, int] | None:
    """The innermost definition that holds the lines `first` to `last`, as its own first and last line.

    Lines count from 0, both ends belong to it; decorators do too. None where no definition holds them.
    """
    for tag in sorted(tags, key=lambda tag: tag.line, reverse=True):
        start = tag.line - 1
        if not tag.is_definition or tag.kind in _VALUES or not 0 <= start < len(lines):
            continue
        top = _with_marks(lines, start)
        if top <= first and (end := _end(lines, start)) >= last:
            return top, end
    return None


def _with_marks(lines: Sequence[str], start: int) -> int:
    while start > 0 and lines[start - 1].lstrip().startswith(_MARKS):
        start -= 1
    return start


def _end(lines: Sequence[str], start: int) -> int:
    """The last line of the block that begins at `start`: up to the next line that is not deeper, where
    that line does not close or continue the block."""
    depth = _indent(lines[start])
    end = start
    for number in range(start + 1, len(lines)):
        text = lines[number].strip()
        if not text:
            continue
        indent = _indent(lines[number])
        if indent > depth:
            end = number
        elif indent == depth and text.startswith(_CLOSERS):
            end = number
            if text.startswith("}") and not text.endswith(_GO_ON):
                return end
        elif indent == depth and text.rstrip(";") == "end":
            return number
        else:
            return end
    return end


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
