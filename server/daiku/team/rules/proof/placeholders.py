"""Find unfinished lines that a run's changes left: TODO, FIXME, NotImplementedError, "..." (S2P.8)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from daiku.domain.work.handovers import LeftoverPlace
from daiku.texts.rules.omissions import omission_kind
from daiku.texts.rules.patterns import lazy

_WORDS = lazy(r"\b(?:TODO|FIXME|XXX)\b")
_MARKS = lazy(
    r"\braise\s+NotImplementedError\b"
    r"|\bthrow\s+new\s+\w+\([^)]*not\s+implemented"
    r"|\b(?:todo|unimplemented)!\("
    r"|(?:#|//|/\*|<!--)\s*(?:\.\.\.|…|implementation here|your code here|implement (?:this|me)\b)",
    re.IGNORECASE,
)
SHOWN = 160


class Leftover(NamedTuple):
    """An unfinished line in a file, and how often a change added it; negative if it was removed."""

    path: str
    text: str
    times: int

    def to_wire(self) -> LeftoverPlace:
        return LeftoverPlace(path=self.path, text=self.text, count=self.times)


def is_unfinished(line: str) -> bool:
    """Return True if a line says that something is missing. Marks such as TODO count in capitals only."""
    return _WORDS.search(line) is not None or _MARKS.search(line) is not None or bool(omission_kind(line))


def _is_stub(path: str, line: str) -> bool:
    """Return True for `...` in a stub file, where it is the complete body."""
    return path.endswith(".pyi") and line[1:].strip() == "..."


def find_leftovers(diff: str) -> Iterator[Leftover]:
    """Yield the unfinished lines that a unified diff adds and removes."""
    path = ""
    for line in diff.split("\n"):
        if line.startswith(("--- ", "+++ ")):
            name = line[4:].split("\t")[0].strip()
            if name != "/dev/null":
                path = name[2:] if name.startswith(("a/", "b/")) else name
        elif (leftover := find_leftover(path, line)) is not None:
            yield leftover


def find_leftover(path: str, line: str) -> Leftover | None:
    """Return the unfinished line that a diff line adds or removes; None for any other line."""
    if line.startswith(("+", "-")) and is_unfinished(line[1:]) and not _is_stub(path, line):
        return Leftover(path, line[1:].strip()[:SHOWN], 1 if line[0] == "+" else -1)
    return None


def merge_leftovers(before: Iterable[Leftover], now: Iterable[Leftover]) -> tuple[Leftover, ...]:
    """Merge both: one entry per line and file, without lines that were added and removed again."""
    counts: dict[tuple[str, str], int] = {}
    for path, text, times in (*before, *now):
        counts[path, text] = counts.get((path, text), 0) + times
    return tuple(Leftover(path, text, times) for (path, text), times in counts.items() if times)


def select_new_leftovers(leftovers: Iterable[Leftover]) -> tuple[Leftover, ...]:
    """Return the leftovers that were added."""
    return tuple(leftover for leftover in leftovers if leftover.times > 0)
