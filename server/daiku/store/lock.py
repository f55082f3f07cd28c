"""Locks of sessions: in memory, or on a file, which the operating system releases when the process ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from time import sleep
from typing import Protocol

from daiku.domain.errors import DaikuError, Failure
from daiku.texts.text import text

if sys.platform == "win32":
    import msvcrt

    def _lock_file(fd: int, *, shared: bool = False) -> None:  # noqa: ARG001  # Windows has no shared locks
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock_file(fd: int, *, shared: bool = False) -> None:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


TRIES, PAUSE = 4, 0.002
"""Number of attempts to acquire a lock, and pause in seconds: `is_free` holds it for microseconds."""


def get_locks_folder(database: Path) -> Path:
    """Return the folder of a database's session locks: Daiku's own, or one named after the file."""
    return database.parent / "locks" if database.name == "daiku.db" else Path(f"{database}-locks")


class Lock(Protocol):
    """The lock of one session."""

    def acquire(self) -> bool:
        """Acquire the lock; False if another holder has it."""
        ...

    def is_free(self) -> bool:
        """Return True if nobody holds the lock."""
        ...

    def release(self) -> None:
        """Release the lock; safe to call twice."""
        ...


class Locks(Protocol):
    """The locks of the sessions in one database."""

    def of(self, session: str) -> Lock: ...

    def holds(self, session: str) -> bool:
        """Return True if this process holds the lock, without a system call."""
        ...

    def number(self, session: str) -> int | None:
        """Return the fencing token of a lease, with which the session may be written.

        None for a lock that ends with its process. Raises LockLost.
        """
        ...

    def close(self) -> None: ...


class LockLost(DaikuError):
    """Another process holds the session: this one must not write to it any more."""

    def __init__(self) -> None:
        super().__init__(Failure(kind="busy", message=text("store.lock_lost"), hint=text("store.taken_over")))


class MemoryLock:
    """A lock within this process. `held`: ids of the locked sessions."""

    def __init__(self, session: str, held: set[str]) -> None:
        self._session = session
        self._held = held
        self._is_held = False

    def acquire(self) -> bool:
        if self._session in self._held:
            return False
        self._held.add(self._session)
        self._is_held = True
        return True

    def is_free(self) -> bool:
        return self._session not in self._held

    def release(self) -> None:
        if self._is_held:
            self._held.discard(self._session)
            self._is_held = False


class MemoryLocks:
    """The locks of in-memory sessions."""

    def __init__(self) -> None:
        self._held: set[str] = set()

    def of(self, session: str) -> Lock:
        return MemoryLock(session, self._held)

    def holds(self, session: str) -> bool:
        return session in self._held

    def number(self, session: str) -> None: ...

    def close(self) -> None: ...


class SessionLock:
    """A lock that at most one process holds, once. `held`: names of this process's locks."""

    def __init__(self, path: Path, held: set[str] | None = None) -> None:
        self._path = path
        self._held = held if held is not None else set[str]()
        self._fd: int | None = None

    def acquire(self) -> bool:
        """Acquire the lock, as `Lock.acquire`. Raises OSError."""
        try:
            fd = self._open()
        except FileNotFoundError:  # the first lock of this home
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = self._open()
        if not _try_lock(fd):
            os.close(fd)
            return False
        self._fd = fd
        self._held.add(self._path.stem)
        return True

    def _open(self) -> int:
        return os.open(self._path, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)

    def is_free(self) -> bool:
        """Return True if nobody holds the lock, or if its file cannot be opened.

        The lock is shared meanwhile, so that concurrent checks see it as free.
        """
        if self._path.stem in self._held:
            return False
        try:
            fd = os.open(self._path, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            return True
        try:
            _lock_file(fd, shared=True)
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def release(self) -> None:
        if self._fd is not None:
            self._held.discard(self._path.stem)
            os.close(self._fd)
            self._fd = None


def _try_lock(fd: int) -> bool:
    """Try to lock an open file a few times."""
    for attempt in range(TRIES):
        try:
            _lock_file(fd)
        except OSError:
            if attempt + 1 < TRIES:
                sleep(PAUSE)
        else:
            return True
    return False


class FileLocks(MemoryLocks):
    """The session locks of a database file, for the processes of one machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def of(self, session: str) -> Lock:
        return SessionLock(self._folder / f"{session}.lock", self._held)
