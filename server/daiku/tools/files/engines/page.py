"""The answer of a search as lines: each file's path once, its lines with their numbers, as many as there is room for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from daiku.tools.files.engines.hits import Hit, Query

LONG = 400
"""Characters of a line that are shown."""
_ROOM = 28_000
"""Characters of an answer."""


class Page:
    """The lines of an answer, file by file, as long as there is room."""

    def __init__(self, query: Query, limit: int, name: Callable[[Path], str]) -> None:
        self.lines: list[str] = []
        self.matches: dict[Path, int] = {}
        """How many lines that match are shown of each file."""
        self.is_full = False
        self._limit = limit
        self._context = query.context
        self._name = name
        self._room = _ROOM
        self._last: tuple[Path, int] | None = None
        self._waiting: list[Hit] = []
        """Lines before the next match: they are shown with it, or not at all."""
        self._matched: tuple[Path, int] | None = None

    def add(self, hit: Hit) -> bool:
        """Take a line; False where there is no room for a match."""
        if not hit.is_match:
            if (
                self._matched is None
                or self._matched[0] != hit.path
                or hit.line > self._matched[1] + self._context
            ):
                self._waiting.append(hit)
            else:
                self._put(hit)
            return True
        waiting = [each for each in self._waiting if each.path == hit.path]
        self._waiting.clear()
        size = sum(min(len(each.text), LONG) + 8 for each in (*waiting, hit))
        if sum(self.matches.values()) >= self._limit or (size > self._room and self.lines):
            self.is_full = True
            return False
        for each in (*waiting, hit):
            self._put(each)
        self.matches[hit.path] = self.matches.get(hit.path, 0) + 1
        self._matched = (hit.path, hit.line)
        return True

    def _put(self, hit: Hit) -> None:
        if self._last is None or self._last[0] != hit.path:
            self.lines += [*([""] if self.lines else []), self._name(hit.path)]
        elif self._context and hit.line > self._last[1] + 1:
            self.lines.append("--")
        self._last = (hit.path, hit.line)
        text = hit.text if len(hit.text) <= LONG else f"{hit.text[:LONG]} [… line cut …]"
        self.lines.append(f"{hit.line}{':' if hit.is_match else '-'}{text}")
        self._room -= len(self.lines[-1]) + 1

    def text(self) -> str:
        return "\n".join(self.lines)
