"""Counters of bullets: what runs showed of each, one observation of a run, summed over what was merged into it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from daiku.domain.playbook import Observation
from daiku.playbook import tables
from daiku.playbook.rows import observation_of, observation_row
from daiku.store.database import Database

_FIRST = 1
"""The version with which a bullet begins."""


def observed(db: Database, playbook: int, bullet: str, run: str) -> Observation | None:
    """What is known of this run and bullet."""
    row = db.first(tables.OBSERVATION, (playbook, bullet, run))
    return None if row is None else observation_of(row)


def observations(db: Database, playbook: int, run: str, bullet: str) -> tuple[Observation, ...]:
    """Those of a run, of a bullet, of both, or all."""
    if run and bullet:
        one = observed(db, playbook, bullet, run)
        return () if one is None else (one,)
    if run:
        rows = db.query(tables.OBSERVATIONS_OF_RUN, (playbook, run))
    elif bullet:
        rows = db.query(tables.OBSERVATIONS_OF_BULLET, (playbook, bullet))
    else:
        rows = db.query(tables.OBSERVATIONS, (playbook,))
    return tuple(observation_of(row) for row in rows)


def keep(db: Database, playbook: int, seen: Sequence[Observation]) -> None:
    """Each one takes the place of an earlier one of its run and bullet."""
    db.write_all(tables.OBSERVE, [observation_row(playbook, each) for each in seen])
    versions = [(playbook, each.bullet, each.run, each.version) for each in seen]
    db.write_all(tables.OBSERVE_VERSION, versions)


def forget(db: Database, playbook: int, seen: Observation) -> None:
    for statement in tables.FORGET:
        db.write(statement, (playbook, seen.bullet, seen.run))


def meaning(db: Database, playbook: int, bullet: str, version: int) -> int:
    """The first version of the bullet that says what this one says."""
    row = db.first(tables.MEANING, (playbook, bullet, version))
    return _FIRST if row is None else int(row[0])


def mean(db: Database, playbook: int, bullet: str, version: int, first: int) -> None:
    """From now on `version` of the bullet says what its version `first` says."""
    if first != _FIRST:
        db.write(tables.MEAN, (playbook, bullet, version, first))


def count(db: Database, playbook: int, bullets: Iterable[str], revision: int) -> None:
    """Sum anew what was observed of these bullets, and of those that they were merged into."""
    for name in with_those_above(db, playbook, bullets):
        row = db.first(tables.COUNTS, (playbook, name, *(playbook,) * 5))
        brought_helpful, brought_harmful, helpful, harmful = map(int, row)
        totals = (brought_helpful + helpful, brought_harmful + harmful)
        if db.first(tables.COUNTERS, (playbook, name)) != totals:
            db.write(tables.COUNT, (*totals, revision, playbook, name))


def with_those_above(db: Database, playbook: int, bullets: Iterable[str]) -> tuple[str, ...]:
    """These bullets, and after them those that they were merged into."""
    found = dict.fromkeys(bullets)
    for name in tuple(found):
        while (row := db.first(tables.MERGED, (playbook, name))) is not None and row[0] not in ("", *found):
            name = row[0]
            found[name] = None
    return tuple(found)
