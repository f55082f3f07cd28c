"""Which bullets fit a question: by words (BM25) and by vectors, each stretched to 0..1, weighted by alpha."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import nlargest
from typing import NamedTuple, Protocol, TypeAlias

from daiku.core.retrieval.fuse import asked_terms, terms_worth
from daiku.core.retrieval.nearest import Nearest, Ranked, Row, in_order
from daiku.core.retrieval.terms import terms
from daiku.core.retrieval.vectors import Vector, pack, squared_length
from daiku.domain.playbook import Bullet

K1, B = 1.2, 0.75
"""BM25's own two numbers: how much a repeated word counts, and how much a long text loses."""
MOST_COMMON = 5_000
"""A word that more texts have is not looked for: it finds everything and tells nothing."""
WIDER = 4
"""Of each list so many times more than what is asked for: what is good on both is not the best on either."""
LEAST_WIDE = 40
_GAP = "  "
"""Between the terms of a text as one string: each can then be counted with a space on both sides."""


Posting: TypeAlias = tuple[int, int, int]
"""A text that has a term: its number, how often it has it, and how many terms it has in all."""


class Scored(NamedTuple):
    """A text by its number, and how well it fits by vectors, by words and together, each from 0 to 1; `likeness` is the
    cosine itself, None where the text is not among the nearest."""

    number: int
    vector: float
    words: float
    combined: float
    likeness: float | None = None


class Searched(Protocol):
    """The texts that are looked through. Their numbers rise in the order in which they were added."""

    @property
    def texts(self) -> int:
        """How many there are."""
        ...

    @property
    def terms(self) -> int:
        """How many terms they have in all."""
        ...

    def count(self, term: str) -> int:
        """How many texts have a term."""
        ...

    def postings(self, term: str) -> Iterable[Posting]:
        """The texts that have a term."""
        ...

    def nearest(self, question: Vector, most: int, hidden: AbstractSet[int]) -> list[Ranked]:
        """The texts nearest to a vector, without those that are hidden; equals by their number."""
        ...


class Question(NamedTuple):
    """What is looked for: its text, its vector (None: by words alone), how many, without which."""

    text: str
    vector: Vector | None
    most: int
    hidden: AbstractSet[int] = frozenset()


def text_of(bullet: Bullet) -> str:
    """B3.1: what a bullet is found by."""
    return " ".join((bullet.content, *bullet.keywords))


def wide(most: int) -> int:
    """How many of each list are looked at for the best `most` of both."""
    return max(WIDER * most, LEAST_WIDE)


def search(searched: Searched, question: Question, alpha: float) -> list[Scored]:
    """The texts that fit best, `alpha` the weight of the vectors: more than are asked for, for whoever leaves some out.
    Where nothing tells them apart the first come first."""
    listed = min(wide(question.most), searched.texts - len(question.hidden))
    if listed <= 0:
        return []
    words = by_words(searched, question, listed)
    if question.vector is None:
        return combined(words, None, listed, 0.0)
    vectors = searched.nearest(question.vector, listed, question.hidden)
    return combined(words, vectors, listed, alpha)


def by_words(searched: Searched, question: Question, most: int) -> list[Ranked]:
    """The texts that share words with the question, by BM25 over the rarest of them."""
    counts = {term: searched.count(term) for term in asked_terms(terms(question.text))}
    chosen = terms_worth({term: count for term, count in counts.items() if count <= MOST_COMMON})
    usual = searched.terms / searched.texts if searched.texts else 1.0
    scores: dict[int, float] = {}
    for term in chosen:
        weight = math.log(1 + (searched.texts - counts[term] + 0.5) / (counts[term] + 0.5)) * (K1 + 1)
        for number, times, length in searched.postings(term):
            worth = weight * times / (times + K1 * (1 - B + B * length / usual))
            scores[number] = scores.get(number, 0.0) + worth
    for number in question.hidden & scores.keys():
        del scores[number]
    least = min(nlargest(most, scores.values()), default=0.0)
    return in_order([Ranked(number, score) for number, score in scores.items() if score >= least], most)


def combined(
    words: Sequence[Ranked], vectors: Sequence[Ranked] | None, listed: int, alpha: float
) -> list[Scored]:
    """What is on both lists by one score (B3.2), the best first. A list has at most the best `listed` texts; each is stretched from
    its last to its first, equal scores are all 0.5. What is on one list only counts as the last of the other; by words
    that is 0 where fewer than `listed` texts have any of them. None: there are no vectors, and words decide alone."""
    by_word = _Stretched(words, 0.0 if len(words) < listed else words[-1].score)
    by_vector = _Stretched(vectors or (), vectors[-1].score if vectors else 0.0)
    found: list[Scored] = []
    for number in {**by_word.scores, **by_vector.scores}:
        word = by_word.of(number)
        vector = by_vector.of(number) if vectors is not None else 0.0
        likeness = by_vector.scores.get(number)
        found.append(Scored(number, vector, word, alpha * vector + (1 - alpha) * word, likeness))
    found.sort(key=lambda each: (-each.combined, each.number))
    return found


class _Stretched:
    """Scores between the least and the greatest of a list."""

    def __init__(self, found: Sequence[Ranked], least: float) -> None:
        self.scores: Mapping[int, float] = {each.number: each.score for each in found}
        self._least = least
        self._span = found[0].score - least if found else 0.0

    def of(self, number: int) -> float:
        if self._span <= 0.0:
            return 0.5
        return (self.scores.get(number, self._least) - self._least) / self._span


class Entry(NamedTuple):
    """A text to be looked through: its number, its terms, its vector where it has one."""

    number: int
    terms: Sequence[str]
    vector: Vector | None


class InMemory:
    """Texts that are looked through where they are: a playbook as a value, or what an index has not taken in yet."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._said: dict[int, tuple[str, int]] = {}
        self._nearest: dict[int, Nearest] = {}
        self.terms = 0
        for number, said, vector in entries:
            self._said[number] = (f" {_GAP.join(said)} ", len(said))
            self.terms += len(said)
            if vector is not None:
                near = self._nearest.setdefault(len(vector), Nearest(len(vector)))
                near.add([Row(number, pack(vector), squared_length(vector))])

    @property
    def texts(self) -> int:
        return len(self._said)

    def count(self, term: str) -> int:
        framed = f" {term} "
        return sum([framed in said for said, _ in self._said.values()])

    def postings(self, term: str) -> Iterable[Posting]:
        framed = f" {term} "
        return [
            (number, said.count(framed), length)
            for number, (said, length) in self._said.items()
            if framed in said
        ]

    def nearest(self, question: Vector, most: int, hidden: AbstractSet[int]) -> list[Ranked]:
        """Vectors of another dimension are of another embedder: they are never compared."""
        near = self._nearest.get(len(question))
        return near.search(question, most, hidden) if near is not None else []
