"""Rank lessons for a question: BM25 over their words, and the vectors of an embedder where there is one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from heapq import nlargest, nsmallest
from typing import NamedTuple

from daiku.domain.playbook import Bullet
from daiku.memory.rules.nearest import Nearest, Ranked, Row, take_best
from daiku.memory.rules.terms import choose_terms, limit_terms, split_terms
from daiku.memory.rules.vectors import Vector
from daiku.playbook.rules.similar import FILLERS
from daiku.texts.rules.patterns import lazy

K1, B = 1.2, 0.75
"""Parameters of BM25: saturation of repeated words, and normalization by text length."""
WIDER = 4
"""Candidates of each list, as a multiple of the requested results."""
LEAST_WIDE = 40
"""Minimum number of candidates of each list."""


class Scored(NamedTuple):
    """A lesson by its number, and how well it fits by vectors, by words and together, each from 0 to 1.

    `likeness` is the cosine itself, None if the lesson is not among the nearest.
    """

    number: int
    vector: float
    words: float
    combined: float
    likeness: float | None = None


class Question(NamedTuple):
    """A text to search for, its vector (None: by words alone), the number of results, and the hidden lessons.

    `fill`: by words alone, lessons that share no word follow in the order of adding.
    """

    text: str
    vector: Vector | None
    most: int
    hidden: AbstractSet[int] = frozenset()
    fill: bool = False


def get_search_text(bullet: Bullet) -> str:
    """Return the text that a bullet is searched by (B3.1)."""
    return " ".join((bullet.content, *bullet.keywords))


def split_search_terms(text: str) -> list[str]:
    """Return the terms of a text for comparison: stems of words, and single Chinese characters."""
    return [*(stem(term) for term in split_terms(text)), *find_lone_characters(text)]


class Lessons:
    """The active lessons of a playbook in memory, with their words and vectors.

    A lesson's number is its place in the order of adding.
    """

    def __init__(self, bullets: Iterable[Bullet] = ()) -> None:
        self.active: dict[int, Bullet] = {}
        self._numbers: dict[str, int] = {}
        self._postings: dict[str, dict[int, int]] = {}
        self._lengths: dict[int, int] = {}
        self._terms = 0
        self._rows: dict[int, Row] = {}
        self._nearest: Nearest | None = None
        for bullet in bullets:
            self.set_lesson(bullet)

    def set_lesson(self, bullet: Bullet) -> None:
        """Add a lesson, or replace an earlier state of it; remove it if it is inactive."""
        number = self._numbers.setdefault(bullet.id, len(self._numbers))
        before = self.active.get(number)
        if before is not None and not (bullet.active and get_search_text(before) == get_search_text(bullet)):
            self._remove(number, get_search_text(before))
            before = None
        if bullet.active:
            self.active[number] = bullet
            if before is None:
                self._add_words(number, get_search_text(bullet))

    def _add_words(self, number: int, text: str) -> None:
        found_terms = split_search_terms(text)
        for term, times in Counter(found_terms).items():
            self._postings.setdefault(term, {})[number] = times
        self._lengths[number] = len(found_terms)
        self._terms += len(found_terms)

    def _remove(self, number: int, text: str) -> None:
        for term in set(split_search_terms(text)):
            del self._postings[term][number]
        self._terms -= self._lengths.pop(number)
        del self.active[number]
        if self._rows.pop(number, None) is not None:
            self._nearest = None

    def without_vector(self, most: int | None) -> list[Bullet]:
        """Return the first `most` lessons that have no vector (None: all)."""
        lacking = (number for number in self.active if number not in self._rows)
        return [
            self.active[number] for number in (sorted(lacking) if most is None else nsmallest(most, lacking))
        ]

    def add_vector(self, bullet: str, packed: bytes, squared: int) -> None:
        """Set the packed vector of a lesson and the square of its length."""
        number = self._numbers[bullet]
        self._rows[number] = Row(number, packed, squared)
        self._nearest = None

    def forget_vectors_of_other_size(self, dimension: int) -> bool:
        """Remove the vectors that have another dimension; return whether there were any."""
        other = [number for number, row in self._rows.items() if len(row.packed) != 2 * dimension]
        for number in other:
            del self._rows[number]
            self._nearest = None
        return bool(other)

    def nearest(self, question: Vector, most: int, hidden: AbstractSet[int]) -> list[Ranked]:
        """Return the lessons nearest to a vector of the same dimension as theirs; equals by number."""
        if self._nearest is None or self._nearest.dimension != len(question):
            same_size = (row for _, row in sorted(self._rows.items()) if len(row.packed) == 2 * len(question))
            self._nearest = Nearest(len(question))
            self._nearest.add(same_size)
        return self._nearest.search(question, most, hidden)

    def by_words(self, question: str, most: int, hidden: AbstractSet[int]) -> list[Ranked]:
        """Return the lessons that share words with the question, by BM25 over the rarest of them."""
        counts = {
            term: len(self._postings.get(term, ())) for term in choose_terms(split_search_terms(question))
        }
        texts = len(self.active)
        usual = self._terms / texts if texts else 1.0
        scores: dict[int, float] = {}
        for term in limit_terms(counts):
            weight = math.log(1 + (texts - counts[term] + 0.5) / (counts[term] + 0.5)) * (K1 + 1)
            for number, times in self._postings[term].items():
                worth = weight * times / (times + K1 * (1 - B + B * self._lengths[number] / usual))
                scores[number] = scores.get(number, 0.0) + worth
        for number in hidden & scores.keys():
            del scores[number]
        least = min(nlargest(most, scores.values()), default=0.0)
        return take_best([Ranked(number, score) for number, score in scores.items() if score >= least], most)


def count_candidates(most: int) -> int:
    """Return the number of candidates of each list for the best `most` of both."""
    return max(WIDER * most, LEAST_WIDE)


def search(lessons: Lessons, question: Question, alpha: float) -> list[Scored]:
    """Return the best lessons, and more than requested; `alpha` is the weight of the vectors.

    Equally good lessons keep the order of their addition.
    """
    hidden = question.hidden
    listed = min(count_candidates(question.most), len(lessons.active) - len(hidden))
    if listed <= 0:
        return []
    words = lessons.by_words(question.text, listed, hidden)
    if question.vector is not None:
        return merge_scores(words, lessons.nearest(question.vector, listed, hidden), listed, alpha)
    if question.fill:
        others = lessons.active.keys() - hidden - {each.number for each in words}
        words += [Ranked(number, 0.0) for number in nsmallest(listed - len(words), others)]
    return merge_scores(words, None, listed, 0.0)


def merge_scores(
    words: Sequence[Ranked], vectors: Sequence[Ranked] | None, listed: int, alpha: float
) -> list[Scored]:
    """Merge both lists by one score (B3.2), best first.

    Each list has at most the best `listed` texts. Its scores are scaled to 0..1; equal scores become 0.5. A
    text that is missing in a list gets the list's last score, or 0 if fewer than `listed` texts have any of
    the words. `vectors` is None if there are none; then words decide alone.
    """
    by_word = _ScaledScores(words, 0.0 if len(words) < listed else words[-1].score)
    by_vector = _ScaledScores(vectors or (), vectors[-1].score if vectors else 0.0)
    scored: list[Scored] = []
    for number in {**by_word.scores, **by_vector.scores}:
        word = by_word.of(number)
        vector = by_vector.of(number) if vectors is not None else 0.0
        likeness = by_vector.scores.get(number)
        scored.append(Scored(number, vector, word, alpha * vector + (1 - alpha) * word, likeness))
    scored.sort(key=lambda each: (-each.combined, each.number))
    return scored


class _ScaledScores:
    """Scores of a list, scaled to 0..1."""

    def __init__(self, ranked: Sequence[Ranked], least: float) -> None:
        self.scores: Mapping[int, float] = {each.number: each.score for each in ranked}
        self._least = least
        self._span = ranked[0].score - least if ranked else 0.0

    def of(self, number: int) -> float:
        if self._span <= 0.0:
            return 0.5
        return (self.scores.get(number, self._least) - self._least) / self._span


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
