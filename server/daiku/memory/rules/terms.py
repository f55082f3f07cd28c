"""Search terms of a text, and fusion of word and vector scores in hybrid search."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from daiku.memory.rules.nearest import Ranked, take_best
from daiku.texts.rules.marks import without_mark_runs
from daiku.texts.rules.patterns import lazy

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


_CJK = "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_RUNS = lazy(rf"(?P<cjk>[{_CJK}]+)|(?P<word>(?:(?![{_CJK}])\w)+)")
_ASCII = lazy(r"\w+")
"""Words of an ASCII text: the other pattern takes milliseconds to compile."""
_PARTS = lazy(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
LONGEST_TERM = 64
"""Characters of a word that count: a longer one is a hash or a key."""
VERSION = 1
"""Incremented with every change of `split_terms`; stores then recompute their terms."""


def split_terms(text: str) -> list[str]:
    """Return the terms of `text`, in order and with repetitions.

    `parseJson_file` yields its parts and itself. Japanese and Chinese yield every pair of neighbors, or a
    single character.
    """
    return list(_split_cached(text))


@lru_cache(maxsize=16)
def _split_cached(text: str) -> tuple[str, ...]:
    """Return the cached terms of a text: vectors and indexes need the same ones."""
    return tuple(_split(unicodedata.normalize("NFKC", without_mark_runs(text))))


def _split(text: str) -> Iterator[str]:
    if text.isascii():
        for word in _ASCII.findall(text):
            yield from _split_word(word[:LONGEST_TERM])
        return
    for run in _RUNS.finditer(text):
        if (cjk := run["cjk"]) is not None:
            yield from (cjk[at : at + 2] for at in range(len(cjk) - 1)) if len(cjk) > 1 else (cjk,)
        else:
            yield from _split_word(run["word"][:LONGEST_TERM])


@lru_cache(maxsize=20_000)
def _split_word(word: str) -> tuple[str, ...]:
    """Return the parts of an identifier and the identifier as one word."""
    whole = word.replace("_", "").casefold()
    if not whole:
        return ()
    parts: list[str] = []
    if whole != word:
        parts = _PARTS.findall(word) if word.isascii() else [part for part in word.split("_") if part]
    return (*(part.casefold() for part in parts), whole) if len(parts) > 1 else (whole,)
