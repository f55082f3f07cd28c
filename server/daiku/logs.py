"""Logs: to a file only, turned over daily, compressed, kept two weeks, without secrets."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from io import TextIOWrapper
from logging.handlers import TimedRotatingFileHandler
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

KEPT_DAYS = 14
FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def start_logging(home: Path, redact: Callable[[str], str], level: int = logging.INFO) -> Path:
    """Send every log record of this process to `home`/logs/daiku.log; the file.

    `redact` takes the secrets out of each line, tracebacks included. Calling it again replaces the
    first call's handler. Nothing goes to stdout or stderr: they belong to the protocol and the person.
    """
    path = home / "logs" / "daiku.log"
    handler = _PrivateFile(path)
    handler.setFormatter(_Redacting(FORMAT, redact))
    root = logging.getLogger()
    handlers: list[logging.Handler] = root.handlers
    for old in [h for h in handlers if isinstance(h, _PrivateFile) or type(h).__name__ == "StreamHandler"]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(level)
    for chatty in ("httpx", "httpx2", "httpcore", "openai", "anthropic", "pygls"):
        logging.getLogger(chatty).setLevel(max(level, logging.WARNING))
    logging.raiseExceptions = False
    return path


class _PrivateFile(TimedRotatingFileHandler):
    """The day's file, 0600 whatever the umask; yesterday's is compressed beside it. Any number of processes
    write to it: each looks, alone for the moment, whether another one has turned it over meanwhile."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, when="midnight", backupCount=KEPT_DAYS, encoding="utf-8", delay=True, utc=True)
        self._held = 0
        self._lock_file = -1

    def _open(self) -> TextIOWrapper:
        os.close(os.open(self.baseFilename, os.O_CREAT | os.O_WRONLY, 0o600))
        Path(self.baseFilename).chmod(0o600)
        return super()._open()

    def emit(self, record: logging.LogRecord) -> None:
        with self._alone():
            super().emit(record)

    def shouldRollover(self, record: logging.LogRecord) -> int:  # noqa: N802  # the handler's own name
        """Whether the file's last line is of a day that is over."""
        self._follow()
        if time.time() < self.rolloverAt:
            return 0
        try:
            written = Path(self.baseFilename).stat().st_mtime
        except FileNotFoundError:
            written = time.time()
        if written < self.rolloverAt:
            return 1
        self.rolloverAt = self.computeRollover(int(time.time()))  # another process has turned it over
        return 0

    def doRollover(self) -> None:  # noqa: N802  # the handler's own name
        """Compress what stands in the file, and begin a new one. Nothing is lost, however many do it."""
        with self._alone():
            self._follow(close=True)
            day = time.strftime(self.suffix, time.gmtime(self.rolloverAt - self.interval))
            staged = Path(f"{self.baseFilename}.{day}")
            if staged.exists():  # a process ended while it compressed
                _pack(staged)
            if Path(self.baseFilename).exists():
                Path(self.baseFilename).rename(staged)
                _pack(staged)
            packed = sorted(staged.parent.glob(f"{Path(self.baseFilename).name}.*.gz"))
            for old in packed[: max(0, len(packed) - KEPT_DAYS)]:
                old.unlink(missing_ok=True)
            self.rolloverAt = self.computeRollover(int(time.time()))

    def close(self) -> None:
        super().close()
        if self._lock_file >= 0:
            os.close(self._lock_file)
            self._lock_file = -1

    def _follow(self, *, close: bool = False) -> None:
        """Let go of the file that was written to, where it is no longer the day's."""
        if self.stream is None:
            return
        try:
            here = Path(self.baseFilename).stat()
            ours = os.fstat(self.stream.fileno())
            same = (here.st_ino, here.st_dev) == (ours.st_ino, ours.st_dev)
        except FileNotFoundError:
            same = False
        if close or not same:
            self.stream.close()
            self.stream = None

    @contextmanager
    def _alone(self) -> Generator[None]:
        """Inside, no other process writes to the file or turns it over."""
        if fcntl is None:  # Windows does not let an open file be renamed: nothing can be lost
            yield
            return
        if self._lock_file < 0:
            self._lock_file = os.open(f"{self.baseFilename}.lock", os.O_CREAT | os.O_RDWR, 0o600)
        self._held += 1
        if self._held == 1:
            fcntl.flock(self._lock_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            self._held -= 1
            if not self._held:
                fcntl.flock(self._lock_file, fcntl.LOCK_UN)


class _Redacting(logging.Formatter):
    def __init__(self, form: str, redact: Callable[[str], str]) -> None:
        super().__init__(form)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


def _pack(source: Path) -> None:
    """Compress a file into NAME.gz, behind what that holds already; the file goes when all of it is there."""
    target = source.with_name(f"{source.name}.gz")
    half = source.with_name(f"{source.name}.part")
    handle = os.open(half, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as raw:
        if target.exists():
            raw.write(target.read_bytes())
        with source.open("rb") as plain, gzip.open(raw, "wb") as packed:
            shutil.copyfileobj(plain, packed)
        raw.flush()
        os.fsync(raw.fileno())
    half.replace(target)
    source.unlink()
