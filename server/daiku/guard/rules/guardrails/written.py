"""What a tool call says and writes, as the text that guardrails judge."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import JsonValue

from daiku.domain.tools import ToolCall
from daiku.texts.rules.patterns import lazy

_TAKEN_OUT = frozenset({"search", "old", "old_string", "old_str", "old_text"})
"""Arguments that repeat what stands in a file: it is there already."""
_PATCH = frozenset({"patch", "diff"})
_GONE = lazy(r"^(?:-(?!--)| ).*(?:\n|\Z)|^@@.*(?:\n|\Z)", re.MULTILINE)
"""Lines of a patch that are taken out, or were there before."""


def call_text(call: ToolCall) -> str:
    """Return the tool's name and its arguments, one per line; of an edit, only the new text."""
    return "\n".join((call.tool, *_leaves(call.args)))


def leaves(value: JsonValue) -> Iterator[str]:
    """Every name and value in `value` as text, in its order."""
    return _leaves(value, whole=True)


def _leaves(value: JsonValue, *, whole: bool = False) -> Iterator[str]:
    pending: list[tuple[str, JsonValue]] = [("", value)]
    while pending:
        name, item = pending.pop()
        match item:
            case str(said):
                yield _GONE.sub("", said) if name in _PATCH and not whole else said
            case list(items):
                pending.extend((name, each) for each in reversed(items))
            case dict(items):
                for inner, each in reversed(items.items()):
                    if whole:
                        pending.extend((("", each), ("", inner)))
                    elif inner not in _TAKEN_OUT:
                        pending.append((inner, each))
            case None:
                pass
            case other:
                yield str(other)
