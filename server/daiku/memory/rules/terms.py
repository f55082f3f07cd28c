"""Search terms of a text: words, parts of identifiers, and character pairs where there are no spaces."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from daiku.texts.rules.marks import without_mark_runs
from daiku.texts.rules.patterns import lazy

_CJK = "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_RUNS = lazy(rf"(?P<cjk>[{_CJK}]+)|(?P<word>(?:(?![{_CJK}])\w)+)")
_ASCII = lazy(r"\w+")
"""Words of an ASCII text: the other pattern takes milliseconds to compile."""
_PARTS = lazy(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
LONGEST_TERM = 64
"""Characters of a word that count: a longer one is a hash or a key."""
VERSION = 1
"""Incremented with every change of `split_terms`; stores then recompute their terms."""


def split_terms(text: str) -> list[str]:
    """Return the terms of `text`, in order and with repetitions.

    `parseJson_file` yields its parts and itself. Japanese and Chinese yield every pair of neighbors, or a
    single character.
    """
    return list(_split_cached(text))


@lru_cache(maxsize=16)
def _split_cached(text: str) -> tuple[str, ...]:
    """Return the cached terms of a text: vectors and indexes need the same ones."""
    return tuple(_split(unicodedata.normalize("NFKC", without_mark_runs(text))))


def _split(text: str) -> Iterator[str]:
    if text.isascii():
        for word in _ASCII.findall(text):
            yield from _split_word(word[:LONGEST_TERM])
        return
    for run in _RUNS.finditer(text):
        if (cjk := run["cjk"]) is not None:
            yield from (cjk[at : at + 2] for at in range(len(cjk) - 1)) if len(cjk) > 1 else (cjk,)
        else:
            yield from _split_word(run["word"][:LONGEST_TERM])


@lru_cache(maxsize=20_000)
def _split_word(word: str) -> tuple[str, ...]:
    """Return the parts of an identifier and the identifier as one word."""
    whole = word.replace("_", "").casefold()
    if not whole:
        return ()
    parts: list[str] = []
    if whole != word:
        parts = _PARTS.findall(word) if word.isascii() else [part for part in word.split("_") if part]
    return (*(part.casefold() for part in parts), whole) if len(parts) > 1 else (whole,)
