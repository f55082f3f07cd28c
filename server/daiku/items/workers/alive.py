"""Worker liveness by the database's clock, on any machine, and the health of the workers of this home."""

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
"""Seconds between two heartbeats of a worker; at each it also takes over items of dead workers."""
GONE_SECONDS = 20.0
"""Seconds without a heartbeat after which a worker is dead. Longer than a heartbeat and a session's lease
(`store/lease.py`) together, so that the sessions of its items are free."""

LATE_SECONDS = 15 * BEAT_SECONDS
"""Seconds without a health file update after which a worker is stuck."""
LOOK_SECONDS = 900.0
"""Maximum seconds that a poll of the sources may take: a forge can request pauses of minutes."""
SCHEMA = "CREATE TABLE IF NOT EXISTS work_workers(worker TEXT PRIMARY KEY, beaten REAL NOT NULL)"
_NOW = "((julianday('now') - 2440587.5) * 86400.0)"
"""SQL of the database's clock in seconds: those of the machines need not agree."""
_OLD_SECONDS = 86_400.0
"""Seconds after which a dead worker's row is deleted."""


class WorkerStore:
    """The workers that share one database. Methods raise DaikuError if it fails."""

    def __init__(self, db: Database) -> None:
        self._db = db
        db.prepare(SCHEMA)

    def beat(self, worker: str) -> None:
        """Record a heartbeat of the worker."""
        self._db.write(
            f"INSERT INTO work_workers(worker, beaten) VALUES(?, {_NOW})"  # constants
            " ON CONFLICT(worker) DO UPDATE SET beaten = excluded.beaten",
            (worker,),
        )

    def remove(self, worker: str) -> None:
        """Remove the worker: its items can be taken over immediately."""
        self._db.write("DELETE FROM work_workers WHERE worker = ?", (worker,))

    def list_alive(self) -> frozenset[str]:
        """Return the workers with a recent heartbeat.

        One in the future does not count: the clock was set back.
        """
        is_recent = f"beaten BETWEEN {_NOW} - ? AND {_NOW} + ?"
        rows = self._db.query(
            f"SELECT worker FROM work_workers WHERE {is_recent}",  # noqa: S608  # constants
            (GONE_SECONDS, GONE_SECONDS),
        )
        return frozenset(row[0] for row in rows)

    def forget_old(self) -> None:
        """Delete the rows of workers that died long ago."""
        self._db.write(f"DELETE FROM work_workers WHERE beaten < {_NOW} - ?", (_OLD_SECONDS,))  # noqa: S608  # constants

    def remove_ended(self, home: Path) -> None:
        """Remove the workers of this home whose process has ended, without waiting for missing heartbeats."""
        for path in (home / "workers").glob("*.lock"):
            lock = SessionLock(path)
            if lock.acquire():
                try:
                    self.remove(path.stem)
                    with suppress(OSError):  # Windows does not delete an open file
                        path.with_suffix(".json").unlink(missing_ok=True)
                        path.unlink(missing_ok=True)
                finally:
                    lock.release()


def get_lock_path(home: Path, name: str) -> Path:
    """Return the lock file of the worker `name`, held while it lives."""
    return home / "workers" / f"{name}.lock"


def register_worker(home: Path) -> tuple[str, SessionLock]:
    """Return a unique worker name, and the lock that shows that it lives. Raises OSError."""
    while True:
        lock = SessionLock(get_lock_path(home, name := f"worker-{secrets.token_hex(6)}"))
        if lock.acquire():
            return name, lock


def release_worker(home: Path, name: str, lock: SessionLock) -> None:
    """Release a worker's lock and remove its file."""
    path = get_lock_path(home, name)
    with suppress(OSError):  # Windows keeps a file that is open
        path.unlink(missing_ok=True)
    lock.release()
    with suppress(OSError):
        path.unlink(missing_ok=True)


class WorkerHealth(Localizable):
    """Health of a worker. `at`: time of writing in seconds, `looked_at`: end of its last poll (0: none yet)."""

    worker: str
    started_at: float
    at: float
    looked_at: float = 0.0
    poll_seconds: int
    under_way: tuple[str, ...] = ()
    error: Text = NO_TEXT

    def is_well(self, now: float) -> bool:
        """Return True if it works. An unavailable forge does not count: a restart would not help."""
        last_poll = max(self.looked_at, self.started_at)
        return now - self.at <= LATE_SECONDS and now - last_poll <= self.poll_seconds + LOOK_SECONDS


def write_health(home: Path, health: WorkerHealth) -> None:
    """Replace the worker's health file. On failure the worker continues with an outdated file."""
    path = _get_health_path(home, health.worker)
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(health.model_dump_json(by_alias=True) + "\n", "utf-8")
        temporary.replace(path)
    except OSError as error:
        logger.warning("%s: %s", path, error.strerror)


def drop_health(home: Path, worker: str) -> None:
    """Delete the health file of a worker that ends."""
    with suppress(OSError):
        _get_health_path(home, worker).unlink(missing_ok=True)


def read_healths(home: Path) -> tuple[WorkerHealth, ...]:
    """Return the health of the workers of this home whose processes live. Raises OSError."""
    healths: list[WorkerHealth] = []
    for path in sorted((home / "workers").glob("*.json")):
        if (
            get_lock_path(home, path.stem).exists()
            and not SessionLock(get_lock_path(home, path.stem)).is_free()
        ):
            with suppress(ValidationError, OSError):
                healths.append(WorkerHealth.model_validate_json(path.read_text("utf-8")))
    return tuple(healths)


def _get_health_path(home: Path, worker: str) -> Path:
    return home / "workers" / f"{worker}.json"
