"""When two lessons are near duplicates: a limit for each embedder, and whether one says another thing in the same place."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

from daiku.core.retrieval.hashed import DIMENSION, NAME, hashed_vector
from daiku.core.retrieval.terms import terms
from daiku.core.retrieval.vectors import Vector, cosine
from daiku.core.text.patterns import lazy

_HASHED = f"{NAME}/{DIMENSION}"
_LIMITS: Mapping[str, float] = MappingProxyType({_HASHED: 0.75, "all-minilm-l6-v2": 0.85})
"""From which cosine on texts are near duplicates, by the name of the embedder, or of the model whichever provider has it;
measured with labelled pairs."""
_USUAL = 0.9
"""For models that nobody measured: as ACE has it."""
_STEM = 4
"""Words that share so many first letters are forms of one word."""
_RUNS = lazy(r"[\u3400-\u9fff々]+|[\u30a1-\u30fa\u30fc]+")
"""Words of Japanese: what is between them is grammar."""
FILLERS = frozenset(
    str.split(
        "a an and are as at be been before after by can could do does for from get gets go goes had has have here if in into is"
        " it its just kept keep made make may might must need needs not no never nor of on or other otherwise our own please"
        " put should so than that the their them then there these they this those to too use used using via was we were what"
        " when where which while who will with without would write written you your add added adding below"
    )
)
"""Words that may differ between two texts that say the same."""


def near_limit(embedder: str) -> float:
    """From which cosine of its vectors on two texts are near duplicates."""
    model = embedder.rpartition("/")[2].casefold()
    return _LIMITS.get(embedder, _LIMITS.get(model, _USUAL))


def near_duplicates() -> Callable[[str, str], bool]:
    """Whether two texts are near duplicates, by their words: from the limit on, unless each has a word that the other
    has not, as "delete" in the place of "create" does."""
    limit = near_limit(_HASHED)
    return lambda one, other: cosine(_vector(one), _vector(other)) >= limit and not says_otherwise(one, other)


def says_otherwise(one: str, other: str) -> bool:
    """Whether each of two texts says something that the other does not: one word stands in the place of another."""
    first, second = _words(one), _words(other)
    return bool(_left(first, second) and _left(second, first))


def _left(words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    stems = {word[:_STEM] for word in others if word.isascii()}
    return frozenset(
        word
        for word in words - others
        if word[:_STEM] not in stems or not word.isalpha() or len(word) < _STEM
    )


@lru_cache(maxsize=5_000)
def _words(text: str) -> frozenset[str]:
    plain = unicodedata.normalize("NFKC", text)
    latin = {term for term in terms(plain) if term.isascii() and term not in FILLERS}
    return frozenset(latin | set(_RUNS.findall(plain)))


@lru_cache(maxsize=20_000)
def _vector(text: str) -> Vector:
    return hashed_vector(text)
