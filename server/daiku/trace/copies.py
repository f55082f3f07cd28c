"""Map forked runs to their originals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from daiku.store.database import Database


class RunLocation(NamedTuple):
    """Location of a recorded run: session id and run id."""

    session: str
    run: str


class RunCopies(NamedTuple):
    """Locations of one run: the `original` run's id, and its copies, oldest first."""

    original: str
    copies: tuple[RunLocation, ...]


def record_copies(db: Database, session: str, names: Mapping[str, str]) -> None:
    """Record the runs of `session` as copies; `names`: new ids by old id. In the transaction of the chunks."""
    rows = [(new, original_of(db, old), session) for old, new in names.items()]
    db.write_all("INSERT INTO copied_runs VALUES(?,?,?)", rows)


def forget_copies(db: Database, session: str) -> None:
    """Delete the records of the copies in a deleted session."""
    db.write("DELETE FROM copied_runs WHERE session = ?", (session,))


def original_of(db: Database, run: str) -> str:
    """Return the original of a copied run; the run itself if it is not a copy."""
    row = db.first("SELECT original FROM copied_runs WHERE run = ?", (run,))
    return run if row is None else row[0]


def copies_of(db: Database, run: str) -> RunCopies:
    """Return the original of a run, and all its recorded copies."""
    original = original_of(db, run)
    rows = db.query(
        "SELECT session, run FROM copied_runs WHERE original = ? ORDER BY session, run", (original,)
    )
    return RunCopies(original, tuple(RunLocation(*row) for row in rows))


def copies_in(db: Database, session: str) -> dict[str, str]:
    """Return the originals of the copied runs in a session, by copy."""
    return dict(db.query("SELECT run, original FROM copied_runs WHERE session = ?", (session,)))
