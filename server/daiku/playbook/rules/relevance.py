"""Decide by shared words whether a lesson has to do with a question at all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from daiku.memory.rules.terms import terms
from daiku.playbook.rules.lessons.similar import FILLERS
from daiku.texts.rules.patterns import lazy

LEAST_SHARED = 0.75
"""Least weight of the shared words: more than any one that says little."""
PART_SHARED = 5
"""The shared words weigh at least one part in so many of a sentence of the question…"""
MOST_SHARED = 3.0
"""… but no more than so many words are required."""
LONGEST_PART = 400
"""Characters of what counts as one sentence."""
_NOTHING = FILLERS | frozenset(
    str.split(
        "all also am any both but did down each few first had he hello her hey hi him his how i if last let me more most much my"
        " new next off ok okay one only out over she some someone something thank thanks there two up us very which why yes"
    )
)
"""Words that are no evidence of anything when two texts share them."""
_LITTLE = frozenset(
    str.split(
        "ask asks change changed changes changing code convert create creates explain fix fixed fixes give implement"
        " look make see show support tell thing things think try update want wants way work works write"
    )
)
"""Words of what is wanted more than of what it is about: half the weight, like Japanese with kana."""
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
"""Ends of forms of one word, and how much has to stay."""
_PARTS = lazy(r"(?<=[.!?])\s+|[\n。！？]+")
_ALONE = lazy(r"(?<![\u3400-\u9fff々])[\u3400-\u9fff](?![\u3400-\u9fff々])")


class Asked:
    """A question by its sentences: a long request is about several things."""

    def __init__(self, question: str) -> None:
        parts = (part[:LONGEST_PART] for part in _PARTS.split(question))
        self._parts = [weights for part in parts if (weights := _asked_words(part))]

    def shares_words(self, text: str) -> bool:
        """Return True if `text` shares enough words with one sentence of the question."""
        said = weights_of(text)
        return any(_shared(part, said) >= _asked_for(part) for part in self._parts)


def _asked_words(part: str) -> Mapping[str, float]:
    """Return the weights of the words of a sentence; a single word is searched for, whatever it is."""
    only = set(terms(part))
    return {stem(word): 1.0 for word in only} if len(only) == 1 else weights_of(part)


def _asked_for(part: Mapping[str, float]) -> float:
    return max(LEAST_SHARED, min(MOST_SHARED, sum(part.values()) / PART_SHARED))


def _shared(part: Mapping[str, float], said: Mapping[str, float]) -> float:
    return sum([weight for word, weight in part.items() if word in said])


@lru_cache(maxsize=5_000)
def weights_of(text: str) -> Mapping[str, float]:
    """Return the stems of the words of a text, each with the weight of a match; words that say nothing are left out."""
    weights = {stem(term): weight for term in terms(text) if (weight := _weigh(term))}
    return weights | dict.fromkeys(lone_characters(text), 1.0)


def _weigh(term: str) -> float:
    """Weigh a word of a European language, or a pair of Japanese or Chinese characters."""
    if term in _LITTLE:
        return 0.5
    if term[0] < "\u3000":
        return 0.0 if term in _NOTHING or (len(term) == 1 and not term.isdigit()) else 1.0
    if len(term) == 1 or all("\u3041" <= sign <= "\u309f" or sign == "ー" for sign in term):
        return 0.0
    return 0.5 if any("\u3041" <= sign <= "\u30ff" for sign in term) else 1.0


def lone_characters(text: str) -> list[str]:
    """Return the Chinese characters with no other one next to them: each is a word of its own."""
    return [] if text.isascii() else _ALONE.findall(text)


@lru_cache(maxsize=50_000)
def stem(term: str) -> str:
    """Return an English word without the end that its forms differ by; other terms stay as they are."""
    if not term.isascii() or not term.isalpha():
        return term
    for end, least in _ENDS:
        if term.endswith(end) and len(term) - len(end) >= least:
            term = term[: -len(end)]
            break
    return term[:-1] if len(term) > 4 and term[-1] == term[-2] else term
