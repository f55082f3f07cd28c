"""Hybrid search: selection of terms, and fusion of word and vector scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from daiku.memory.rules.nearest import Ranked, take_best

MOST_TERMS = 48
"""Maximum number of terms of a question."""
WORTH = 2_000
"""Maximum number of texts matched by words, rarest terms first."""


def limit_terms(counts: Mapping[str, int]) -> list[str]:
    """Return the terms to search for, rarest first; `counts` is the number of texts with each.

    Common terms match everything and say nothing, so they are dropped after the rarest if they would make the
    search slow.
    """
    chosen: list[str] = []
    total = 0
    for term in sorted(
        (term for term, count in counts.items() if count), key=lambda term: (counts[term], term)
    ):
        total += counts[term]
        if chosen and total > WORTH:
            break
        chosen.append(term)
    return chosen


def choose_terms(question_terms: Iterable[str]) -> list[str]:
    """Return the distinct terms of a question, the longest ones if there are too many."""
    return sorted(dict.fromkeys(question_terms), key=lambda term: -len(term))[:MOST_TERMS]


def fuse_scores(words: Sequence[Ranked], vectors: Sequence[Ranked], alpha: float, most: int) -> list[Ranked]:
    """Merge both lists by one score from 0 to 1.

    The scores of each list are scaled to that range, `alpha` is the weight of the vectors. A missing row
    scores 0.
    """
    by_words, by_vectors = _scale(words), _scale(vectors)
    return take_best(
        (
            Ranked(number, alpha * by_vectors.get(number, 0.0) + (1 - alpha) * by_words.get(number, 0.0))
            for number in {**by_words, **by_vectors}
        ),
        most,
    )


def _scale(ranked: Sequence[Ranked]) -> dict[int, float]:
    if not ranked:
        return {}
    scores = [each.score for each in ranked]
    low, span = min(scores), max(scores) - min(scores)
    return {each.number: (each.score - low) / span if span else 1.0 for each in ranked}
