"""Logs: to a file only, turned over daily, compressed, kept two weeks, without secrets."""

from __future__ import annotations

import gzip
import logging
import os
import shutil
from collections.abc import Callable
from io import TextIOWrapper
from logging.handlers import TimedRotatingFileHandler
from pathlib import Path

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
    """The day's file, 0600 whatever the umask; yesterday's is compressed beside it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, when="midnight", backupCount=KEPT_DAYS, encoding="utf-8", delay=True, utc=True)
        self.namer = _compressed_name
        self.rotator = _compress

    def _open(self) -> TextIOWrapper:
        os.close(os.open(self.baseFilename, os.O_CREAT | os.O_WRONLY, 0o600))
        Path(self.baseFilename).chmod(0o600)
        return super()._open()


class _Redacting(logging.Formatter):
    def __init__(self, form: str, redact: Callable[[str], str]) -> None:
        super().__init__(form)
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        return self._redact(super().format(record))


def _compressed_name(name: str) -> str:
    return name + ".gz"


def _compress(source: str, target: str) -> None:
    """Another server may have turned the same file over already: then there is nothing to do."""
    try:
        handle = os.open(target, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with Path(source).open("rb") as plain, os.fdopen(handle, "wb") as raw, gzip.open(raw, "wb") as packed:
            shutil.copyfileobj(plain, packed)
        Path(source).unlink()
    except FileNotFoundError:
        return
