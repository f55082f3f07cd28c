"""Whole outputs of commands, kept for their session: only the tools that read and search reach them, by name."""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from daiku.guard.rules.referenced_paths import KEPT_OUTPUT, is_kept_output
from daiku.texts.rules.patterns import lazy

MOST = 40
"""Outputs that are kept of one session; the oldest go first."""
DAYS = 7
"""After so many days without a new output those of a session are removed."""
_SESSION = lazy(r"[A-Za-z0-9_-]{1,80}")
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Outputs:
    """The outputs below `folder`, one folder a session. What is kept goes through `redact`. All methods block."""

    def __init__(self, folder: Path, redact: Callable[[str], str] = str) -> None:
        self._folder = folder
        self._redact = redact

    def keep(self, session: str, words: str, text: str, *, again: bool = False) -> str:
        """Keep `text` under a new name made of `words`, or under the same name as before with `again`; the name
        by which it is read and searched, empty where it cannot be kept."""
        parts = re.findall(r"[A-Za-z0-9]+", words)
        base = "-".join(parts if again else parts[:2]).lower()[:40].strip("-") or "command"
        try:
            self._make(session)
            with self._open(session) as folder:
                taken = set(os.listdir(folder))  # noqa: PTH208  # of a descriptor
                name = base if again else _free(base, taken)
                with suppress(FileNotFoundError):
                    os.unlink(f"{name}.txt", dir_fd=folder)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
                file = os.open(f"{name}.txt", flags, 0o600, dir_fd=folder)
                with os.fdopen(file, "w", encoding="utf-8", errors="replace", newline="") as out:
                    out.write(self._redact(text))
                _thin(folder)
        except (OSError, ValueError):
            return ""
        return f"{KEPT_OUTPUT}{name}"

    def read(self, session: str, path: str) -> str | None:
        """The output that this session knows as `path`; None where it has none of that name."""
        if not is_kept_output(path):
            return None
        try:
            with self._open(session) as folder:
                file = os.open(f"{path.removeprefix(KEPT_OUTPUT)}.txt", os.O_RDONLY | _FILE, dir_fd=folder)
                with os.fdopen(file, encoding="utf-8", errors="replace", newline="") as found:
                    if not stat.S_ISREG(os.fstat(file).st_mode):
                        return None
                    return found.read()
        except (OSError, ValueError):
            return None

    def forget(self, session: str) -> None:
        """Remove all of a session."""
        if _SESSION.fullmatch(session):
            shutil.rmtree(self._folder / session, ignore_errors=True)

    def swept(self) -> Self:
        """The same, without the outputs of sessions that had no new one for some days."""
        with suppress(OSError):
            for entry in os.scandir(self._folder):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > DAYS * 86_400:
                    self.forget(entry.name)
        return self

    def _make(self, session: str) -> None:
        if not _SESSION.fullmatch(session):
            raise ValueError("no name of a session")
        (self._folder / session).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)

    @contextmanager
    def _open(self, session: str) -> Generator[int]:
        """A descriptor of the session's folder, reached through no link below the state folder."""
        if not _SESSION.fullmatch(session):
            raise ValueError("no name of a session")
        above = os.open(self._folder, os.O_RDONLY | _FOLDER)
        try:
            folder = os.open(session, os.O_RDONLY | _FOLDER, dir_fd=above)
        finally:
            os.close(above)
        try:
            yield folder
        finally:
            os.close(folder)


def _free(base: str, taken: set[str]) -> str:
    name, number = base, 1
    while f"{name}.txt" in taken:
        number += 1
        name = f"{base}-{number}"
    return name


def _thin(folder: int) -> None:
    names = os.listdir(folder)  # of a descriptor
    if len(names) > MOST:
        ages = sorted((os.stat(n, dir_fd=folder, follow_symlinks=False).st_mtime_ns, n) for n in names)
        for _, name in ages[: len(names) - MOST]:
            os.unlink(name, dir_fd=folder)
