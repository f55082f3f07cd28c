"""Leases: locks of sessions for processes on several machines that share a PostgreSQL database."""

from __future__ import annotations

import logging
import os
import socket
import threading
from contextlib import suppress

from daiku.domain.errors import DaikuError
from daiku.store.lock import LockLost
from daiku.store.postgres import PostgresDatabase

log = logging.getLogger(__name__)

LEASE_SECONDS = 15.0
"""Time in seconds after which a lease expires, so that another machine can take over."""
RENEW_SECONDS = 4.0
"""Renewal interval in seconds; three renewals may fail."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS leases(
  session TEXT PRIMARY KEY, number INTEGER NOT NULL, holder TEXT NOT NULL, expires REAL NOT NULL);
"""
_NOW = "extract(epoch FROM clock_timestamp())::float8"
"""The database's clock, since clocks of machines may differ."""
# The fencing token only increases, so the row stays when a lease is released.
_TAKE = (
    "INSERT INTO leases AS here(session, number, holder, expires)"  # constants
    f" VALUES(?, 1, ?, {_NOW} + {LEASE_SECONDS}) ON CONFLICT(session) DO UPDATE SET number = here.number + 1,"
    f" holder = excluded.holder, expires = {_NOW} + {LEASE_SECONDS} WHERE here.expires < {_NOW} RETURNING number"
)
_RENEW = (
    f"UPDATE leases SET expires = {_NOW} + {LEASE_SECONDS} WHERE session = ? AND number = ? RETURNING number"  # noqa: S608  # constants
)
_GIVE_BACK = "UPDATE leases SET expires = 0, holder = '' WHERE session = ? AND number = ?"
_HELD = f"SELECT 1 FROM leases WHERE session = ? AND expires >= {_NOW}"  # noqa: S608  # constants


class Lease:
    """The lease of one session: a `Lock` that expires unless it is renewed."""

    def __init__(self, session: str, leases: Leases) -> None:
        self._session = session
        self._leases = leases
        self._is_held = False

    def acquire(self) -> bool:
        """Acquire the lease; False if another holder has it. Raises DaikuError."""
        is_acquired = self._leases.acquire_lease(self._session)
        self._is_held = self._is_held or is_acquired
        return is_acquired

    def is_free(self) -> bool:
        """Return True if nobody holds the lease. Raises DaikuError."""
        return self._leases.is_free(self._session)

    def release(self) -> None:
        """Release the lease; safe to call twice. If the database is unreachable, the lease expires."""
        if self._is_held:
            self._is_held = False
            self._leases.release_lease(self._session)


class Leases:
    """The `Locks` of a PostgreSQL database. A thread renews active leases over its own connection."""

    def __init__(self, database: PostgresDatabase, *, renew_seconds: float = RENEW_SECONDS) -> None:
        self._db = database
        self._db.prepare(_SCHEMA)
        self._holder = f"{socket.gethostname()}:{os.getpid()}"
        self._renew_seconds = renew_seconds
        self._numbers: dict[str, int] = {}
        self._lost: set[str] = set()
        self._alone = threading.Lock()
        self._thread: threading.Thread | None = None
        self._end = threading.Event()

    def of(self, session: str) -> Lease:
        return Lease(session, self)

    def holds(self, session: str) -> bool:
        return session in self._numbers

    def number(self, session: str) -> int:
        number = self._numbers.get(session)
        if number is None or session in self._lost:
            raise LockLost
        return number

    def acquire_lease(self, session: str) -> bool:
        """Try to acquire the lease, durably: otherwise its fencing token could be issued twice."""
        if session in self._numbers:
            return False
        with self._db.durable():
            row = self._db.first(_TAKE, (session, self._holder))
        if row is None:
            return False
        with self._alone:
            self._lost.discard(session)
            self._numbers[session] = row[0]
            if self._thread is None:
                self._end = threading.Event()
                self._thread = threading.Thread(
                    target=self._renew, args=(self._end,), name="daiku-leases", daemon=True
                )
                self._thread.start()
        return True

    def is_free(self, session: str) -> bool:
        """Return True if nobody holds the lease."""
        return session not in self._numbers and self._db.first(_HELD, (session,)) is None

    def release_lease(self, session: str) -> None:
        """Release the lease."""
        with self._alone:
            number = self._numbers.pop(session, None)
            self._lost.discard(session)
            if not self._numbers:
                self._end.set()
                self._thread = None
        if number is None:
            return
        try:
            self._db.write(_GIVE_BACK, (session, number))
        except DaikuError:
            log.warning("the lease of %s was not given back: it runs out", session)

    def close(self) -> None:
        """Release all leases."""
        for session in tuple(self._numbers):
            self.release_lease(session)

    def _renew(self, end: threading.Event) -> None:
        """Renew the leases until there are none."""
        own = PostgresDatabase(self._db.url)
        wait = self._renew_seconds
        while not end.wait(wait):
            with self._alone:
                held = dict(self._numbers)
            try:
                lost = {s for s, number in held.items() if own.first(_RENEW, (s, number)) is None}
                wait = self._renew_seconds
            except DaikuError as wrong:
                log.warning("leases could not be renewed: %s", wrong.failure.message)
                wait = min(1.0, self._renew_seconds)
                continue
            with self._alone:
                for session in lost:
                    if self._numbers.get(session) == held[session] and session not in self._lost:
                        self._lost.add(session)
                        log.warning("another process has taken %s over", session)
        with suppress(DaikuError):
            own.close()
