"""The health of each worker of this home: a small file below the home, written at every look and beat."""

from __future__ import annotations

import logging
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from daiku.domain.base import Localizable
from daiku.store.lock import SessionLock
from daiku.texts.text import NO_TEXT, Text
from daiku.work.workers.alive import BEAT_SECONDS, worker_lock

logger = logging.getLogger(__name__)
LATE_SECONDS = 15 * BEAT_SECONDS
"""A worker that has written nothing for so long stands still."""
LOOK_SECONDS = 900.0
"""How long a look at the sources may take: a forge can ask for minutes of patience."""


class Health(Localizable):
    """How a worker is. `at`: when this was written, `looked_at`: when it last had looked at its sources, in seconds of
    this machine's clock (0: not yet); `poll_seconds`: between two looks. `error` is what the last look met."""

    worker: str
    started_at: float
    at: float
    looked_at: float = 0.0
    poll_seconds: int
    under_way: tuple[str, ...] = ()
    error: Text = NO_TEXT

    def is_well(self, now: float) -> bool:
        """Whether it is at work. A forge that cannot be reached is no fault of the worker's: to start it anew would not
        help."""
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
