"""A playbook as a value, looked through in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from daiku.core.playbook.ranking import Entry, InMemory, text_of
from daiku.core.retrieval.terms import terms
from daiku.core.retrieval.vectors import Vector
from daiku.domain.playbook import Bullet, Playbook, SearchQuery, confidence
from daiku.playbook.index.source import Embedded


class ValueSource:
    """A playbook as a value. The number of a bullet is its place."""

    def __init__(self, playbook: Playbook) -> None:
        self.playbook = playbook
        self._active = {number: each for number, each in enumerate(playbook.bullets) if each.active}
        self._texts = InMemory(())
        self._complete = False

    def lacking(self) -> Sequence[str]:
        return [] if self._complete else [text_of(each) for each in self._active.values()]

    def take(self, made: Embedded | None) -> bool:
        if not self._complete:
            vectors: Sequence[Vector | None] = [None] * len(self._active) if made is None else made.texts
            self._texts = InMemory(
                Entry(number, terms(text_of(each)), vector)
                for (number, each), vector in zip(self._active.items(), vectors, strict=True)
            )
            self._complete = made is not None  # if not, the next search tries again
        return True

    def holds(self) -> bool:
        return True

    def searched(self) -> InMemory:
        return self._texts

    def hidden(self, query: SearchQuery, *, resting: bool) -> AbstractSet[int]:
        section, least = query.section_filter, 0.0 if resting else query.min_confidence
        return {
            number
            for number, each in self._active.items()
            if (section is not None and each.section != section) or confidence(each) < least
        }

    def bullets(self, numbers: Sequence[int]) -> Mapping[int, Bullet]:
        return {number: self._active[number] for number in numbers}
