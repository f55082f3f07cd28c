"""The store of a playbook: bullets, logged changes that can be undone, and observations of runs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from daiku.domain.chunks import iso_now
from daiku.domain.playbook import Bullet, Delta, DeltaStatus, Observation, Playbook, PlaybookScope
from daiku.playbook import changing, tables
from daiku.playbook.rules.changes import BulletStates, ChangeRefusal
from daiku.playbook.rules.sections import parse_bullet_id
from daiku.playbook.tables import StoredVector, parse_delta, read_state
from daiku.store.database import MOST_MARKS, Database

T = TypeVar("T")


class PlaybookStore:
    """The playbook of a repository, identified by `key`, or of a person.

    Several processes may use it; each change is one transaction. Methods raise DaikuError if it fails.
    """

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
        """Return all bullets in the order of their addition, inactive ones too (R3.2, B3.1)."""
        db = self._db()
        found = db.first(tables.FIND, (self.scope, self.key))
        if found is None:
            return Playbook()
        bullets = tuple(read_state(row).bullet for row in db.query(tables.BULLETS, (found[0],)))
        return Playbook(bullets=bullets, created_at=found[2], updated_at=found[3])

    def get(self, bullet: str) -> Bullet | None:
        """Return the bullet with this id, active or not; None if there is none."""
        return self.bullets((bullet,)).get(bullet)

    def bullets(self, ids: Sequence[str]) -> Mapping[str, Bullet]:
        """Return the existing bullets with these ids, active or not."""
        return {bullet: state.bullet for bullet, state in self._load_states(ids).items()}

    def versions(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return the text versions of the existing bullets with these ids."""
        return {bullet: state.version for bullet, state in self._load_states(ids).items()}

    def general(self, sections: Collection[str], most: int, least: float) -> tuple[Bullet, ...]:
        """Return active bullets of general `sections` with at least the confidence `least`.

        Those that helped most come first, then the oldest.
        """
        playbook = self._id()
        if playbook is None:
            return ()
        padded = (*sections, "", "")[:3]
        rows = self._database.query(tables.GENERAL, (playbook, *padded, least, most))
        return tuple(read_state(row).bullet for row in rows)

    def propose(self, delta: Delta) -> Delta:
        """Store a pending change; return it with its id.

        A text that is too long for a bullet is stored too: it can be accepted with a shorter one.
        """
        proposed = self._change(lambda playbook: playbook.propose(delta))
        assert not isinstance(proposed, ChangeRefusal)
        return proposed

    def apply(self, delta: Delta) -> Delta | ChangeRefusal:
        """Apply a change; a refusal has changed nothing.

        The result has the ids of the change and of its bullet, and all that it touched as `before` and
        `after`. An `add` from an import may pass an id and, as `after`, a bullet with counters, times, and
        whether it is active. The id is kept unless it was assigned here before.
        """
        return self._change(lambda playbook: playbook.apply(delta))

    def accept(self, delta_id: str, content: str | None = None) -> Delta | ChangeRefusal:
        """Apply a pending or rejected change; `content` is the text as the user edited it."""
        return self._change(lambda playbook: playbook.accept(delta_id, content))

    def reject(self, delta_id: str) -> Delta | ChangeRefusal:
        """Reject a pending change."""
        return self._change(lambda playbook: playbook.reject(delta_id))

    def undo(self, delta_id: str) -> Delta | ChangeRefusal:
        """Undo an applied change; later changes of other fields stay. A rejected change becomes pending.

        Refused if a later change that is still applied set the same field: undo that one first.
        """
        return self._change(lambda playbook: playbook.undo(delta_id))

    def deltas(self, *statuses: DeltaStatus) -> tuple[Delta, ...]:
        """Return the changes with these statuses (none: all), in the order of their creation."""
        playbook = self._id()
        if playbook is None:
            return ()
        sql = tables.UNAPPLIED if statuses and "applied" not in statuses else tables.DELTAS
        rows = self._database.query(sql, (playbook,))
        return tuple(parse_delta(data) for data, status in rows if not statuses or status in statuses)

    def history(self, bullet: str) -> tuple[Delta, ...]:
        """Return all changes of a bullet in the order of application, also merges into others."""
        if parse_bullet_id(bullet, self.scope) is None or (playbook := self._id()) is None:
            return ()
        rows = self._database.query(tables.HISTORY, (playbook, *(playbook, bullet) * 3))
        return tuple(parse_delta(row[0]) for row in rows)

    def observe(self, observations: Sequence[Observation]) -> None:
        """Save observations of bullets in this playbook; the last one of a run and a bullet counts.

        An observation without a version is one of the current version.
        """
        states = self._load_states([observation.bullet for observation in observations])
        last = {
            (observation.run, observation.bullet): observation
            for observation in observations
            if observation.bullet in states
        }
        new: list[Observation] = []
        for observation in last.values():
            stored = self.observations(run=observation.run, bullet=observation.bullet)
            versions = (
                observation.version,
                *(each.version for each in stored),
                states[observation.bullet].version,
            )
            complete = observation.model_copy(update={"version": next(filter(None, versions))})
            if stored != (complete,):
                new.append(complete)
        if new:
            self._change(lambda playbook: playbook.observe(tuple(new)))

    def is_counted(self, observation: Observation) -> bool:
        """Return True if the observation was about the current meaning of the bullet."""
        playbook, state = self._id(), self._load_states((observation.bullet,)).get(observation.bullet)
        if playbook is None or state is None:
            return False
        then, now = (
            changing.get_meaning(self._database, playbook, observation.bullet, version)
            for version in (observation.version, state.version)
        )
        return then == now

    def observations(self, *, run: str = "", bullet: str = "") -> tuple[Observation, ...]:
        """Return the observations of a run, of a bullet, of both, or all."""
        playbook = self._id()
        return () if playbook is None else changing.list_observations(self._database, playbook, run, bullet)

    def revision(self) -> int:
        """Return the revision of the playbook, which increases with each change; 0 without any."""
        found = self._db().first(tables.FIND, (self.scope, self.key))
        return 0 if found is None else int(found[1])

    def changed_since(self, revision: int) -> tuple[Bullet, ...]:
        """Return the bullets changed after this revision, by addition; deleted ones are inactive."""
        playbook = self._id()
        if playbook is None:
            return ()
        rows = self._database.query(tables.CHANGED, (playbook, revision))
        return tuple(read_state(row).bullet for row in rows)

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

    def _load_states(self, ids: Sequence[str]) -> BulletStates:
        """Return the states of the existing bullets with these ids."""
        valid = [each for each in dict.fromkeys(ids) if parse_bullet_id(each, self.scope) is not None]
        playbook = self._id() if valid else None
        if playbook is None:
            return {}
        parts = (valid[start : start + MOST_MARKS] for start in range(0, len(valid), MOST_MARKS))
        queries = ((tables.build_bullets_query(len(part)), (playbook, *part)) for part in parts)
        states = (read_state(row) for sql, values in queries for row in self._database.query(sql, values))
        return {state.bullet.id: state for state in states if not state.is_deleted}

    def _change(self, act: Callable[[changing.PlaybookTransaction], T]) -> T | ChangeRefusal:
        """Run `act` in one transaction, which is rolled back if it refuses or fails."""
        db = self._db()
        now = iso_now()
        try:
            with db.transaction():
                playbook, revision = db.first(tables.TAKE_REVISION, (self.scope, self.key, now, now))
                return _raise_refusal(
                    act(changing.PlaybookTransaction(db, self.scope, int(playbook), int(revision), now))
                )
        except _RollBack as rollback:
            return rollback.refusal


def _raise_refusal(result: T | ChangeRefusal) -> T:
    if isinstance(result, ChangeRefusal):
        raise _RollBack(result)
    return result


class _RollBack(Exception):
    """Rolls back the transaction of a refused change."""

    def __init__(self, refusal: ChangeRefusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal
