"""Cache of recent fetches: in memory, and in files of the home folder for other sessions."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

from daiku.domain.base import JsonObject
from daiku.guard.rules.redact import redact_encoded

VALID_SECONDS = 3600.0
"""Seconds that a value stays valid."""
MAX_IN_MEMORY = 64
"""Values in memory."""
MAX_ON_DISK = 300
"""Values on disk."""


class WebCache:
    """Values by key for an hour. Keys are stored only as hashes; without a folder, only in memory.

    A value that cannot be written or read counts as missing.
    """

    def __init__(
        self,
        folder: Path | None = None,
        *,
        seconds: float = VALID_SECONDS,
        clock: Callable[[], float] = time.time,
        redact: Callable[[str], str] = str,
    ) -> None:
        """Create the cache. `redact` removes secrets from values that are written to files."""
        self._folder = folder
        self._redact = redact
        self._seconds = seconds
        self._clock = clock
        self._entries: OrderedDict[str, tuple[float, JsonObject]] = OrderedDict()

    def get(self, *key: str) -> JsonObject | None:
        """Return the value if it is still valid."""
        name = _hash_key(key)
        entry = self._entries.get(name) or self._read(name)
        if entry is None or not 0 <= self._clock() - entry[0] < self._seconds:
            return None
        self._remember(name, entry)
        return entry[1]

    def put(self, value: JsonObject, *key: str) -> None:
        """Store `value` under `key`."""
        name = _hash_key(key)
        entry = (self._clock(), value)
        self._remember(name, entry)
        if self._folder is not None:
            with suppress(OSError):
                self._write(self._folder, name, entry)

    def _remember(self, name: str, entry: tuple[float, JsonObject]) -> None:
        self._entries[name] = entry
        self._entries.move_to_end(name)
        if len(self._entries) > MAX_IN_MEMORY:
            self._entries.popitem(last=False)

    def _read(self, name: str) -> tuple[float, JsonObject] | None:
        if self._folder is None:
            return None
        try:
            stored_at, value = json.loads((self._folder / name).read_text("utf-8"))
        except (OSError, ValueError, TypeError):
            return None
        if isinstance(stored_at, int | float) and isinstance(value, dict):
            return float(stored_at), cast("JsonObject", value)
        return None

    def _write(self, folder: Path, name: str, entry: tuple[float, JsonObject]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder)  # 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(redact_encoded(json.dumps(entry, ensure_ascii=False), self._redact))
        Path(temporary).replace(folder / name)
        files = list(folder.iterdir())
        for expired in sorted(files, key=_read_mtime)[: max(0, len(files) - MAX_ON_DISK)]:
            expired.unlink(missing_ok=True)


def _read_mtime(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process removed it
        return 0.0


def _hash_key(key: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
