"""A text cut to a number of words, or into the pieces in which a model streams it."""

from __future__ import annotations

import re

from daiku.texts.rules.patterns import lazy

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
