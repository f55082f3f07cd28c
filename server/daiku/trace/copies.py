"""Which runs of forked sessions are copies of which: a copy is no work of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from daiku.store.database import Database


class Place(NamedTuple):
    """A record of a run: the session that holds it, and the run's id there."""

    session: str
    run: str


class Copies(NamedTuple):
    """All records of one piece of work: that of the `original` run, and its copies, the oldest first."""

    original: str
    copies: tuple[Place, ...]


def record_copies(db: Database, session: str, names: Mapping[str, str]) -> None:
    """Keep that the runs of `session` are copies, new ids by the old ones. Written with the copied chunks."""
    rows = [(new, original_of(db, old), session) for old, new in names.items()]
    db.write_all("INSERT INTO copied_runs VALUES(?,?,?)", rows)


def forget_copies(db: Database, session: str) -> None:
    """A session is deleted, with the copies in it."""
    db.write("DELETE FROM copied_runs WHERE session = ?", (session,))


def original_of(db: Database, run: str) -> str:
    """The run that did the work which stands under this id; itself where it is no copy."""
    found = db.first("SELECT original FROM copied_runs WHERE run = ?", (run,))
    return run if found is None else found[0]


def copies_of(db: Database, run: str) -> Copies:
    """The original of a run, and all copies of it that are kept."""
    original = original_of(db, run)
    rows = db.query(
        "SELECT session, run FROM copied_runs WHERE original = ? ORDER BY session, run", (original,)
    )
    return Copies(original, tuple(Place(*row) for row in rows))


def copies_in(db: Database, session: str) -> dict[str, str]:
    """The originals of the copied runs in a session."""
    return dict(db.query("SELECT run, original FROM copied_runs WHERE session = ?", (session,)))
