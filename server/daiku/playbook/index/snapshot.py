"""An index as it is at one moment: what is filed by words and in blocks, and what is looked through one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from daiku.core.playbook.ranking import Entry, InMemory, Posting
from daiku.core.retrieval.nearest import Ranked, in_order, nearest_in
from daiku.core.retrieval.vectors import Vector, unpack
from daiku.playbook.index import tables
from daiku.playbook.index.blocks import BLOCK, Kept, read_blocks, read_columns
from daiku.playbook.index.words import words_of
from daiku.store.database import Database


class State(NamedTuple):
    """What an index says of itself."""

    id: int
    revision: int
    version: int
    dimension: int
    last: int
    """The highest number of a bullet."""
    texts: int
    terms: int
    """How many bullets are active, and how many terms they have."""
    fresh: int
    writes: int


class Snapshot:
    """The texts of an index, as long as nobody writes to it. `before`: an earlier one, whose blocks are read already."""

    def __init__(self, db: Database, state: State, before: Snapshot | None) -> None:
        self._db, self.state = db, state
        self._words = words_of(db, state.id)
        rows = db.query(tables.FRESH, (state.id,)) if state.fresh else []
        self._fresh = InMemory(
            Entry(number, said.split(), None if vector is None else unpack(vector))
            for number, active, said, _, vector in rows
            if active
        )
        self._beside = frozenset(row[0] for row in rows)
        """Of these the filed words and vectors hold no longer."""
        self._outdated = Counter(term for row in rows if row[3] for term in set(row[3].split()))
        self._blocks = read_blocks(db, state.id, before.blocks(state.id) if before is not None else {})
        self._lengths = {number: kept.lengths for number, kept in self._blocks.items()}
        self._counts: dict[str, int] = {}

    def blocks(self, index: int) -> dict[int, Kept]:
        """The blocks that were read of this index."""
        return self._blocks if self.state.id == index else {}

    @property
    def texts(self) -> int:
        return self.state.texts

    @property
    def terms(self) -> int:
        return self.state.terms

    def count(self, term: str) -> int:
        if (known := self._counts.get(term)) is None:
            filed = self._words.count(term) - self._outdated[term] if self._blocks else 0
            known = self._counts[term] = filed + self._fresh.count(term)
        return known

    def postings(self, term: str) -> Iterable[Posting]:
        if not self._blocks:
            return self._fresh.postings(term)
        beside, lengths = self._beside, self._lengths
        filed = [
            (number, times, lengths[number // BLOCK][number % BLOCK])
            for number, times in self._words.having(term)
            if number not in beside
        ]
        return [*filed, *self._fresh.postings(term)]

    def nearest(self, question: Vector, most: int, hidden: AbstractSet[int]) -> list[Ranked]:
        if len(question) != self.state.dimension:
            return []
        read_columns(self._db, self.state.id, self._blocks, question)
        blocks = [kept.block for kept in self._blocks.values()]
        filed = nearest_in(blocks, question, most, hidden | self._beside)
        return in_order((*filed, *self._fresh.nearest(question, most, hidden)), most)
