"""One change of a playbook within its transaction: applied, logged, decided on, undone."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from daiku.dataclass import dataclass
from daiku.domain.playbook import Bullet, Delta, DeltaStatus, Observation, PlaybookScope, Verdict
from daiku.playbook import counting, tables
from daiku.playbook.rows import (
    Earlier,
    bullet_row,
    changed_row,
    delta_id,
    delta_number,
    delta_of,
    earlier_of,
    standing_of,
    storable,
    storable_delta,
)
from daiku.playbook.rules.changes import (
    Standing,
    Standings,
    added,
    after,
    kept_id,
    named_ids,
    undone,
    wrong_text,
)
from daiku.playbook.rules.refused import Refused, decided, no_change, not_applied
from daiku.playbook.rules.sections import HIGHEST_BROUGHT, bullet_id, id_parts, section_of, slug_of
from daiku.store.database import Database

_SAID: Mapping[Verdict, Literal["praised", "objected", ""]] = MappingProxyType(
    {"helpful": "praised", "harmful": "objected", "neutral": ""}
)
"""Why a bullet is counted as it is where a person said so."""


@dataclass(frozen=True, slots=True)
class Changing:
    """A playbook that nobody else writes to now: what is done with it stands or falls with the transaction around it."""

    db: Database
    scope: PlaybookScope
    playbook: int
    revision: int
    """The revision of the playbook that this change makes."""
    now: str

    def propose(self, delta: Delta) -> Delta:
        """Log a change that waits."""
        made = storable_delta(delta).model_copy(
            update={
                "id": delta_id(self.scope, self.revision),
                "scope": self.scope,
                "status": "proposed",
                "before": (),
                "created_at": delta.created_at or self.now,
                "decided_at": "",
            }
        )
        self._log(made, "", 0)
        return made

    def apply(self, delta: Delta) -> Delta | Refused:
        """Carry out and log a change."""
        clean, own = storable_delta(delta), delta_id(self.scope, self.revision)
        made = self._made(clean, own)
        if isinstance(made, Refused):
            return made
        done = self._applied(clean, own, made)
        self._log(done, made.earlier, self.revision)
        return done

    def accept(self, delta_id: str, content: str | None) -> Delta | Refused:
        """Carry out a change that waits or was rejected, with another text where one is given."""
        waiting = self._waiting(delta_id, "proposed", "rejected")
        if isinstance(waiting, Refused):
            return waiting
        number, delta = waiting
        if content is not None:
            if wrong := wrong_text(content):
                return wrong
            delta = delta.model_copy(update={"content": storable(content)})
        made = self._made(delta, delta.id)
        if isinstance(made, Refused):
            return made
        done = self._applied(delta, delta.id, made)
        self._log_again(number, done, made.earlier, self.revision)
        return done

    def reject(self, delta_id: str) -> Delta | Refused:
        """Log that a change that waits is not wanted."""
        waiting = self._waiting(delta_id, "proposed")
        if isinstance(waiting, Refused):
            return waiting
        number, delta = waiting
        done = delta.model_copy(update={"status": "rejected", "decided_at": self.now})
        self._log_again(number, done, "", 0)
        return done

    def undo(self, delta_id: str) -> Delta | Refused:
        """Take back what an applied change did, and log that; one that was rejected waits again."""
        number = delta_number(self.scope, delta_id)
        row = None if number is None else self.db.first(tables.DELTA, (self.playbook, number))
        if number is None or row is None:
            return no_change(delta_id)
        delta, earlier, applied = delta_of(row[0]), earlier_of(row[1]), int(row[2])
        if delta.status == "rejected":
            waits = delta.model_copy(update={"status": "proposed", "decided_at": ""})
            self._log_again(number, waits, row[1], applied)
            return waits
        if delta.status != "applied":
            return not_applied(delta_id)
        ids = tuple(bullet.id for bullet in delta.after)
        if delta.type != "tag":
            later = tuple(other for name in ids for other in self._later(name, applied))
            back = undone(delta, self._found(ids), later, dict(earlier.into), self.now)
            if isinstance(back, Refused):
                return back
            was = self._found(ids)
            meant = dict(earlier.meanings)
            for stands in back:
                self._write(stands, was[stands.bullet.id], meant.get(stands.bullet.id, 1))
        elif earlier.observed is not None:
            self._observed_before(earlier.observed, earlier.replaced)
        counting.count(self.db, self.playbook, ids, self.revision)
        done = delta.model_copy(update={"status": "undone", "decided_at": self.now})
        self._log_again(number, done, row[1], applied)
        return done

    def observe(self, observations: tuple[Observation, ...]) -> None:
        """Keep what runs showed of bullets, and sum it."""
        counting.keep(self.db, self.playbook, observations)
        bullets = dict.fromkeys(seen.bullet for seen in observations)
        counting.count(self.db, self.playbook, bullets, self.revision)

    def _waiting(self, delta_id: str, *statuses: DeltaStatus) -> tuple[int, Delta] | Refused:
        number = delta_number(self.scope, delta_id)
        row = None if number is None else self.db.first(tables.DELTA, (self.playbook, number))
        if number is None or row is None:
            return no_change(delta_id)
        delta = delta_of(row[0])
        return (number, delta) if delta.status in statuses else decided(delta_id)

    def _made(self, delta: Delta, own: str) -> _Made | Refused:
        """Carry out `delta`, whose id is `own`."""
        if delta.type == "add":
            return self._added(delta)
        found = self._found(named_ids(delta))
        stands = after(delta, found, self.now)
        if isinstance(stands, Refused):
            return stands
        named = tuple(each.bullet.id for each in stands)
        # What is observed of a bullet counts for those that it was merged into: their counters change with it.
        touched = counting.with_those_above(self.db, self.playbook, named)
        before = self._found(touched)
        meant = {name: self._meaning(before[name]) for name in named}
        earlier = Earlier(
            into=tuple((name, before[name].into) for name in named if before[name].into),
            meanings=tuple((name, first) for name, first in meant.items() if first > 1),
        )
        for each in stands:
            was = before[each.bullet.id]
            if each != was:
                self._write(each, was, each.version if each.anew else meant[each.bullet.id])
        if delta.type == "tag" and delta.tag is not None:
            earlier = self._tagged(delta, own, delta.tag, stands[0])
        counting.count(self.db, self.playbook, touched, self.revision)
        now = self._found(touched)
        return _Made(
            tuple(before[name].bullet for name in touched),
            tuple(now[name].bullet for name in touched),
            "" if earlier == Earlier() else earlier.model_dump_json(),
        )

    def _added(self, delta: Delta) -> _Made | Refused:
        if wrong := wrong_text(delta.content):
            return wrong
        bullet = added(delta, self._new_id(delta), self.now)
        self.db.write(tables.ADD_BULLET, bullet_row(self.playbook, Standing(bullet), self.revision))
        return _Made((), (bullet,))

    def _applied(self, delta: Delta, own: str, made: _Made) -> Delta:
        first, *others = made.after
        return delta.model_copy(
            update={
                "id": own,
                "scope": self.scope,
                "section": first.section if delta.type == "add" else delta.section,
                "bullet_id": first.id,
                "bullet_ids": tuple(bullet.id for bullet in others),
                "status": "applied",
                "before": made.before,
                "after": made.after,
                "created_at": delta.created_at or self.now,
                "decided_at": self.now,
            }
        )

    def _new_id(self, delta: Delta) -> str:
        """The id that an import names, unless it was given before; else the next one of the section."""
        parts = id_parts(delta.bullet_id, self.scope) if delta.origin == "import" else None
        if parts is not None and parts[1] > HIGHEST_BROUGHT:
            parts = None
        if parts is not None and self.db.first(tables.BULLET, (self.playbook, delta.bullet_id)) is None:
            self.db.write(tables.GIVE_NUMBER, (self.playbook, *parts))
            return delta.bullet_id
        slug = slug_of(section_of(delta.section), self.scope)
        return bullet_id(slug, int(self.db.first(tables.TAKE_NUMBER, (self.playbook, slug))[0]))

    def _tagged(self, delta: Delta, own: str, tag: Verdict, stands: Standing) -> Earlier:
        """What a person says of a bullet is an observation: of the run that was looked at, or of the change itself."""
        place = delta.evidence[0] if delta.evidence else None
        seen = Observation(
            run=place.run_id if place else own,
            bullet=kept_id(delta),
            verdict=tag,
            why="" if delta.origin != "person" else _SAID[tag],
            session=place.session_id if place else "",
            seq=place.seq if place else 0,
            version=stands.version,
        )
        replaced = counting.observed(self.db, self.playbook, seen.bullet, seen.run)
        counting.keep(self.db, self.playbook, (seen,))
        return Earlier(observed=seen, replaced=replaced)

    def _observed_before(self, seen: Observation, replaced: Observation | None) -> None:
        """Take an observation back, unless later evidence has taken its place."""
        if counting.observed(self.db, self.playbook, seen.bullet, seen.run) != seen:
            return
        if replaced is None:
            counting.forget(self.db, self.playbook, seen)
        else:
            counting.keep(self.db, self.playbook, (replaced,))

    def _found(self, ids: tuple[str, ...]) -> Standings:
        known = [name for name in ids if id_parts(name, self.scope) is not None]
        rows = (self.db.first(tables.BULLET, (self.playbook, name)) for name in known)
        return {row[0]: standing_of(row) for row in rows if row is not None}

    def _later(self, bullet: str, applied: int) -> tuple[Delta, ...]:
        """The changes of a bullet that were applied after this one, and hold still."""
        rows = self.db.query(tables.HISTORY, (self.playbook, *(self.playbook, bullet) * 3))
        later = (delta_of(data) for data, at in rows if at > applied)
        return tuple(delta for delta in later if delta.status == "applied" and delta.type != "tag")

    def _write(self, stands: Standing, was: Standing, meaning: int) -> None:
        """Keep how a bullet stands now; `meaning`: what its text says, where it is another one than it was."""
        self.db.write(tables.CHANGE_BULLET, changed_row(self.playbook, stands, self.revision))
        if stands.version != was.version:
            counting.mean(self.db, self.playbook, stands.bullet.id, stands.version, meaning)

    def _meaning(self, stands: Standing) -> int:
        return counting.meaning(self.db, self.playbook, stands.bullet.id, stands.version)

    def _log(self, delta: Delta, earlier: str, applied: int) -> None:
        found_by_it = delta.type == "add" and delta.status == "applied"  # that saves it a place in an index
        row = (self.playbook, self.revision, delta.status, "" if found_by_it else delta.bullet_id, applied)
        self.db.write(tables.ADD_DELTA, (*row, delta.model_dump_json(exclude_defaults=True), earlier))
        self._log_merged(delta, self.revision)

    def _log_again(self, number: int, delta: Delta, earlier: str, applied: int) -> None:
        row = (delta.status, delta.bullet_id, applied, delta.model_dump_json(exclude_defaults=True), earlier)
        self.db.write(tables.CHANGE_DELTA, (*row, self.playbook, number))
        self._log_merged(delta, number)

    def _log_merged(self, delta: Delta, number: int) -> None:
        for name in delta.bullet_ids:
            self.db.write(tables.ADD_MERGED, (self.playbook, name, number))


class _Made(NamedTuple):
    """What a change touched, before and after it, and what its undoing needs beside that (`Earlier` as JSON)."""

    before: tuple[Bullet, ...]
    after: tuple[Bullet, ...]
    earlier: str = ""
