"""What a search looks for, where, and what it answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import NamedTuple, Protocol

from daiku.dataclass import dataclass

LARGEST = 10_000_000
"""Bytes of the largest file that is searched."""
HEAVY = ("node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".pytest_cache")
"""Folders that no one wants searched unless they are named, even where no ignore file names them."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for. `globs` empty: in all files. `context`: lines before and after each match."""

    pattern: str
    regex: bool = False
    ignore_case: bool = False
    multiline: bool = False
    globs: tuple[str, ...] = ()
    context: int = 0


class Place(NamedTuple):
    """A file or folder to look in. `base`: the folder that globs begin at. `everything`: what git ignores too."""

    path: Path
    base: Path
    everything: bool = False


class Hit(NamedTuple):
    """One line, which matches or is beside one that does."""

    path: Path
    line: int
    text: str
    is_match: bool = True


class FileCount(NamedTuple):
    """How many lines of a file match; in a search over several lines, how many matches it has."""

    path: Path
    matches: int


class Engine(Protocol):
    """A way to search. Both methods raise ValueError, with the reason, for a pattern that cannot be read."""

    def lines(self, query: Query, place: Place) -> AsyncGenerator[Hit]:
        """The lines that match, and those beside them, file by file in the order of paths."""
        ...

    def counts(self, query: Query, place: Place) -> AsyncGenerator[FileCount]:
        """The files with a match, in the order of paths."""
        ...
