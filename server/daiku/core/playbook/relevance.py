"""Whether a lesson has to do with a question at all: by the words that they share, or by how alike a model finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from daiku.core.playbook.likeness import FILLERS
from daiku.core.retrieval.terms import terms
from daiku.core.retrieval.vectors import Vector, cosine
from daiku.core.text.patterns import lazy

LEAST_SHARED = 0.75
"""What shared words have to weigh at least: more than any one that says little."""
PART_SHARED = 5
"""And they are at least this part of what a sentence of the question says, one over so many…"""
MOST_SHARED = 3.0
"""… but in a long sentence no more than so many words are asked for."""
LONGEST_PART = 400
"""Characters of what counts as one sentence."""
STRANGERS = (
    "The bread is still warm",
    "They walked along the river until dark",
    "Her brother plays the violin",
    "It rained on the day of the wedding",
    "パンはまだ温かい",
    "暗くなるまで川沿いを歩いた",
    "弟はバイオリンを弾く",
    "結婚式の日は雨だった",
)
"""Sentences that no lesson has to do with: as alike as a question and one of these, a model finds any two texts."""
ABOVE_STRANGERS = 0.05
_SAYS_LITTLE, _GRAMMAR, _KANA, _VERB = 0.5, 0.3, 0.5, 0.5
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
"""Words of what is wanted more than of what it is about."""
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
_AFTER_NOUNS = "のはがをにでともへや"
"""A Chinese character that stands alone is a word of its own before one of these, else mostly the root of a verb."""


class Asked:
    """A question, taken apart once: sentence by sentence, for a long request is about several things."""

    def __init__(self, question: str) -> None:
        parts = (part[:LONGEST_PART] for part in _PARTS.split(question))
        self._parts = [weights for part in parts if (weights := _asked_words(part))]

    def shares_words(self, text: str) -> bool:
        """Whether `text` shares enough words with one sentence of the question."""
        said = weights_of(text)
        return any(_shared(part, said) >= _asked_for(part) for part in self._parts)


def _asked_words(part: str) -> Mapping[str, float]:
    """The words of a sentence; a single one is what is looked for, whatever it is."""
    only = set(terms(part))
    return {stem(word): 1.0 for word in only} if len(only) == 1 else weights_of(part)


def _asked_for(part: Mapping[str, float]) -> float:
    return max(LEAST_SHARED, min(MOST_SHARED, sum(part.values()) / PART_SHARED))


def _shared(part: Mapping[str, float], said: Mapping[str, float]) -> float:
    return sum([weight for word, weight in part.items() if word in said])


@lru_cache(maxsize=5_000)
def weights_of(text: str) -> Mapping[str, float]:
    """The words of a text without their ends, and how much each says; those that say nothing are left out."""
    found: dict[str, float] = {}
    for term in terms(text):
        if (weight := _weight(term)) > 0:
            word = stem(term)
            found[word] = max(weight, found.get(word, 0.0))
    for alone in _ALONE.finditer(text):
        found[alone[0]] = 1.0 if text[alone.end() : alone.end() + 1] in _AFTER_NOUNS else _VERB
    return found


def _weight(term: str) -> float:
    if (term in _NOTHING and term not in _LITTLE) or (
        len(term) == 1 and term.isascii() and not term.isdigit()
    ):
        return 0.0
    if term[0] < "\u3000":
        return _SAYS_LITTLE if term in _LITTLE else 1.0
    if len(term) == 1 or all(_is_kana(sign) for sign in term):
        return 0.0  # what stands alone is looked at by itself
    if any("\u3041" <= sign <= "\u309f" for sign in term):
        return _GRAMMAR
    return _KANA if any("\u30a0" <= sign <= "\u30ff" for sign in term) else 1.0


def _is_kana(sign: str) -> bool:
    return "\u3041" <= sign <= "\u309f" or sign == "ー"


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


def least_alike(question: Vector, strangers: Sequence[Vector], unrelated: float) -> float:
    """From which cosine on the word of a model counts for a question: `unrelated`, which holds for all its texts, or a little
    more than that of the sentences in `strangers`. A model that does not know a language finds all texts in it alike."""
    chance = [cosine(question, each) for each in strangers if len(each) == len(question)]
    return max([unrelated, *(each + ABOVE_STRANGERS for each in chance)])


def is_related(asked: Asked, text: str, likeness: float | None, least: float | None) -> bool:
    """Whether a text has to do with a question: it shares words with it, or a model finds them alike enough (`least`, None
    where likeness is that of words, of which chance gives too much)."""
    if likeness is not None and least is not None and likeness >= least:
        return True
    return asked.shares_words(text)
