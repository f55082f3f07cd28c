"""Counters of bullets: one observation for each run and bullet, summed over merged bullets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from daiku.domain.playbook import Observation
from daiku.playbook import tables
from daiku.playbook.rows import read_observation, to_observation_row
from daiku.store.database import Database

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
