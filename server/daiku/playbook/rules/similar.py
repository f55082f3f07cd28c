"""Similarity of lessons: same meaning, near duplicates, contradictions."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import lru_cache

from daiku.memory.rules.hashed import hash_vector
from daiku.memory.rules.terms import split_terms
from daiku.memory.rules.vectors import Vector, cosine
from daiku.playbook.rules.proposals import find_code_spans
from daiku.texts.rules.patterns import lazy

Alike = Callable[[str, str], bool]
"""Predicate of two texts: True if they are near duplicates."""
_NEGATIONS = lazy(
    r"\b(?:not|no|never|none|without|avoid|cannot|neither|nor|don'?t|doesn'?t|isn'?t|won'?t|can'?t|mustn'?t|shouldn'?t|stop|fails?|instead)\b"
    r"|ない|なく|なし|せず|ません|ずに|禁止|やめ|避け|ではな|じゃな|不要"
)
_NUMBERS = lazy(r"\d+(?:\.\d+)*")
_MARKS = lazy(r"[\s.,;:!?。、！？；：\"'`]+")
LIMIT = 0.75
"""Minimum cosine of near duplicates' hashed words, measured with labeled pairs.

ACE uses 0.9 with a model's vectors.
"""
_STEM = 4
"""Number of first letters that forms of one word share."""
_RUNS = lazy(r"[\u3400-\u9fff々]+|[\u30a1-\u30fa\u30fc]+")
"""Japanese content words; grammar between them is skipped."""
FILLERS = frozenset(
    str.split(
        "a an and are as at be been before after by can could do does for from get gets go goes had has have here if in into is"
        " it its just kept keep made make may might must need needs not no never nor of on or other otherwise our own please"
        " put should so than that the their them then there these they this those to too use used using via was we were what"
        " when where which while who will with without would write written you your add added adding below"
    )
)
"""Words that may differ between texts with the same meaning."""


def have_same_meaning(one: str, other: str, alike: Alike) -> bool:
    """Return True if two lessons say the same.

    Similar texts do not if they name other commands or numbers, or if one negates the other.
    """
    if normalize(one) == normalize(other):
        return True
    return _find_exact_parts(one) == _find_exact_parts(other) and alike(one, other)


def mask_numbers(text: str) -> str:
    """Replace every number by one sign, so that texts that differ only in numbers are equal."""
    return _NUMBERS.sub("#", text)


def adds_words(new: str, old: str) -> bool:
    """Return True if `new` has words that `old` lacks."""
    return not set(split_terms(new)) <= set(split_terms(old))


@lru_cache(maxsize=20_000)
def normalize(text: str) -> str:
    """Normalize a text for comparison: case, white space, and punctuation do not matter."""
    return _MARKS.sub(" ", text.casefold()).strip()


@lru_cache(maxsize=20_000)
def _find_exact_parts(text: str) -> tuple[frozenset[str], frozenset[str], int]:
    """Return what texts with the same meaning share exactly: commands, numbers, negation."""
    spans = frozenset(find_code_spans(text))
    return spans, frozenset(_NUMBERS.findall(text)), len(_NEGATIONS.findall(text.casefold())) % 2


def are_near_duplicates(one: str, other: str) -> bool:
    """Return True if two texts are near duplicates by their words.

    Texts that each have a word that the other lacks, such as "delete" and "create", are none.
    """
    return cosine(_get_vector(one), _get_vector(other)) >= LIMIT and not have_different_words(one, other)


def have_different_words(one: str, other: str) -> bool:
    """Return True if each text has a content word that the other lacks."""
    first, second = _find_content_words(one), _find_content_words(other)
    return bool(_subtract_words(first, second) and _subtract_words(second, first))


def _subtract_words(words: frozenset[str], others: frozenset[str]) -> frozenset[str]:
    stems = {word[:_STEM] for word in others if word.isascii()}
    return frozenset(
        word
        for word in words - others
        if word[:_STEM] not in stems or not word.isalpha() or len(word) < _STEM
    )


@lru_cache(maxsize=5_000)
def _find_content_words(text: str) -> frozenset[str]:
    text = unicodedata.normalize("NFKC", text)
    latin = {term for term in split_terms(text) if term.isascii() and term not in FILLERS}
    return frozenset(latin | set(_RUNS.findall(text)))


@lru_cache(maxsize=20_000)
def _get_vector(text: str) -> Vector:
    return hash_vector(text)
