"""Hashed vectors of texts, without a model: they match words and parts of words, not meanings."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from zlib import crc32

from daiku.memory.rules.terms import split_terms
from daiku.memory.rules.vectors import SCALE, Vector

DIMENSION = 384
NAME = "hashed-words-1"
"""Name of the embedder; another version has another number."""
UNRELATED = 0.12
"""Cosine below which texts are unrelated."""
_WORD, _PIECE, _CHARACTER, _COMMON = 1.0, 0.3, 0.25, 0.12
_INFLECTED = 0.35
"""Weight of a pair with hiragana, which is mostly grammar."""
_COMMON_WORDS = frozenset(
    str.split(
        "a an and are as at be but by can do does did for from had has have he her his how i if in is it its let me my no not"
        " of on or our she so than that the their them then there these they this to too use used uses using was we were what"
        " when where which who why will with would you your です ます した して する いる ある ない この その これ それ から まで ので"
        " には では とは こと もの ため ので よう"
    )
)


def hash_vector(text: str) -> Vector:
    """Return the vector of `text`: its words, their trigrams, and pairs of characters without spaces."""
    sums: dict[int, float] = {}
    for term, count in Counter(split_terms(text)).items():
        times = 1.0 if count == 1 else 1.0 + math.log(count)
        for place, weight in _hash_term(term):
            sums[place] = sums.get(place, 0.0) + times * weight
    length = math.sqrt(sum([value * value for value in sums.values()]))
    parts = [0] * DIMENSION  # mostly zeros; equals to_integers in a third of the time
    if length:
        for place, value in sums.items():
            parts[place] = round(value * SCALE / length)
    return tuple(parts)


@lru_cache(maxsize=50_000)
def _hash_term(term: str) -> tuple[tuple[int, float], ...]:
    """Return the places and weights of a term and its parts."""
    if term in _COMMON_WORDS:
        return (_hash_feature(term, _COMMON),)
    if term[0] >= "\u3000":
        grammar = any("\u3041" <= character <= "\u309f" for character in term)
        features = [_hash_feature(term, _INFLECTED if grammar else _WORD)]
        features += [_hash_feature(character, _CHARACTER) for character in term if character >= "\u3400"]
    else:
        delimited = f"^{term}$"
        features = [_hash_feature(term, _WORD)]
        features += [_hash_feature(delimited[at : at + 3], _PIECE) for at in range(len(delimited) - 2)]
    return tuple(features)


def _hash_feature(feature: str, weight: float) -> tuple[int, float]:
    digest = crc32(feature.encode("utf-8", "surrogatepass")) * 0x9E3779B1 & 0xFFFFFFFF
    return (digest >> 1) % DIMENSION, weight if digest >> 31 else -weight
