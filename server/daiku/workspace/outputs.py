"""Complete outputs of commands, stored per session, which only the read and search tools reach, by name."""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from daiku.guard.rules.referenced_paths import KEPT_OUTPUT, is_kept_output
from daiku.texts.rules.patterns import lazy
from daiku.workspace.paths import is_within

_ENVIRONMENTS = (".venv", "venv", "env")
_NODE = "node_modules"
_PYTHON = "site-packages"


def is_dependency(inside: Path) -> bool:
    """Return True if the path (relative to its root) is inside a folder of installed packages."""
    return not {_NODE, _PYTHON}.isdisjoint(inside.parts)


def find_dependency_folder(roots: tuple[Path, ...], real: Path) -> Path | None:
    """Return the project's dependency folder that contains the real path `real`; None if there is none.

    The folder may lie outside the roots if a link of the project leads to it. To be safe, its real name must
    be a dependency folder's, and an environment must have a pyvenv.cfg.
    """
    return next((folder for folder in _find_folders(roots) if is_within(real, folder)), None)


def _find_folders(roots: tuple[Path, ...]) -> Iterator[Path]:
    for root in roots:
        node = Path(os.path.realpath(root / _NODE))
        if node.name == _NODE:
            yield node
        for name in _ENVIRONMENTS:
            environment = root / name
            if not (environment / "pyvenv.cfg").is_file():
                continue
            for packages in (*environment.glob(f"lib/python3*/{_PYTHON}"), environment / "Lib" / _PYTHON):
                real = Path(os.path.realpath(packages))
                if real.name == _PYTHON:
                    yield real


MAX_OUTPUTS = 40
"""Largest number of outputs stored per session. The oldest are deleted first."""
MAX_AGE_DAYS = 7
"""Days without a new output after which a session's outputs are deleted."""
_SESSION = lazy(r"[A-Za-z0-9_-]{1,80}")
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)


class Outputs:
    """Command outputs below `folder`, one folder per session.

    `redact` is applied before writing. All methods block.
    """

    def __init__(self, folder: Path, redact: Callable[[str], str] = str) -> None:
        self._folder = folder
        self._redact = redact

    def keep(self, session: str, words: str, text: str, *, again: bool = False) -> str:
        """Store `text` under a name made of `words` and return the name; empty if it cannot be stored.

        With `again`, the output of that name is replaced.
        """
        parts = re.findall(r"[A-Za-z0-9]+", words)
        base = "-".join(parts if again else parts[:2]).lower()[:40].strip("-") or "command"
        try:
            self._make(session)
            with self._open(session) as folder:
                names = set(os.listdir(folder))  # noqa: PTH208  # of a descriptor
                name = base if again else _free_name(base, names)
                with suppress(FileNotFoundError):
                    os.unlink(f"{name}.txt", dir_fd=folder)
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE
                file = os.open(f"{name}.txt", flags, 0o600, dir_fd=folder)
                with os.fdopen(file, "w", encoding="utf-8", errors="replace", newline="") as out:
                    out.write(self._redact(text))
                _delete_oldest(folder)
        except (OSError, ValueError):
            return ""
        return f"{KEPT_OUTPUT}{name}"

    def read(self, session: str, path: str) -> str | None:
        """Return the session's output called `path`; None if there is none."""
        if not is_kept_output(path):
            return None
        try:
            with self._open(session) as folder:
                file = os.open(f"{path.removeprefix(KEPT_OUTPUT)}.txt", os.O_RDONLY | _FILE, dir_fd=folder)
                with os.fdopen(file, encoding="utf-8", errors="replace", newline="") as output:
                    if not stat.S_ISREG(os.fstat(file).st_mode):
                        return None
                    return output.read()
        except (OSError, ValueError):
            return None

    def forget(self, session: str) -> None:
        """Delete a session's outputs."""
        if _SESSION.fullmatch(session):
            shutil.rmtree(self._folder / session, ignore_errors=True)

    def swept(self) -> Self:
        """Delete the outputs of sessions without a new one for MAX_AGE_DAYS, and return self."""
        with suppress(OSError):
            for entry in os.scandir(self._folder):
                if time.time() - entry.stat(follow_symlinks=False).st_mtime > MAX_AGE_DAYS * 86_400:
                    self.forget(entry.name)
        return self

    def _make(self, session: str) -> None:
        if not _SESSION.fullmatch(session):
            raise ValueError("no name of a session")
        (self._folder / session).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)

    @contextmanager
    def _open(self, session: str) -> Generator[int]:
        """Open the session's folder without following links below the state folder."""
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


def _free_name(base: str, names: set[str]) -> str:
    name, number = base, 1
    while f"{name}.txt" in names:
        number += 1
        name = f"{base}-{number}"
    return name


def _delete_oldest(folder: int) -> None:
    names = os.listdir(folder)  # of a descriptor
    if len(names) > MAX_OUTPUTS:
        ages = sorted((os.stat(n, dir_fd=folder, follow_symlinks=False).st_mtime_ns, n) for n in names)
        for _, name in ages[: len(names) - MAX_OUTPUTS]:
            os.unlink(name, dir_fd=folder)
