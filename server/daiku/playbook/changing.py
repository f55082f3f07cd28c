"""Changes of a playbook within one transaction: propose, apply, accept, reject, undo, and log them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from daiku.dataclass import dataclass
from daiku.domain.playbook import Bullet, Delta, DeltaStatus, Observation, PlaybookScope, Verdict
from daiku.playbook import tables
from daiku.playbook.rules.changes import (
    BulletState,
    BulletStates,
    ChangeRefusal,
    apply_delta,
    build_bullet,
    check_text,
    get_target_id,
    list_ids,
    refuse_decided,
    refuse_not_applied,
    refuse_unknown_change,
    undo_delta,
)
from daiku.playbook.rules.sections import (
    HIGHEST_BROUGHT,
    build_slug,
    format_bullet_id,
    normalize_section,
    parse_bullet_id,
)
from daiku.playbook.tables import (
    UndoData,
    clean_delta,
    format_delta_id,
    parse_delta,
    parse_delta_id,
    parse_undo_data,
    read_observation,
    read_state,
    replace_unstorable,
    to_bullet_row,
    to_changed_row,
    to_observation_row,
)
from daiku.store.database import Database

_REASON_OF_TAG: Mapping[Verdict, Literal["praised", "objected", ""]] = MappingProxyType(
    {"helpful": "praised", "harmful": "objected", "neutral": ""}
)
"""Reasons of observations that a person made."""


@dataclass(frozen=True, slots=True)
class PlaybookTransaction:
    """A playbook within a transaction that holds its write lock."""

    db: Database
    scope: PlaybookScope
    playbook: int
    revision: int
    """Revision of the playbook that this transaction creates."""
    now: str

    def propose(self, delta: Delta) -> Delta:
        """Log a pending change."""
        proposed = clean_delta(delta).model_copy(
            update={
                "id": format_delta_id(self.scope, self.revision),
                "scope": self.scope,
                "status": "proposed",
                "before": (),
                "created_at": delta.created_at or self.now,
                "decided_at": "",
            }
        )
        self._log(proposed, "", 0)
        return proposed

    def apply(self, delta: Delta) -> Delta | ChangeRefusal:
        """Apply and log a change."""
        stored, change_id = clean_delta(delta), format_delta_id(self.scope, self.revision)
        effect = self._execute(stored, change_id)
        if isinstance(effect, ChangeRefusal):
            return effect
        applied = self._mark_applied(stored, change_id, effect)
        self._log(applied, effect.undo_data, self.revision)
        return applied

    def accept(self, delta_id: str, content: str | None) -> Delta | ChangeRefusal:
        """Apply a pending or rejected change; `content` replaces its text."""
        pending = self._get_pending(delta_id, "proposed", "rejected")
        if isinstance(pending, ChangeRefusal):
            return pending
        number, delta = pending
        if content is not None:
            if refusal := check_text(content):
                return refusal
            delta = delta.model_copy(update={"content": replace_unstorable(content)})
        effect = self._execute(delta, delta.id)
        if isinstance(effect, ChangeRefusal):
            return effect
        applied = self._mark_applied(delta, delta.id, effect)
        self._update_log(number, applied, effect.undo_data, self.revision)
        return applied

    def reject(self, delta_id: str) -> Delta | ChangeRefusal:
        """Log that a pending change is rejected."""
        pending = self._get_pending(delta_id, "proposed")
        if isinstance(pending, ChangeRefusal):
            return pending
        number, delta = pending
        rejected = delta.model_copy(update={"status": "rejected", "decided_at": self.now})
        self._update_log(number, rejected, "", 0)
        return rejected

    def undo(self, delta_id: str) -> Delta | ChangeRefusal:
        """Undo and log an applied change. A rejected one becomes pending again."""
        if (logged := self._find_logged(delta_id)) is None:
            return refuse_unknown_change(delta_id)
        number, row = logged
        delta, undo_data, applied = parse_delta(row[0]), parse_undo_data(row[1]), int(row[2])
        if delta.status == "rejected":
            pending = delta.model_copy(update={"status": "proposed", "decided_at": ""})
            self._update_log(number, pending, row[1], applied)
            return pending
        if delta.status != "applied":
            return refuse_not_applied(delta_id)
        ids = tuple(bullet.id for bullet in delta.after)
        if delta.type != "tag":
            later = tuple(other for name in ids for other in self._list_later_changes(name, applied))
            restored = undo_delta(delta, self._load_states(ids), later, dict(undo_data.into), self.now)
            if isinstance(restored, ChangeRefusal):
                return restored
            states = self._load_states(ids)
            meanings = dict(undo_data.meanings)
            for state in restored:
                self._save_state(state, states[state.bullet.id], meanings.get(state.bullet.id, 1))
        elif undo_data.observed is not None:
            self._restore_observation(undo_data.observed, undo_data.replaced)
        update_counters(self.db, self.playbook, ids, self.revision)
        undone = delta.model_copy(update={"status": "undone", "decided_at": self.now})
        self._update_log(number, undone, row[1], applied)
        return undone

    def observe(self, observations: tuple[Observation, ...]) -> None:
        """Save observations of runs and update the counters of their bullets."""
        save_observations(self.db, self.playbook, observations)
        bullets = dict.fromkeys(observation.bullet for observation in observations)
        update_counters(self.db, self.playbook, bullets, self.revision)

    def _find_logged(self, delta_id: str) -> tuple[int, tables.Row] | None:
        """Return the number of a change and its row."""
        number = parse_delta_id(self.scope, delta_id)
        row = None if number is None else self.db.first(tables.DELTA, (self.playbook, number))
        return None if number is None or row is None else (number, row)

    def _get_pending(self, delta_id: str, *statuses: DeltaStatus) -> tuple[int, Delta] | ChangeRefusal:
        if (logged := self._find_logged(delta_id)) is None:
            return refuse_unknown_change(delta_id)
        delta = parse_delta(logged[1][0])
        return (logged[0], delta) if delta.status in statuses else refuse_decided(delta_id)

    def _execute(self, delta: Delta, change_id: str) -> _Effect | ChangeRefusal:
        """Apply `delta`, whose id is `change_id`; return its effect."""
        if delta.type == "add":
            return self._add(delta)
        targets = self._load_states(list_ids(delta))
        new_states = apply_delta(delta, targets, self.now)
        if isinstance(new_states, ChangeRefusal):
            return new_states
        names = tuple(state.bullet.id for state in new_states)
        # Observations of a bullet also count for the bullets that it was merged into.
        touched = with_merge_targets(self.db, self.playbook, names)
        before = self._load_states(touched)
        meanings = {name: self._get_meaning(before[name]) for name in names}
        undo_data = UndoData(
            into=tuple((name, before[name].merged_into) for name in names if before[name].merged_into),
            meanings=tuple((name, first) for name, first in meanings.items() if first > 1),
        )
        for state in new_states:
            old_state = before[state.bullet.id]
            if state != old_state:
                self._save_state(
                    state, old_state, state.version if state.has_new_meaning else meanings[state.bullet.id]
                )
        if delta.type == "tag" and delta.tag is not None:
            undo_data = self._save_tag(delta, change_id, delta.tag, new_states[0])
        update_counters(self.db, self.playbook, touched, self.revision)
        after = self._load_states(touched)
        return _Effect(
            tuple(before[name].bullet for name in touched),
            tuple(after[name].bullet for name in touched),
            "" if undo_data == UndoData() else undo_data.model_dump_json(),
        )

    def _add(self, delta: Delta) -> _Effect | ChangeRefusal:
        if refusal := check_text(delta.content):
            return refusal
        bullet = build_bullet(delta, self._assign_id(delta), self.now)
        self.db.write(tables.ADD_BULLET, to_bullet_row(self.playbook, BulletState(bullet), self.revision))
        return _Effect((), (bullet,))

    def _mark_applied(self, delta: Delta, change_id: str, effect: _Effect) -> Delta:
        """Return the change as applied, with its effect."""
        first, *others = effect.after
        return delta.model_copy(
            update={
                "id": change_id,
                "scope": self.scope,
                "section": first.section if delta.type == "add" else delta.section,
                "bullet_id": first.id,
                "bullet_ids": tuple(bullet.id for bullet in others),
                "status": "applied",
                "before": effect.before,
                "after": effect.after,
                "created_at": delta.created_at or self.now,
                "decided_at": self.now,
            }
        )

    def _assign_id(self, delta: Delta) -> str:
        """Return the id that an import brings if it was never used, else the next id of the section."""
        parts = parse_bullet_id(delta.bullet_id, self.scope) if delta.origin == "import" else None
        if parts is not None and parts[1] > HIGHEST_BROUGHT:
            parts = None
        if parts is not None and self.db.first(tables.BULLET, (self.playbook, delta.bullet_id)) is None:
            self.db.write(tables.GIVE_NUMBER, (self.playbook, *parts))
            return delta.bullet_id
        slug = build_slug(normalize_section(delta.section), self.scope)
        return format_bullet_id(slug, int(self.db.first(tables.TAKE_NUMBER, (self.playbook, slug))[0]))

    def _save_tag(self, delta: Delta, change_id: str, tag: Verdict, state: BulletState) -> UndoData:
        """Save a tag as an observation of the run that it is based on, else of the change itself."""
        place = delta.evidence[0] if delta.evidence else None
        observation = Observation(
            run=place.run_id if place else change_id,
            bullet=get_target_id(delta),
            verdict=tag,
            why="" if delta.origin != "person" else _REASON_OF_TAG[tag],
            session=place.session_id if place else "",
            seq=place.seq if place else 0,
            version=state.version,
        )
        replaced = find_observation(self.db, self.playbook, observation.bullet, observation.run)
        save_observations(self.db, self.playbook, (observation,))
        return UndoData(observed=observation, replaced=replaced)

    def _restore_observation(self, observation: Observation, replaced: Observation | None) -> None:
        """Restore the observation that a tag replaced, unless later evidence replaced the tag."""
        if find_observation(self.db, self.playbook, observation.bullet, observation.run) != observation:
            return
        if replaced is None:
            delete_observation(self.db, self.playbook, observation)
        else:
            save_observations(self.db, self.playbook, (replaced,))

    def _load_states(self, ids: tuple[str, ...]) -> BulletStates:
        names = [name for name in ids if parse_bullet_id(name, self.scope) is not None]
        rows = (self.db.first(tables.BULLET, (self.playbook, name)) for name in names)
        return {row[0]: read_state(row) for row in rows if row is not None}

    def _list_later_changes(self, bullet: str, applied: int) -> tuple[Delta, ...]:
        """Return the changes of a bullet that were applied after this one and not undone."""
        rows = self.db.query(tables.HISTORY, (self.playbook, *(self.playbook, bullet) * 3))
        later = (parse_delta(data) for data, at in rows if at > applied)
        return tuple(delta for delta in later if delta.status == "applied" and delta.type != "tag")

    def _save_state(self, state: BulletState, old_state: BulletState, meaning: int) -> None:
        """Save the state of a bullet. `meaning`: the first version that says what a changed text says."""
        self.db.write(tables.CHANGE_BULLET, to_changed_row(self.playbook, state, self.revision))
        if state.version != old_state.version:
            set_meaning(self.db, self.playbook, state.bullet.id, state.version, meaning)

    def _get_meaning(self, state: BulletState) -> int:
        return get_meaning(self.db, self.playbook, state.bullet.id, state.version)

    def _log(self, delta: Delta, undo_data: str, applied: int) -> None:
        # An applied addition is found by its number: it needs no entry in the index of bullets.
        bullet = "" if delta.type == "add" and delta.status == "applied" else delta.bullet_id
        row = (self.playbook, self.revision, delta.status, bullet, applied)
        self.db.write(tables.ADD_DELTA, (*row, delta.model_dump_json(exclude_defaults=True), undo_data))
        self._log_merged(delta, self.revision)

    def _update_log(self, number: int, delta: Delta, undo_data: str, applied: int) -> None:
        data = delta.model_dump_json(exclude_defaults=True)
        row = (delta.status, delta.bullet_id, applied, data, undo_data)
        self.db.write(tables.CHANGE_DELTA, (*row, self.playbook, number))
        self._log_merged(delta, number)

    def _log_merged(self, delta: Delta, number: int) -> None:
        for name in delta.bullet_ids:
            self.db.write(tables.ADD_MERGED, (self.playbook, name, number))


class _Effect(NamedTuple):
    """Bullets that a change touched, before and after it, and the `UndoData` of the change as JSON."""

    before: tuple[Bullet, ...]
    after: tuple[Bullet, ...]
    undo_data: str = ""


_FIRST = 1
"""Number of a bullet's first version."""


def find_observation(db: Database, playbook: int, bullet: str, run: str) -> Observation | None:
    """Return the observation of a run and a bullet."""
    row = db.first(tables.OBSERVATION, (playbook, bullet, run))
    return None if row is None else read_observation(row)


def list_observations(db: Database, playbook: int, run: str, bullet: str) -> tuple[Observation, ...]:
    """Return the observations of a run, of a bullet, of both, or all."""
    if run and bullet:
        observation = find_observation(db, playbook, bullet, run)
        return () if observation is None else (observation,)
    if run:
        rows = db.query(tables.OBSERVATIONS_OF_RUN, (playbook, run))
    elif bullet:
        rows = db.query(tables.OBSERVATIONS_OF_BULLET, (playbook, bullet))
    else:
        rows = db.query(tables.OBSERVATIONS, (playbook,))
    return tuple(read_observation(row) for row in rows)


def save_observations(db: Database, playbook: int, observations: Sequence[Observation]) -> None:
    """Save observations; each replaces the earlier one of its run and bullet."""
    db.write_all(tables.OBSERVE, [to_observation_row(playbook, each) for each in observations])
    versions = [(playbook, each.bullet, each.run, each.version) for each in observations]
    db.write_all(tables.OBSERVE_VERSION, versions)


def delete_observation(db: Database, playbook: int, observation: Observation) -> None:
    for statement in tables.FORGET:
        db.write(statement, (playbook, observation.bullet, observation.run))


def get_meaning(db: Database, playbook: int, bullet: str, version: int) -> int:
    """Return the first version of the bullet that says what this version says."""
    row = db.first(tables.MEANING, (playbook, bullet, version))
    return _FIRST if row is None else int(row[0])


def set_meaning(db: Database, playbook: int, bullet: str, version: int, first: int) -> None:
    """Record that `version` of the bullet says what its version `first` says."""
    if first != _FIRST:
        db.write(tables.MEAN, (playbook, bullet, version, first))


def update_counters(db: Database, playbook: int, bullets: Iterable[str], revision: int) -> None:
    """Update the counters of these bullets and of those that they were merged into."""
    for name in with_merge_targets(db, playbook, bullets):
        row = db.first(tables.COUNTS, (playbook, name, *(playbook,) * 5))
        brought_helpful, brought_harmful, helpful, harmful = map(int, row)
        totals = (brought_helpful + helpful, brought_harmful + harmful)
        if db.first(tables.COUNTERS, (playbook, name)) != totals:
            db.write(tables.COUNT, (*totals, revision, playbook, name))


def with_merge_targets(db: Database, playbook: int, bullets: Iterable[str]) -> tuple[str, ...]:
    """Return these bullets, followed by those that they were merged into."""
    names = dict.fromkeys(bullets)
    for name in tuple(names):
        while (row := db.first(tables.MERGED, (playbook, name))) is not None and row[0] not in ("", *names):
            name = row[0]
            names[name] = None
    return tuple(names)
