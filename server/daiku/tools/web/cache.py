"""What was fetched a short while ago: in memory, and in files of the home folder for other sessions."""

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

SECONDS = 3600.0
IN_MEMORY = 64
ON_DISK = 300


class Cache:
    """Values by key for an hour. Addresses and questions are kept as hashes only; without a folder
    nothing outlives the process. What cannot be written or read counts as not there."""

    def __init__(
        self,
        folder: Path | None = None,
        *,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.time,
        redact: Callable[[str], str] = str,
    ) -> None:
        """`redact` takes secrets out of what is written to files."""
        self._folder = folder
        self._redact = redact
        self._seconds = seconds
        self._clock = clock
        self._held: OrderedDict[str, tuple[float, JsonObject]] = OrderedDict()

    def get(self, *key: str) -> JsonObject | None:
        """The value, when it is fresh."""
        name = _name(key)
        held = self._held.get(name) or self._read(name)
        if held is None or not 0 <= self._clock() - held[0] < self._seconds:
            return None
        self._hold(name, held)
        return held[1]

    def put(self, value: JsonObject, *key: str) -> None:
        """Keep `value` under `key`."""
        name = _name(key)
        held = (self._clock(), value)
        self._hold(name, held)
        if self._folder is not None:
            with suppress(OSError):
                self._write(self._folder, name, held)

    def _hold(self, name: str, held: tuple[float, JsonObject]) -> None:
        self._held[name] = held
        self._held.move_to_end(name)
        if len(self._held) > IN_MEMORY:
            self._held.popitem(last=False)

    def _read(self, name: str) -> tuple[float, JsonObject] | None:
        if self._folder is None:
            return None
        try:
            at, value = json.loads((self._folder / name).read_text("utf-8"))
        except (OSError, ValueError, TypeError):
            return None
        if isinstance(at, int | float) and isinstance(value, dict):
            return float(at), cast("JsonObject", value)
        return None

    def _write(self, folder: Path, name: str, held: tuple[float, JsonObject]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder)  # 0600
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(redact_encoded(json.dumps(held, ensure_ascii=False), self._redact))
        Path(temporary).replace(folder / name)
        files = list(folder.iterdir())
        for old in sorted(files, key=_changed)[: max(0, len(files) - ON_DISK)]:
            old.unlink(missing_ok=True)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # another process was faster
        return 0.0


def _name(key: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()
