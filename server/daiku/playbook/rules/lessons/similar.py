"""Decide whether two lessons say the same, are near duplicates, or say another thing in the same place."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache

from daiku.memory.rules.hashed import hashed_vector
from daiku.memory.rules.terms import terms
from daiku.memory.rules.vectors import Vector, cosine
from daiku.playbook.rules.lessons.proposal import code_spans
from daiku.texts.rules.patterns import lazy

Alike = Callable[[str, str], bool]
"""Whether two texts are near duplicates, by whatever measures them."""
_NEGATIONS = lazy(
    r"\b(?:not|no|never|none|without|avoid|cannot|neither|nor|don'?t|doesn'?t|isn'?t|won'?t|can'?t|mustn'?t|shouldn'?t|stop|fails?|instead)\b"
    r"|ない|なく|なし|せず|ません|ずに|禁止|やめ|避け|ではな|じゃな|不要"
)
_NUMBERS = lazy(r"\d+(?:\.\d+)*")
_MARKS = lazy(r"[\s.,;:!?。、！？；：\"'`]+")
LIMIT = 0.75
"""Least cosine of the hashed words of near duplicates, measured with labelled pairs. ACE has 0.9 for a model's vectors."""
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


def says_the_same(one: str, other: str, alike: Alike) -> bool:
    """Whether two lessons say the same. Texts that are alike in words but name other commands or numbers, or of which
    one forbids what the other asks for, do not."""
    if plain(one) == plain(other):
        return True
    return _particulars(one) == _particulars(other) and alike(one, other)


def without_numbers(text: str) -> str:
    """`text` with one sign for every number: what differs in a number only is about the same."""
    return _NUMBERS.sub("#", text)


def adds_words(new: str, old: str) -> bool:
    """Whether `new` has words that `old` has not."""
    return not set(terms(new)) <= set(terms(old))


@lru_cache(maxsize=20_000)
def plain(text: str) -> str:
    """A text as it is compared: case, white space and punctuation do not matter."""
    return _MARKS.sub(" ", text.casefold()).strip()


@lru_cache(maxsize=20_000)
def _particulars(text: str) -> tuple[frozenset[str], frozenset[str], int]:
    """What two texts that say the same have in common to the letter: commands, numbers, whether they deny."""
    spans = frozenset(code_spans(text))
    return spans, frozenset(_NUMBERS.findall(text)), len(_NEGATIONS.findall(text.casefold())) % 2


def near_duplicates(one: str, other: str) -> bool:
    """Return True if two texts are near duplicates by their words.

    Texts of which each has a word that the other lacks, such as "delete" and "create", are none."""
    return cosine(_vector(one), _vector(other)) >= LIMIT and not says_otherwise(one, other)


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
