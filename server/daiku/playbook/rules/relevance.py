"""Relevance of a lesson to a question, by weighted shared words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from daiku.memory.rules.terms import split_terms
from daiku.playbook.rules.lessons.similar import FILLERS
from daiku.texts.rules.patterns import lazy

LEAST_SHARED = 0.75
"""Minimum weight of the shared words. It is above the weight of one word that says little."""
PART_SHARED = 5
"""Divisor: the shared words must have this fraction of a sentence's weight…"""
MOST_SHARED = 3.0
"""…but at most this weight is required."""
LONGEST_PART = 400
"""Characters of a sentence that are read."""
_NOTHING = FILLERS | frozenset(
    str.split(
        "all also am any both but did down each few first had he hello her hey hi him his how i if last let me more most much my"
        " new next off ok okay one only out over she some someone something thank thanks there two up us very which why yes"
    )
)
"""Words without weight: two texts that share them have nothing in common."""
_LITTLE = frozenset(
    str.split(
        "ask asks change changed changes changing code convert create creates explain fix fixed fixes give implement"
        " look make see show support tell thing things think try update want wants way work works write"
    )
)
"""Words with half weight, such as requests. Japanese words with kana have it too."""
_ENDS = (
    ("ings", 4),
    ("ing", 4),
    ("ers", 5),
    ("ies", 6),
    ("er", 5),
    ("ed", 4),
    ("es", 4),
    ("s", 3),
    ("e", 4),
    ("y", 6),
)
"""Word endings that are removed, each with the minimum length of the rest."""
_PARTS = lazy(r"(?<=[.!?])\s+|[\n。！？]+")
_ALONE = lazy(r"(?<![\u3400-\u9fff々])[\u3400-\u9fff](?![\u3400-\u9fff々])")


class QuestionWords:
    """A question split into sentences, since a long request has several topics."""

    def __init__(self, question: str) -> None:
        parts = (part[:LONGEST_PART] for part in _PARTS.split(question))
        self._parts = [weights for part in parts if (weights := _weigh_sentence(part))]

    def shares_words(self, text: str) -> bool:
        """Return True if `text` shares enough words with one sentence of the question."""
        words = weigh_words(text)
        return any(_sum_shared(part, words) >= _compute_threshold(part) for part in self._parts)


def _weigh_sentence(part: str) -> Mapping[str, float]:
    """Return the weights of the words of a sentence; a sentence of one word always searches for it."""
    only = set(split_terms(part))
    return {stem(word): 1.0 for word in only} if len(only) == 1 else weigh_words(part)


def _compute_threshold(part: Mapping[str, float]) -> float:
    return max(LEAST_SHARED, min(MOST_SHARED, sum(part.values()) / PART_SHARED))


def _sum_shared(part: Mapping[str, float], words: Mapping[str, float]) -> float:
    return sum([weight for word, weight in part.items() if word in words])


@lru_cache(maxsize=5_000)
def weigh_words(text: str) -> Mapping[str, float]:
    """Return the weights of the word stems of a text; words without weight are left out."""
    weights = {stem(term): weight for term in split_terms(text) if (weight := _weigh(term))}
    return weights | dict.fromkeys(find_lone_characters(text), 1.0)


def _weigh(term: str) -> float:
    """Return the weight of a European word, or of a pair of Japanese or Chinese characters."""
    if term in _LITTLE:
        return 0.5
    if term[0] < "\u3000":
        return 0.0 if term in _NOTHING or (len(term) == 1 and not term.isdigit()) else 1.0
    if len(term) == 1 or all("\u3041" <= sign <= "\u309f" or sign == "ー" for sign in term):
        return 0.0
    return 0.5 if any("\u3041" <= sign <= "\u30ff" for sign in term) else 1.0


def find_lone_characters(text: str) -> list[str]:
    """Return the Chinese characters without a Chinese neighbor; each is a word."""
    return [] if text.isascii() else _ALONE.findall(text)


@lru_cache(maxsize=50_000)
def stem(term: str) -> str:
    """Return an English word without its inflectional ending; other terms are unchanged."""
    if not term.isascii() or not term.isalpha():
        return term
    for end, least in _ENDS:
        if term.endswith(end) and len(term) - len(end) >= least:
            term = term[: -len(end)]
            break
    return term[:-1] if len(term) > 4 and term[-1] == term[-2] else term
