"""Trace files: lines are appended atomically to the file of their session, readable only by their owner."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.logs import take_lock

ONE_FILE = (".jsonl", ".ndjson", ".json")
LOCKED_BYTE = 2**31 - 2
"""Offset of the byte that a writer locks on Windows: after all lines, so that readers are not blocked."""


@dataclass(frozen=True, slots=True)
class TraceFiles:
    """Trace files: one per session in a folder, or one for all if `path` ends in `.jsonl`.

    Methods block and raise OSError.
    """

    path: Path

    def of(self, session: str) -> Path:
        """Return the file of `session`."""
        return self.path if self._is_single_file else self.path / f"{session}.jsonl"

    @property
    def _is_single_file(self) -> bool:
        return self.path.suffix in ONE_FILE

    def add(self, session: str, lines: str) -> None:
        """Append complete lines to the file of `session`: all of them, or none if the disk is full.

        Other processes wait.
        """
        data, written = lines.encode("utf-8", "replace"), 0
        handle = self._open(self.of(session), os.O_RDWR | os.O_APPEND)
        os.lseek(handle, LOCKED_BYTE, os.SEEK_SET)
        with suppress(OSError):  # some network file systems have no locks
            take_lock(handle)
        size = os.lseek(handle, 0, os.SEEK_END)
        try:
            if size and _byte_at(handle, size - 1) != b"\n":  # a partial line of a killed process
                data = b"\n" + data
            while written < len(data):
                written += os.write(handle, data[written:])
        except OSError:
            if written and os.fstat(handle).st_size == size + written:
                os.ftruncate(handle, size)
            raise
        finally:
            os.close(handle)

    def rewrite(self, session: str, lines: str) -> None:
        """Replace the file of `session` atomically; do nothing if all sessions share one file."""
        if self._is_single_file:
            return
        path = self.of(session)
        part = path.with_name(f".{path.name}.{os.getpid()}")
        handle = self._open(part, os.O_WRONLY | os.O_TRUNC)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(lines.encode("utf-8", "replace"))
            part.replace(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise

    def forget(self, session: str) -> None:
        """Delete the file of `session`, unless all sessions share one file."""
        if not self._is_single_file:
            self.of(session).unlink(missing_ok=True)

    def _open(self, path: Path, how: int) -> int:
        """Open the file, readable only by its owner regardless of the umask."""
        flags = os.O_CREAT | how | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        try:
            handle = os.open(path, flags, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(path, flags, 0o600)
        path.chmod(0o600)
        return handle


def _byte_at(handle: int, place: int) -> bytes:
    os.lseek(handle, place, os.SEEK_SET)
    return os.read(handle, 1)
