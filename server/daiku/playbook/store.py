"""The store of a playbook: bullets, changes of them that are logged and can be undone, and what runs showed of each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from daiku.domain.chunks import iso_now
from daiku.domain.playbook import Bullet, Delta, DeltaStatus, Observation, Playbook, PlaybookScope
from daiku.playbook import counting, tables
from daiku.playbook.changing import Changing
from daiku.playbook.rows import StoredVector, delta_of, standing_of
from daiku.playbook.rules.changes import Standings
from daiku.playbook.rules.refused import Refused
from daiku.playbook.rules.sections import id_parts
from daiku.store.database import MOST_MARKS, Database

T = TypeVar("T")


class PlaybookStore:
    """One playbook: that of a repository (`key` names it) or of a person. Several processes may use it at once; each
    change is one transaction. Methods raise DaikuError where the database fails."""

    def __init__(self, database: Database, scope: PlaybookScope, key: str) -> None:
        self.scope: PlaybookScope = scope
        self.key = key
        self._database = database
        self._prepared = False

    @property
    def database(self) -> Database:
        """The database that contains the playbook."""
        return self._db()

    def load(self) -> Playbook:
        """R3.2, B3.1: all bullets in the order of their adding, inactive ones too; an empty playbook where there is
        none yet."""
        db = self._db()
        found = db.first(tables.FIND, (self.scope, self.key))
        if found is None:
            return Playbook()
        bullets = tuple(standing_of(row).bullet for row in db.query(tables.BULLETS, (found[0],)))
        return Playbook(bullets=bullets, created_at=found[2], updated_at=found[3])

    def get(self, bullet: str) -> Bullet | None:
        """The bullet of this id, also an inactive one; None where there is none."""
        return self.bullets((bullet,)).get(bullet)

    def bullets(self, ids: Sequence[str]) -> Mapping[str, Bullet]:
        """The bullets of these ids, also inactive ones, as far as they are here."""
        return {bullet: stands.bullet for bullet, stands in self._standings(ids).items()}

    def versions(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The versions of the texts of these bullets, as far as they are here."""
        return {bullet: stands.version for bullet, stands in self._standings(ids).items()}

    def general(self, sections: Collection[str], most: int, least: float) -> tuple[Bullet, ...]:
        """The active bullets of these sections, of those whose lessons hold whatever is asked, that are no less sure than
        `least`: those that helped most first, then the oldest."""
        playbook = self._id()
        if playbook is None:
            return ()
        three = (*sections, "", "")[:3]
        rows = self._database.query(tables.GENERAL, (playbook, *three, least, most))
        return tuple(standing_of(row).bullet for row in rows)

    def propose(self, delta: Delta) -> Delta:
        """Keep a change until a person decides on it; the result has its id. A text that is too long for a bullet is
        kept too: it can be accepted with a shorter one."""
        made = self._change(lambda playbook: playbook.propose(delta))
        assert not isinstance(made, Refused)
        return made

    def apply(self, delta: Delta) -> Delta | Refused:
        """Carry out a change; what is refused has changed nothing.

        The result has the id of the change and of the bullet that it is of, and all that it touched `before` and `after`. An
        `add` that is an import may name the id that its bullet had elsewhere, and hand in as `after` what it brings
        (counters, times, whether it is active): the id stays unless it was given here before."""
        return self._change(lambda playbook: playbook.apply(delta))

    def accept(self, delta_id: str, content: str | None = None) -> Delta | Refused:
        """Carry out a change that waits or was rejected; `content`: with this text, as a person edited it."""
        return self._change(lambda playbook: playbook.accept(delta_id, content))

    def reject(self, delta_id: str) -> Delta | Refused:
        """A change that waits is not wanted."""
        return self._change(lambda playbook: playbook.reject(delta_id))

    def undo(self, delta_id: str) -> Delta | Refused:
        """Take any applied change back: what it changed is as before, whatever came later stays. Refused where a later
        one, which holds still, changed the same once more: that one is to be undone first. One that was rejected waits
        again."""
        return self._change(lambda playbook: playbook.undo(delta_id))

    def deltas(self, *statuses: DeltaStatus) -> tuple[Delta, ...]:
        """Changes of these statuses, of all where none is named, in the order of their coming."""
        playbook = self._id()
        if playbook is None:
            return ()
        sql = tables.UNAPPLIED if statuses and "applied" not in statuses else tables.DELTAS
        rows = self._database.query(sql, (playbook,))
        return tuple(delta_of(data) for data, status in rows if not statuses or status in statuses)

    def history(self, bullet: str) -> tuple[Delta, ...]:
        """All changes of a bullet, those that took it in and those that wait too, in the order in which they were applied."""
        if id_parts(bullet, self.scope) is None or (playbook := self._id()) is None:
            return ()
        rows = self._database.query(tables.HISTORY, (playbook, *(playbook, bullet) * 3))
        return tuple(delta_of(row[0]) for row in rows)

    def observe(self, observations: Sequence[Observation]) -> None:
        """Keep what runs showed: of a run and a bullet the last one counts. Of bullets that are not in this playbook
        nothing is kept. One that does not say of which version it is is of the present one."""
        here = self._standings([seen.bullet for seen in observations])
        last = {(seen.run, seen.bullet): seen for seen in observations if seen.bullet in here}
        new: list[Observation] = []
        for seen in last.values():
            known = self.observations(run=seen.run, bullet=seen.bullet)
            versions = (seen.version, *(each.version for each in known), here[seen.bullet].version)
            kept = seen.model_copy(update={"version": next(filter(None, versions))})
            if known != (kept,):
                new.append(kept)
        if new:
            self._change(lambda playbook: playbook.observe(tuple(new)))

    def counts(self, seen: Observation) -> bool:
        """Whether what a run showed was about what the bullet says now: else nothing is counted by it."""
        playbook, stands = self._id(), self._standings((seen.bullet,)).get(seen.bullet)
        if playbook is None or stands is None:
            return False
        then, now = (
            counting.meaning(self._database, playbook, seen.bullet, version)
            for version in (seen.version, stands.version)
        )
        return then == now

    def observations(self, *, run: str = "", bullet: str = "") -> tuple[Observation, ...]:
        """What is known of a run, of a bullet, of both, or of all."""
        playbook = self._id()
        return () if playbook is None else counting.observations(self._database, playbook, run, bullet)

    def revision(self) -> int:
        """A number that rises with each change; 0 where there was none yet."""
        found = self._db().first(tables.FIND, (self.scope, self.key))
        return 0 if found is None else int(found[1])

    def changed_since(self, revision: int) -> tuple[Bullet, ...]:
        """The bullets that were changed after this revision, as they are now, in the order of their adding. One whose
        adding was undone is among them, and inactive."""
        playbook = self._id()
        if playbook is None:
            return ()
        rows = self._database.query(tables.CHANGED, (playbook, revision))
        return tuple(standing_of(row).bullet for row in rows)

    def vectors(self, embedder: str) -> list[StoredVector]:
        """Return the stored vectors that an embedder made of bullets."""
        playbook = self._id()
        if playbook is None:
            return []
        rows = self._database.query(tables.VECTORS, (playbook, embedder))
        return [StoredVector(*row) for row in rows]

    def store_vectors(self, embedder: str, vectors: Sequence[StoredVector]) -> None:
        """Store vectors that an embedder made of bullets, in place of earlier ones of the same bullets."""
        playbook = self._id()
        if playbook is not None:
            with self._database.transaction():
                self._database.write_all(tables.PUT_VECTOR, [(playbook, embedder, *each) for each in vectors])

    def _db(self) -> Database:
        if not self._prepared:
            self._database.prepare(tables.SCHEMA)
            self._prepared = True
        return self._database

    def _id(self) -> int | None:
        found = self._db().first(tables.FIND, (self.scope, self.key))
        return None if found is None else int(found[0])

    def _standings(self, ids: Sequence[str]) -> Standings:
        """The bullets of these ids, as far as they are here."""
        known = [each for each in dict.fromkeys(ids) if id_parts(each, self.scope) is not None]
        playbook = self._id() if known else None
        if playbook is None:
            return {}
        parts = (known[start : start + MOST_MARKS] for start in range(0, len(known), MOST_MARKS))
        asked = ((tables.bullets_of(len(part)), (playbook, *part)) for part in parts)
        found = (standing_of(row) for sql, values in asked for row in self._database.query(sql, values))
        return {stands.bullet.id: stands for stands in found if not stands.gone}

    def _change(self, act: Callable[[Changing], T]) -> T | Refused:
        """Carry out `act` in one transaction, of which nothing stays where it refuses or fails."""
        db = self._db()
        now = iso_now()
        try:
            with db.transaction():
                playbook, revision = db.first(tables.TAKE_REVISION, (self.scope, self.key, now, now))
                return _done(act(Changing(db, self.scope, int(playbook), int(revision), now)))
        except _NothingDone as wrong:
            return wrong.refused


def _done(result: T | Refused) -> T:
    if isinstance(result, Refused):
        raise _NothingDone(result)
    return result


class _NothingDone(Exception):
    """Ends a transaction that a refusal was found in."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.message)
        self.refused = refused
