"""Whether two lessons say the same, and whether one contradicts the other: on top of a measure of likeness that is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from daiku.core.playbook.lessons.proposal import code_spans
from daiku.core.retrieval.terms import terms
from daiku.core.text.patterns import lazy

Alike = Callable[[str, str], bool]
"""Whether two texts are near duplicates, by whatever measures them."""
_NEGATIONS = lazy(
    r"\b(?:not|no|never|none|without|avoid|cannot|neither|nor|don'?t|doesn'?t|isn'?t|won'?t|can'?t|mustn'?t|shouldn'?t|stop|fails?|instead)\b"
    r"|ない|なく|なし|せず|ません|ずに|禁止|やめ|避け|ではな|じゃな|不要"
)
_NUMBERS = lazy(r"\d+(?:\.\d+)*")
_MARKS = lazy(r"[\s.,;:!?。、！？；：\"'`]+")


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
