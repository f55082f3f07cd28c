"""Search by words and by vectors together: which words to look for, and one score from two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from daiku.memory.rules.nearest import Ranked, in_order

MOST_TERMS = 48
"""Terms of a question that are looked for."""
WORTH = 2_000
"""Texts that are looked at by words: the rarest terms first, until theirs come to so many."""


def terms_worth(counts: Mapping[str, int]) -> list[str]:
    """The terms to look for, the rarest first; `counts` says how many texts have each. Common words find everything
    and tell nothing: behind the rarest they are left out where they alone would make the search slow."""
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


def asked_terms(found: Iterable[str]) -> list[str]:
    """The different terms of a question, as many as are looked for: the longest."""
    return sorted(dict.fromkeys(found), key=lambda term: -len(term))[:MOST_TERMS]


def fused(words: Sequence[Ranked], vectors: Sequence[Ranked], alpha: float, most: int) -> list[Ranked]:
    """The best of both lists by one score from 0 to 1: each list is stretched to that range by its least and
    greatest score, `alpha` is the weight of the vectors. What is on one list only has 0 on the other."""
    by_words, by_vectors = _stretched(words), _stretched(vectors)
    return in_order(
        (
            Ranked(number, alpha * by_vectors.get(number, 0.0) + (1 - alpha) * by_words.get(number, 0.0))
            for number in {**by_words, **by_vectors}
        ),
        most,
    )


def _stretched(found: Sequence[Ranked]) -> dict[int, float]:
    if not found:
        return {}
    scores = [each.score for each in found]
    low, span = min(scores), max(scores) - min(scores)
    return {each.number: (each.score - low) / span if span else 1.0 for each in found}
