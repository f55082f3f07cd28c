"""Copies of a session's chunks for a fork, with new ids; and the map from forked runs to their originals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from daiku.domain.base import long_id, new_id
from daiku.domain.chunks import Chunk
from daiku.domain.events import RunFinished
from daiku.domain.sessions import SessionStatus
from daiku.store.database import Database
from daiku.texts.rules.patterns import lazy
from daiku.trace.rows import INSERT, READ, Read, Row, chunk_of, event_of


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


CopyReferences = Callable[[str, Sequence[Chunk]], Mapping[str, str]]
"""Copies what the chunks reference (such as checkpoints) for another session; returns new ids by old id."""

_OURS = lazy(r"(?:run|appr|input|checkpoint)_[0-9a-f]{16}|plan_[0-9a-f]{8}")
_NAMING = {"approval_asked": ("appr",), "input_asked": ("input",), "handoff_start": ("run",)}
"""Id prefixes that events introduce: a nested run before its first event."""
_CLOSING = ("usage", "notice", "error", "run_finished")
"""Events between a run's last message and its end."""
_PLAN = lazy(r'"planId":"(plan_[0-9a-f]{8})"')


def copy_chunks(db: Database, old: str, new: str, at_seq: int, copies: CopyReferences | None = None) -> None:
    """Copy the chunks of session `old` up to `at_seq` to session `new`. `copies` renames further references."""
    rows: list[Read] = db.query(
        f"{READ} WHERE session = ? AND seq <= ? ORDER BY seq", (old, _end_of_answer(db, old, at_seq))
    )
    names = _new_names(rows)
    if copies is not None:
        names |= copies(new, [chunk_of(old, row) for row in rows])
    renamed = [
        (new, seq, time, names[run], names[parent] if parent else None, agent, type_, new_data)
        for seq, time, run, parent, agent, type_, data in rows
        for new_data in [_OURS.sub(lambda match: names.get(match[0], match[0]), data)]
    ]
    with db.transaction():
        db.write_all(INSERT, renamed)
        record_copies(db, new, {run: names[run] for run in dict.fromkeys(row[2] for row in rows)})
        db.write(
            "UPDATE sessions SET reserved = ?, status = ?, model = (SELECT model FROM sessions WHERE id = ?)"
            " WHERE id = ?",
            (rows[-1][0] if rows else 0, _final_status(renamed), old, new),
        )


def _end_of_answer(db: Database, session: str, at_seq: int) -> int:
    """Return `at_seq`, or the end of the run if `at_seq` is its last message, so that the copy has ended too."""
    rows = db.query(
        "SELECT seq, parent, type FROM chunks WHERE session = ? AND seq > ? ORDER BY seq LIMIT 20",
        (session, at_seq),
    )
    for seq, parent, type_ in rows:
        if parent is not None or type_ not in _CLOSING:
            break
        if type_ == "run_finished":
            return seq
    return at_seq


def _new_names(rows: Iterable[Read]) -> dict[str, str]:
    """Return new ids for runs, questions to the user, and plans that were changed in these rows."""
    names: dict[str, str] = {}
    for _, _, run, parent, _, type_, data in rows:
        names |= {old: long_id("run") for old in (run, parent) if old and old not in names}
        for old in _OURS.findall(data) if type_ in _NAMING else ():
            prefix = old.partition("_")[0]
            if prefix in _NAMING[type_] and old not in names:
                names[old] = long_id(prefix)
        for old in _PLAN.findall(data) if type_ == "plan" else ():
            names.setdefault(old, new_id("plan"))
    return names


def _final_status(rows: list[Row]) -> SessionStatus:
    ends = [row for row in rows if row[6] in ("run_started", "run_finished") and row[4] is None]
    if not ends:
        return "idle"
    last = event_of(ends[-1][6], ends[-1][7])
    return last.status if isinstance(last, RunFinished) else "interrupted"
