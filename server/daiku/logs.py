"""Logs: to a file only, turned over daily, compressed, kept two weeks, without secrets."""

from __future__ import annotations

import gzip
import logging
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def take_lock(fd: int) -> None:
        """Wait for the lock of an open file."""
        msvcrt.locking(fd, msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def take_lock(fd: int) -> None:
        """Wait for the lock of an open file."""
        fcntl.flock(fd, fcntl.LOCK_EX)


KEPT_DAYS = 14
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start_logging(home: Path, redact: Callable[[str], str]) -> Path:
    """Send every log record of this process to `home`/logs/daiku.log; the file.

    `redact` takes the secrets out of each line, tracebacks included. Calling it again replaces the
    first call's handler. Nothing goes to stdout or stderr: they belong to the protocol and the person.
    """
    path = home / "logs" / "daiku.log"
    handler = DailyFile(path)
    handler.setFormatter(_Redacting(FORMAT, redact))
    root = logging.getLogger()
    handlers: list[logging.Handler] = root.handlers
    for old in [h for h in handlers if isinstance(h, DailyFile) or type(h).__name__ == "StreamHandler"]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    for chatty in ("httpx", "httpx2", "httpcore", "openai", "anthropic", "pygls"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.raiseExceptions = False
    return path


class DailyFile(logging.Handler):
    """One file a day, 0600 whatever the umask; older days are compressed beside it and kept `KEPT_DAYS` days.

    Any number of processes may write at once and none loses a line: each write, and the turn of the day, is made
    under a lock that the operating system frees however its holder ends. `now` is the time in seconds.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.path = path
        self._now = now
        self._lock_path = path.with_suffix(".lock")

    def emit(self, record: logging.LogRecord) -> None:
        """Append the record. Errors of the disk are passed over: there is no place to tell them."""
        try:
            line = f"{self.format(record)}\n".encode("utf-8", "replace")
            lock = _open_private(self._lock_path, os.O_RDWR)
            try:
                take_lock(lock)
                now = self._now()
                with suppress(
                    OSError
                ):  # a day that cannot be packed stays where it is, and so does this line
                    self._turn_over(now)
                with os.fdopen(_open_private(self.path, os.O_WRONLY | os.O_APPEND), "ab", 0) as file:
                    file.write(line)
                os.utime(self.path, (now, now))  # a file server may have another day
            finally:
                os.close(lock)  # which lets go of the lock
        except Exception:  # noqa: BLE001  # a log that cannot be written must not end what is logged
            self.handleError(record)

    def _turn_over(self, now: float) -> None:
        """Compress what is of an earlier day, added to what is there of it, and drop what is too old."""
        try:
            last = _day(self.path.stat().st_mtime)
        except FileNotFoundError:
            return
        if last >= _day(now):
            return
        self._pack(self.path.with_name(f"{self.path.name}.{last}.gz"))
        oldest = _day(now - KEPT_DAYS * 86_400)
        for kept in self.path.parent.glob(f"{self.path.name}.*.gz"):
            if kept.name.removeprefix(f"{self.path.name}.").removesuffix(".gz") < oldest:
                kept.unlink(missing_ok=True)

    def _pack(self, archive: Path) -> None:
        # The archive is whole at every moment: whoever is killed here leaves the plain file, or both.
        part = archive.with_suffix(".part")
        with os.fdopen(_open_private(part, os.O_WRONLY | os.O_TRUNC), "wb") as raw:
            if archive.exists():
                with archive.open("rb") as before:
                    shutil.copyfileobj(before, raw)
            with self.path.open("rb") as plain, gzip.open(raw, "wb") as packed:
                shutil.copyfileobj(plain, packed)
        part.replace(archive)
        self.path.unlink()


def _open_private(path: Path, flags: int) -> int:
    handle = os.open(path, flags | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
    if hasattr(os, "fchmod"):
        os.fchmod(handle, 0o600)
    return handle


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


class _Redacting(logging.Formatter):
    """Lines without secrets. What strangers wrote steers no terminal, and a line that it begins is none of ours."""

    def __init__(self, form: str, redact: Callable[[str], str]) -> None:
        super().__init__(form)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        told = self._redact(super().format(record))
        shown = _STEERING.sub(lambda sign: f"\\x{ord(sign[0]):02x}", told)
        return shown.replace("\n", "\n    ")
