"""What trials of changes have cost: written before and after each, so that it is on record where the process is killed."""

from __future__ import annotations

from daiku.dataclass import dataclass
from daiku.domain.base import Wire, long_id
from daiku.domain.chunks import iso_now
from daiku.store.database import Database

_SCHEMA = """
CREATE TABLE IF NOT EXISTS playbook_adaptations(
  id TEXT PRIMARY KEY, begun_at TEXT NOT NULL, ended_at TEXT NOT NULL,
  trials INTEGER NOT NULL, spent INTEGER NOT NULL, under_way INTEGER NOT NULL) STRICT;
"""
"""`spent` in millionths of a dollar; `under_way` is 1 while a trial is."""
_BEGIN = "INSERT INTO playbook_adaptations VALUES(?, ?, '', 0, 0, 0)"
_TRIAL = "UPDATE playbook_adaptations SET under_way = 1 WHERE id = ?"
_SPENT = "UPDATE playbook_adaptations SET under_way = 0, trials = trials + 1, spent = spent + ? WHERE id = ?"
_END = "UPDATE playbook_adaptations SET ended_at = ? WHERE id = ?"
_OPEN = (
    "SELECT id, begun_at, trials, spent, under_way FROM playbook_adaptations WHERE ended_at = ''"
    " ORDER BY begun_at, id"
)
_DOLLAR = 1_000_000


class CutOff(Wire):
    """An adaptation that did not come to its end: the process was killed. `unknown`: of one trial more it is not known what
    it cost."""

    begun_at: str
    trials: int
    spent: float
    unknown: bool = False


@dataclass(frozen=True, slots=True)
class Spending:
    """The record of one adaptation. Methods raise DaikuError."""

    database: Database
    id: str

    def trial(self) -> None:
        """A trial begins."""
        self.database.write(_TRIAL, (self.id,))

    def spent(self, cost: float) -> None:
        """It has ended, and cost this."""
        self.database.write(_SPENT, (round(cost * _DOLLAR), self.id))

    def end(self) -> None:
        self.database.write(_END, (iso_now(), self.id))


def begin(database: Database) -> Spending:
    """The record of a new adaptation; what was cut off before it is told no more. Raises DaikuError."""
    database.prepare(_SCHEMA)
    made = Spending(database, long_id("adapt"))
    with database.transaction():
        for row in database.query(_OPEN):
            database.write(_END, (iso_now(), row[0]))
        database.write(_BEGIN, (made.id, iso_now()))
    return made


def cut_off(database: Database) -> tuple[CutOff, ...]:
    """The adaptations that were killed since the last one that ended. Ask while none is under way. Raises DaikuError."""
    if not database.has("playbook_adaptations"):
        return ()
    return tuple(
        CutOff(begun_at=begun, trials=trials, spent=spent / _DOLLAR, unknown=bool(under_way))
        for _, begun, trials, spent, under_way in database.query(_OPEN)
    )
