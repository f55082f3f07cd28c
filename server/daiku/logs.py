"""Log files: rotated daily, compressed, kept for two weeks, redacted."""

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
        """Wait for the exclusive lock of an open file."""
        msvcrt.locking(fd, msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def take_lock(fd: int) -> None:
        """Wait for the lock of an open file."""
        fcntl.flock(fd, fcntl.LOCK_EX)


KEPT_DAYS = 14
"""Days that archives are kept."""
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start_logging(home: Path, redact: Callable[[str], str]) -> Path:
    """Send every log record of this process to `home`/logs/daiku.log and return that path.

    `redact` removes the secrets from each line, tracebacks included. A second call replaces the first call's
    handler. Nothing goes to stdout or stderr: they belong to the protocol and the user.
    """
    path = home / "logs" / "daiku.log"
    handler = DailyFile(path)
    handler.setFormatter(_RedactingFormatter(FORMAT, redact))
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
    """Log handler with one file a day (mode 0600); older days are gzipped and kept `KEPT_DAYS` days.

    Safe for concurrent processes: each write and each rotation holds an OS file lock, which is released when
    its holder exits. `now` returns seconds since the epoch.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        super().__init__()
        self.path = path
        self._now = now
        self._lock_path = path.with_suffix(".lock")

    def emit(self, record: logging.LogRecord) -> None:
        """Append the record. Disk errors are ignored: there is nowhere to report them."""
        try:
            line = f"{self.format(record)}\n".encode("utf-8", "replace")
            lock = _open_private(self._lock_path, os.O_RDWR)
            try:
                take_lock(lock)
                now = self._now()
                with suppress(OSError):  # without rotation the record is still written
                    self._rotate(now)
                with os.fdopen(_open_private(self.path, os.O_WRONLY | os.O_APPEND), "ab", 0) as file:
                    file.write(line)
                os.utime(self.path, (now, now))  # the clock of a file server may differ
            finally:
                os.close(lock)  # releases the lock
        except Exception:  # noqa: BLE001  # logging never raises
            self.handleError(record)

    def _rotate(self, now: float) -> None:
        """Compress the log of an earlier day into its archive, and delete expired archives."""
        try:
            last = _day(self.path.stat().st_mtime)
        except FileNotFoundError:
            return
        if last >= _day(now):
            return
        self._compress(self.path.with_name(f"{self.path.name}.{last}.gz"))
        oldest = _day(now - KEPT_DAYS * 86_400)
        for archive in self.path.parent.glob(f"{self.path.name}.*.gz"):
            if archive.name.removeprefix(f"{self.path.name}.").removesuffix(".gz") < oldest:
                archive.unlink(missing_ok=True)

    def _compress(self, archive: Path) -> None:
        # Write a copy, then rename: a process killed here leaves the plain file, or both, intact.
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


class _RedactingFormatter(logging.Formatter):
    """Formatter that redacts secrets, escapes control characters, and indents continuation lines."""

    def __init__(self, form: str, redact: Callable[[str], str]) -> None:
        super().__init__(form)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        redacted = self._redact(super().format(record))
        escaped = _CONTROL_CHARACTERS.sub(lambda sign: f"\\x{ord(sign[0]):02x}", redacted)
        return escaped.replace("\n", "\n    ")
