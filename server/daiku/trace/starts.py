"""The states of projects as runs began, kept by session below Daiku's home: trials of lessons begin with them."""

from __future__ import annotations

import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from daiku.core.text.patterns import lazy

if TYPE_CHECKING:
    from daiku.domain.trials import ProjectStart

DAYS = 60
"""After so many days a session's starts are removed."""
LARGEST = 64_000_000
"""Bytes that all starts together may take; the oldest sessions go first."""
LARGEST_START = 16_000_000
"""Bytes of one start as JSON: more was not written by us."""
_NAME = lazy(r"[A-Za-z0-9_-]{1,80}")


class Starts:
    """The starts below `folder`, one folder a session, one file a run; nothing is kept that `redact` blacks out. All methods
    block."""

    def __init__(self, folder: Path, redact: Callable[[str], str] = str) -> None:
        self._folder = folder
        self.redact = redact

    def keep(self, session: str, run: str, start: ProjectStart) -> None:
        """Keep it; where the disk does not take it, it is not known later."""
        if not _NAME.fullmatch(session) or not _NAME.fullmatch(run):
            return
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            place = self._folder / session / f"{run}.start"
            place.parent.mkdir(mode=0o700, exist_ok=True)
            new = place.with_suffix(f".{os.getpid()}")
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as out:
                out.write(zlib.compress(start.model_dump_json(exclude_defaults=True).encode(), 6))
            new.replace(place)

    def of(self, session: str) -> dict[str, ProjectStart]:
        """The starts of a session's runs."""
        return dict(self._read(session)) if _NAME.fullmatch(session) else {}

    def sessions(self) -> frozenset[str]:
        """The sessions of which something is kept."""
        with suppress(OSError):
            return frozenset(entry.name for entry in os.scandir(self._folder) if entry.is_dir())
        return frozenset()

    def forget(self, session: str) -> None:
        """Remove all of a session."""
        if _NAME.fullmatch(session):
            shutil.rmtree(self._folder / session, ignore_errors=True)

    def swept(self) -> Self:
        """The same, without what is old, and without the oldest where it is too much."""
        with suppress(OSError):
            entries = sorted(os.scandir(self._folder), key=lambda each: -each.stat().st_mtime)
            size = 0
            for entry in entries:
                size += sum(file.stat().st_size for file in os.scandir(entry.path))
                if size > LARGEST or time.time() - entry.stat().st_mtime > DAYS * 86_400:
                    self.forget(entry.name)
        return self

    def _read(self, session: str) -> Iterator[tuple[str, ProjectStart]]:
        from daiku.domain.trials import ProjectStart  # when used

        for file in sorted((self._folder / session).glob("*.start")):
            with suppress(OSError, ValueError, zlib.error):
                data = zlib.decompressobj().decompress(file.read_bytes(), LARGEST_START)
                yield file.stem, ProjectStart.model_validate_json(data)
