"""The terms that a text is found by: words, the parts of identifiers, and pairs of characters where no spaces are."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from daiku.texts.rules.marks import without_mark_runs
from daiku.texts.rules.patterns import lazy

_CJK = "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_RUNS = lazy(rf"(?P<cjk>[{_CJK}]+)|(?P<word>(?:(?![{_CJK}])\w)+)")
_ASCII = lazy(r"\w+")
"""The words of a text that is ASCII: the other pattern takes milliseconds to be compiled."""
_PARTS = lazy(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
LONGEST_TERM = 64
"""Characters of a word that count: what is longer is a hash or a key, not a word."""
VERSION = 1
"""Raised with every change of what `terms` gives: stores then make their lists of terms anew."""


def terms(text: str) -> list[str]:
    """The terms of `text`, in order and as often as they occur. `parseJson_file` gives its parts and itself; of
    Japanese and Chinese every pair of neighbours is one, a character that stands alone too."""
    return list(_known_terms(text))


@lru_cache(maxsize=16)
def _known_terms(text: str) -> tuple[str, ...]:
    """The terms of a text: a vector and a list of words are made from the same ones, one after the other."""
    return tuple(_terms(unicodedata.normalize("NFKC", without_mark_runs(text))))


def _terms(text: str) -> Iterator[str]:
    if text.isascii():
        for word in _ASCII.findall(text):
            yield from _word_terms(word[:LONGEST_TERM])
        return
    for run in _RUNS.finditer(text):
        if (cjk := run["cjk"]) is not None:
            yield from (cjk[at : at + 2] for at in range(len(cjk) - 1)) if len(cjk) > 1 else (cjk,)
        else:
            yield from _word_terms(run["word"][:LONGEST_TERM])


@lru_cache(maxsize=20_000)
def _word_terms(word: str) -> tuple[str, ...]:
    """Return the parts of an identifier and the identifier as one word."""
    whole = word.replace("_", "").casefold()
    if not whole:
        return ()
    parts: list[str] = []
    if whole != word:
        parts = _PARTS.findall(word) if word.isascii() else [part for part in word.split("_") if part]
    return (*(part.casefold() for part in parts), whole) if len(parts) > 1 else (whole,)
