"""A vector from the words of a text, without a model: it matches words and their pieces, not meanings."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from zlib import crc32

from daiku.memory.rules.terms import terms
from daiku.memory.rules.vectors import SCALE, Vector

DIMENSION = 384
NAME = "hashed-words-1"
"""Its name among embedders; another number, other vectors."""
UNRELATED = 0.12
"""Texts that are less alike than this share no more than chance."""
_WORD, _PIECE, _CHARACTER, _COMMON = 1.0, 0.3, 0.25, 0.12
_INFLECTED = 0.35
"""Of a pair with hiragana, which mostly is grammar."""
_COMMON_WORDS = frozenset(
    str.split(
        "a an and are as at be but by can do does did for from had has have he her his how i if in is it its let me my no not"
        " of on or our she so than that the their them then there these they this to too use used uses using was we were what"
        " when where which who why will with would you your です ます した して する いる ある ない この その これ それ から まで ので"
        " には では とは こと もの ため ので よう"
    )
)


def hashed_vector(text: str) -> Vector:
    """The vector of `text`: its words, their runs of three letters, pairs of characters where there are no spaces."""
    sums: dict[int, float] = {}
    for term, count in Counter(terms(text)).items():
        times = 1.0 if count == 1 else 1.0 + math.log(count)
        for place, weight in _features(term):
            sums[place] = sums.get(place, 0.0) + times * weight
    length = math.sqrt(sum([value * value for value in sums.values()]))
    parts = [0] * DIMENSION  # most stay zero: as whole_vector makes it, in a third of the time
    if length:
        for place, value in sums.items():
            parts[place] = round(value * SCALE / length)
    return tuple(parts)


@lru_cache(maxsize=50_000)
def _features(term: str) -> tuple[tuple[int, float], ...]:
    """Where a term and its pieces fall, and with which weight."""
    if term in _COMMON_WORDS:
        return (_place(term, _COMMON),)
    if term[0] >= "\u3000":
        grammar = any("\u3041" <= character <= "\u309f" for character in term)
        found = [_place(term, _INFLECTED if grammar else _WORD)]
        found += [_place(character, _CHARACTER) for character in term if character >= "\u3400"]
    else:
        framed = f"^{term}$"
        found = [_place(term, _WORD)]
        found += [_place(framed[at : at + 3], _PIECE) for at in range(len(framed) - 2)]
    return tuple(found)


def _place(feature: str, weight: float) -> tuple[int, float]:
    hashed = crc32(feature.encode("utf-8", "surrogatepass")) * 0x9E3779B1 & 0xFFFFFFFF
    return (hashed >> 1) % DIMENSION, weight if hashed >> 31 else -weight
