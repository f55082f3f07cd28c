"""Find the definition around a place in a source text, by tags and indentation."""

from __future__ import annotations

from collections.abc import Sequence

from daiku.tools.rules.code.repomap import Tag

_CLOSERS = (")", "]", "}", "{")
_CONTINUATIONS = ("{", ":", "(", ",", "=", "=>")
_DECORATORS = ("@", "#[")
_VALUES = frozenset(("constant", "variable", "field"))
"""Kinds of definitions without a body."""


def find_enclosing_definition(
    lines: Sequence[str], first: int, last: int, tags: Sequence[Tag]
) -> tuple[int, int] | None:
    """Return the first and last line of the innermost definition around the lines `first` to `last`.

    Lines count from 0, and both ends are included, as are decorators. None if no definition contains them.
    """
    for tag in sorted(tags, key=lambda tag: tag.line, reverse=True):
        start = tag.line - 1
        if not tag.is_definition or tag.kind in _VALUES or not 0 <= start < len(lines):
            continue
        top = _include_decorators(lines, start)
        if top <= first and (end := _find_end(lines, start)) >= last:
            return top, end
    return None


def _include_decorators(lines: Sequence[str], start: int) -> int:
    while start > 0 and lines[start - 1].lstrip().startswith(_DECORATORS):
        start -= 1
    return start


def _find_end(lines: Sequence[str], start: int) -> int:
    """Return the last line of the block that begins at `start`.

    It ends before the next line that is not deeper, unless that line closes or continues the block.
    """
    depth = _measure_indent(lines[start])
    end = start
    for number in range(start + 1, len(lines)):
        text = lines[number].strip()
        if not text:
            continue
        indent = _measure_indent(lines[number])
        if indent > depth:
            end = number
        elif indent == depth and text.startswith(_CLOSERS):
            end = number
            if text.startswith("}") and not text.endswith(_CONTINUATIONS):
                return end
        elif indent == depth and text.rstrip(";") == "end":
            return number
        else:
            return end
    return end


def _measure_indent(line: str) -> int:
    return len(line) - len(line.lstrip())
