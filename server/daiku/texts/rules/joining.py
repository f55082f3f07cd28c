"""A reply that was cut off, joined with its continuation."""

from __future__ import annotations

import re

from daiku.texts.rules.patterns import lazy

LEAST_REPEATED = 8
"""Characters that a continuation repeats at least, unless it repeats a single word."""
LEAST_VARIED = 4
"""Different characters in a repetition: indents and rules of tables repeat by right."""
_LAST_WORD = lazy(r"(?<![^\W_])[^\W\d_]{2,}$")


def join_continuation(half: str, rest: str) -> str:
    """Return `half` and its continuation as one text, without what the continuation repeats of the end of `half`.

    Whole lines that follow once more are kept, as lines of code may be equal, unless all of `half` is repeated.
    """
    start = rest.lstrip()
    at_line_end = half.endswith("\n") or rest.startswith("\n")
    at = half.find(start[:LEAST_REPEATED]) if start else -1
    while 0 <= at <= len(half) - LEAST_REPEATED:
        whole_lines = at_line_end and at and not half[half.rfind("\n", 0, at) + 1 : at].strip()
        if start.startswith(half[at:]) and len(set(half[at:])) >= LEAST_VARIED and not whole_lines:
            return half[:at] + start
        at = half.find(start[:LEAST_REPEATED], at + 1)
    word = _LAST_WORD.search(half)
    if word is not None and re.match(rf"{word[0]}(?![^\W_])", rest):
        return half[: word.start()] + rest
    return half + rest
