"""A playbook in a database, looked through by an index that is kept beside it and brought up to date when asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from daiku.core.playbook.ranking import InMemory, Searched
from daiku.core.retrieval.terms import VERSION
from daiku.domain.playbook import Bullet, SearchQuery
from daiku.playbook.index import tables
from daiku.playbook.index.snapshot import Snapshot, State
from daiku.playbook.index.source import Embedded
from daiku.playbook.index.taking import Change, Taking, change_of
from daiku.playbook.index.words import words_schema
from daiku.playbook.store import PlaybookStore
from daiku.store.database import marks

ALL = 1 << 40
NO_INDEX = State(0, 0, VERSION, 0, -1, 0, 0, 0, 0)


class _Behind(NamedTuple):
    """What an index has to take in so that it is of `revision`. `anew`: it begins from nothing. The changes that
    `lacking` names get vectors now."""

    state: State
    revision: int
    anew: bool
    changes: Sequence[Change]
    lacking: Sequence[Change]


class StoredSource:
    """The index of a playbook in its database. It equals the table whatever was ended when: it is changed within one
    transaction, knows of which revision it is, and takes in what came later before each search. `most`: so many
    vectors are asked for at a time (None: all); a bullet without one is found by its words."""

    def __init__(self, store: PlaybookStore, embedder: str, most: int | None) -> None:
        self._store, self._most = store, most
        self._name = (store.scope, store.key, embedder)
        self._db = store.database
        self._prepared = False
        self._state = NO_INDEX
        self._behind: _Behind | None = None
        self._dimension = 0
        self._snapshot: Snapshot | None = None

    def lacking(self) -> Sequence[str]:
        self._behind = self._look()
        return [] if self._behind is None else [each.text for each in self._behind.lacking]

    def take(self, made: Embedded | None) -> bool:
        behind = self._behind
        if behind is None:
            return True
        if made is not None:
            self._dimension = len(made.question)
            if not behind.anew and behind.state.dimension not in (0, self._dimension):
                return False  # another model under the same name: all vectors are to be made anew
        is_current = not behind.anew and behind.state.revision == behind.revision
        if is_current and (made is None or not behind.lacking):
            self._state = behind.state
            return True
        try:
            with self._db.transaction():
                state = State(*self._db.first(tables.TAKE, self._name))
                state = _taken(Taking(self._db, state), behind, made)
        except _ChangedMeanwhile:
            return False
        self._state = state
        return True

    def searched(self) -> Searched:
        if not self._state.id:
            return InMemory(())
        if self._snapshot is None or self._snapshot.state != self._state:
            self._snapshot = Snapshot(self._db, self._state, self._snapshot)
        return self._snapshot

    def holds(self) -> bool:
        found = self._db.first(tables.WRITES, (self._state.id,)) if self._state.id else None
        return found is None or found[0] == self._state.writes

    def hidden(self, query: SearchQuery, *, resting: bool) -> AbstractSet[int]:
        index, least, found = self._state.id, query.min_confidence, set[int]()
        if index and query.section_filter is not None:
            rows = self._db.query(tables.OTHER_SECTIONS, (index, query.section_filter))
            found.update(row[0] for row in rows)
        if index and not resting:
            sql = (
                tables.DOUBTFUL if least <= 0.5 else tables.RESTING
            )  # nothing is known of most: these have 0.5
            found.update(row[0] for row in self._db.query(sql, (index, least)))
        return found

    def bullets(self, numbers: Sequence[int]) -> Mapping[int, Bullet]:
        if not numbers:
            return {}
        rows = self._db.query(tables.IDS.format(marks(len(numbers))), (self._state.id, *numbers))
        known = self._store.bullets([bullet_id for _, bullet_id in rows])
        found = ((number, known.get(bullet_id)) for number, bullet_id in rows)
        return {number: bullet for number, bullet in found if bullet is not None and bullet.active}

    def _look(self) -> _Behind | None:
        """What the index has to take in; None where there is no playbook yet."""
        revision = self._store.revision()
        if not revision:
            return None
        if not self._prepared:
            self._db.prepare(tables.SCHEMA + words_schema(self._db))
            self._prepared = True
        row = self._db.first(tables.FIND, self._name)
        state = NO_INDEX if row is None else State(*row)
        anew = (
            state.version != VERSION
            or state.revision > revision  # the playbook was replaced by an older one
            or (state.dimension != 0 and self._dimension not in (0, state.dimension))
        )
        since, index = (0, 0) if anew else (state.revision, state.id)
        bullets = self._store.changed_since(since) if since < revision else ()
        changes = [change_of(each, self._db, index) for each in bullets]
        lacking = [each for each in changes if each.lacks_vector]
        lacking += self._waiting(index, {each.id for each in changes}) if index else []
        return _Behind(state, revision, anew, changes, lacking[: self._most])

    def _waiting(self, index: int, changed: AbstractSet[str]) -> list[Change]:
        """Bullets that the index knows without a vector, and that did not change."""
        rows = self._db.query(tables.WAITING, (index, self._most or ALL))
        names = [row[0] for row in rows if row[0] not in changed]
        found = self._store.bullets(names)
        return [change_of(found[name], self._db, index) for name in names if name in found]


class _ChangedMeanwhile(Exception):
    """Another process has written to the index."""


def _taken(taking: Taking, behind: _Behind, made: Embedded | None) -> State:
    """Take in what the index is behind by; how it is then. Raises _ChangedMeanwhile."""
    if taking.state.writes != behind.state.writes + 1:
        raise _ChangedMeanwhile
    if behind.anew:
        taking.begin_anew()
    vectors = {} if made is None else {each.id: v for each, v in zip(behind.lacking, made.texts, strict=True)}
    changes = {each.id: each for each in (*behind.changes, *behind.lacking)}
    taking.take(
        [(each, vectors.get(each.id)) for each in changes.values()],
        behind.revision,
        0 if made is None else len(made.question),
    )
    return taking.state
