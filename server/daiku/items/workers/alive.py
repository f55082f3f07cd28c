"""The workers: which are alive by the database's clock, on any machine, and the health of those of this home."""

from __future__ import annotations

import logging
import secrets
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from daiku.domain.base import Localizable
from daiku.store.database import Database
from daiku.store.lock import SessionLock
from daiku.texts.text import NO_TEXT, Text

logger = logging.getLogger(__name__)
BEAT_SECONDS = 4.0
"""Between two beats of a worker; at each it also looks for items of workers that are gone."""
GONE_SECONDS = 20.0
"""Seconds without a beat after which a worker is gone. Longer than a beat and a session's lease (`store/lease.py`)
together, so that the sessions of its items are free."""

LATE_SECONDS = 15 * BEAT_SECONDS
"""A worker that has written nothing for so long stands still."""
LOOK_SECONDS = 900.0
"""How long a look at the sources may take: a forge can ask for minutes of patience."""
SCHEMA = "CREATE TABLE IF NOT EXISTS work_workers(worker TEXT PRIMARY KEY, beaten REAL NOT NULL)"
_NOW = "((julianday('now') - 2440587.5) * 86400.0)"
"""The database's clock in seconds: those of the machines need not agree."""
_OLD_SECONDS = 86_400.0


class WorkerStore:
    """The workers that share one database. Methods raise DaikuError where it fails."""

    def __init__(self, db: Database) -> None:
        self._db = db
        db.prepare(SCHEMA)

    def beat(self, worker: str) -> None:
        """Note that the worker is alive."""
        self._db.write(
            f"INSERT INTO work_workers(worker, beaten) VALUES(?, {_NOW})"  # constants
            " ON CONFLICT(worker) DO UPDATE SET beaten = excluded.beaten",
            (worker,),
        )

    def leave(self, worker: str) -> None:
        """Note that the worker is gone: its items can be taken over at once."""
        self._db.write("DELETE FROM work_workers WHERE worker = ?", (worker,))

    def alive(self) -> frozenset[str]:
        """The workers that have beaten lately. A beat from the future does not count: the clock was set back."""
        seen = f"beaten BETWEEN {_NOW} - ? AND {_NOW} + ?"
        rows = self._db.query(
            f"SELECT worker FROM work_workers WHERE {seen}",  # noqa: S608  # constants
            (GONE_SECONDS, GONE_SECONDS),
        )
        return frozenset(row[0] for row in rows)

    def forget_old(self) -> None:
        """Drop the rows of workers that nobody saw end."""
        self._db.write(f"DELETE FROM work_workers WHERE beaten < {_NOW} - ?", (_OLD_SECONDS,))  # noqa: S608  # constants

    def leave_ended(self, home: Path) -> None:
        """Note the workers of this home whose process has ended: here nobody has to wait for a beat to stay away."""
        for path in (home / "workers").glob("*.lock"):
            lock = SessionLock(path)
            if lock.acquire():
                try:
                    self.leave(path.stem)
                    with suppress(OSError):  # Windows keeps a file that is open
                        path.with_suffix(".json").unlink(missing_ok=True)
                        path.unlink(missing_ok=True)
                finally:
                    lock.release()


def worker_lock(home: Path, name: str) -> Path:
    """The lock file of the worker called `name`: held while it lives."""
    return home / "workers" / f"{name}.lock"


def own_worker(home: Path) -> tuple[str, SessionLock]:
    """Return a unique worker name, and the lock that shows this home that it lives. Raises OSError."""
    while True:
        lock = SessionLock(worker_lock(home, name := f"worker-{secrets.token_hex(6)}"))
        if lock.acquire():
            return name, lock


def release_worker(home: Path, name: str, lock: SessionLock) -> None:
    """Release a worker's lock and remove its file."""
    path = worker_lock(home, name)
    with suppress(OSError):  # Windows keeps a file that is open
        path.unlink(missing_ok=True)
    lock.release()
    with suppress(OSError):
        path.unlink(missing_ok=True)


class Health(Localizable):
    """Health of a worker. `at`: time of writing in seconds, `looked_at`: of its last look (0: none yet)."""

    worker: str
    started_at: float
    at: float
    looked_at: float = 0.0
    poll_seconds: int
    under_way: tuple[str, ...] = ()
    error: Text = NO_TEXT

    def is_well(self, now: float) -> bool:
        """Return True if it works. A forge that is away is no fault of the worker: to restart it would not help."""
        looked = max(self.looked_at, self.started_at)
        return now - self.at <= LATE_SECONDS and now - looked <= self.poll_seconds + LOOK_SECONDS


def write_health(home: Path, health: Health) -> None:
    """Put the file in the place of the last one. Where that fails the worker goes on: its health is old then."""
    path = _file(home, health.worker)
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(health.model_dump_json(by_alias=True) + "\n", "utf-8")
        temporary.replace(path)
    except OSError as wrong:
        logger.warning("%s: %s", path, wrong.strerror)


def drop_health(home: Path, worker: str) -> None:
    """Take away the file of a worker that ends."""
    with suppress(OSError):
        _file(home, worker).unlink(missing_ok=True)


def healths(home: Path) -> tuple[Health, ...]:
    """How the workers of this home are whose processes live. Raises OSError."""
    found: list[Health] = []
    for path in sorted((home / "workers").glob("*.json")):
        if worker_lock(home, path.stem).exists() and not SessionLock(worker_lock(home, path.stem)).is_free():
            with suppress(ValidationError, OSError):
                found.append(Health.model_validate_json(path.read_text("utf-8")))
    return tuple(found)


def _file(home: Path, worker: str) -> Path:
    return home / "workers" / f"{worker}.json"
