"""Texts cut to a number of words, cut into pieces to stream, or joined with their continuation."""

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


WORD_SIZE = 8
"""Characters that count as one word where a text has none between spaces, as in Japanese."""


def limit_words(text: str, most: int) -> str:
    """Return `text` cut to at most `most` words with a note on what is missing, or unchanged if it fits.

    The cut is at a line end if one is near; the number of characters is limited accordingly.
    """
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    limit = min(ends[most - 1] if len(ends) > most else len(text), most * WORD_SIZE)
    if len(text.rstrip()) <= limit:
        return text
    line_end = text.rfind("\n", limit * 4 // 5, limit)
    shown = text[: line_end if line_end > 0 else limit].rstrip()
    return f"{shown}\n[… cut off after {most} words: {len(text) - len(shown)} characters are missing …]"


_PIECE = lazy(
    r"[\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]{1,4}\s*|[^\s\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]+\s*|\s+"
)


def streamed_pieces(text: str) -> list[str]:
    """Words with the blanks behind them, a few signs of Japanese: what a model streams. Together they are `text`."""
    return _PIECE.findall(text)
