"""Brings an index up to date: each changed bullet as it is now; from time to time those that are fresh are filed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from daiku.core.playbook.ranking import text_of
from daiku.core.retrieval.terms import VERSION, terms
from daiku.core.retrieval.vectors import Vector, pack, squared_length
from daiku.domain.playbook import Bullet, confidence
from daiku.playbook.index import tables
from daiku.playbook.index.blocks import BLOCK, Member, write_block
from daiku.playbook.index.snapshot import State
from daiku.playbook.index.words import Filed, Words, words_of
from daiku.store.database import Database

MOST_FRESH = 256
"""Bullets that are looked through one by one: few enough to be read by each new process."""


class Known(NamedTuple):
    """How a bullet stands in the index."""

    number: int
    digest: str
    section: str
    confidence: float
    active: int
    length: int
    fresh: int
    said: str
    filed: str
    squared: int
    vector: bytes | None


class Change(NamedTuple):
    """A bullet as it is now, and how the index knows it."""

    id: str
    section: str
    confidence: float
    active: bool
    text: str
    digest: str
    """What tells two texts apart."""
    known: Known | None

    @property
    def is_said_anew(self) -> bool:
        """Whether the index does not know the text."""
        return self.known is None or self.known.digest != self.digest

    @property
    def lacks_vector(self) -> bool:
        """Whether it is to be found by a vector that the index has not."""
        return self.active and (self.known is None or self.known.vector is None or self.is_said_anew)


def change_of(bullet: Bullet, db: Database, index: int) -> Change:
    """A bullet as a change of an index; 0: one that holds nothing."""
    known = db.first(tables.KNOWN, (index, bullet.id)) if index else None
    said = text_of(bullet)
    return Change(
        bullet.id,
        bullet.section,
        confidence(bullet),
        bullet.active,
        said,
        hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:24],
        None if known is None else Known(*known),
    )


class Taking:
    """The taking in of changes, within the transaction of which `state` is the beginning."""

    def __init__(self, db: Database, state: State) -> None:
        self._db, self.state = db, state
        self._words: Words = words_of(db, state.id)

    def begin_anew(self) -> None:
        """Forget all that the index holds."""
        rows = self._db.query(tables.ALL_FILED, (self.state.id,))
        self._words.remove([Filed(*row) for row in rows])
        for statement in tables.EMPTY:
            self._db.write(statement, (self.state.id,))
        self.state = self.state._replace(revision=0, dimension=0, last=-1, texts=0, terms=0, fresh=0)

    def take(self, changes: Sequence[tuple[Change, Vector | None]], revision: int, dimension: int) -> None:
        """Take in the changes with the vectors that were made for them; the index is then of this revision."""
        rows = [self._row(change, vector) for change, vector in changes]
        self._db.write_all(tables.PUT, rows)
        self.state = self.state._replace(
            revision=revision, version=VERSION, dimension=dimension or self.state.dimension
        )
        if self.state.fresh > MOST_FRESH:
            self._file()
        s = self.state
        self._db.write(
            tables.SET, (s.revision, s.version, s.dimension, s.last, s.texts, s.terms, s.fresh, s.id)
        )

    def _row(self, change: Change, vector: Vector | None) -> tuple[Any, ...]:
        known, state = change.known, self.state
        anew = known is None or change.is_said_anew
        if known is None or anew:
            found = terms(change.text)
            said, length = " ".join(found), len(found)
        else:
            said, length = known.said, known.length
        packed = pack(vector) if vector is not None else None if known is None or anew else known.vector
        squared = (
            squared_length(vector) if vector is not None else 0 if known is None or anew else known.squared
        )
        is_fresh = anew or vector is not None or known is None or known.active != change.active
        was = (known.active, known.active * known.length, known.fresh) if known is not None else (0, 0, 0)
        fresh = 1 if is_fresh else was[2]
        number = state.last + 1 if known is None else known.number
        self.state = state._replace(
            last=max(state.last, number),
            texts=state.texts + change.active - was[0],
            terms=state.terms + change.active * length - was[1],
            fresh=state.fresh + fresh - was[2],
        )
        return (
            *(state.id, number, change.id, change.digest, change.section, change.confidence),
            *(int(change.active), length, fresh, said, "", squared, packed),
        )

    def _file(self) -> None:
        """File fresh bullets, those of the blocks first that have the most of them, until few are left."""
        index, left = self.state.id, self.state.fresh
        fresh = Counter(row[0] // BLOCK for row in self._db.query(tables.FRESH, (index,)))
        for block, count in fresh.most_common():
            if left <= MOST_FRESH // 2:
                break
            self._file_block(block)
            left -= count
        self.state = self.state._replace(fresh=left)

    def _file_block(self, block: int) -> None:
        place = (self.state.id, block * BLOCK, (block + 1) * BLOCK)
        rows = self._db.query(tables.BLOCK, place)
        new = [
            (number, said if active else "", filed)
            for number, active, _, fresh, said, filed, *_ in rows
            if fresh
        ]
        self._words.remove([Filed(number, filed) for number, said, filed in new if filed and filed != said])
        self._words.add([Filed(number, said) for number, said, filed in new if said and said != filed])
        members = [
            Member(number, length, squared, vector if active else None)
            for number, active, length, _, _, _, squared, vector in rows
        ]
        write_block(self._db, self.state.id, block, self.state.writes, members, self.state.dimension)
        self._db.write(tables.FILED, place)
