"""Unfinished places that a run's own changes left behind: TODO, FIXME, NotImplementedError, "..." (S2P.8)."""

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
    """How often a change put such a line into a file; below zero: took it away."""

    path: str
    text: str
    times: int

    def wire(self) -> LeftoverPlace:
        return LeftoverPlace(path=self.path, text=self.text, count=self.times)


def is_unfinished(line: str) -> bool:
    """Return True if a line says that something is missing. Marks such as TODO count in capitals only."""
    return _WORDS.search(line) is not None or _MARKS.search(line) is not None or bool(omission_kind(line))


def _is_stub(path: str, line: str) -> bool:
    """In a stub file `...` is the whole body."""
    return path.endswith(".pyi") and line[1:].strip() == "..."


def leftovers_of_diff(diff: str) -> Iterator[Leftover]:
    """The unfinished lines that a unified diff adds and takes away."""
    path = ""
    for line in diff.split("\n"):
        if line.startswith(("--- ", "+++ ")):
            named = line[4:].split("\t")[0].strip()
            if named != "/dev/null":
                path = named[2:] if named.startswith(("a/", "b/")) else named
        elif (found := leftover_of(path, line)) is not None:
            yield found


def leftover_of(path: str, line: str) -> Leftover | None:
    """Return the unfinished line that a line of a diff adds or takes away; None for any other line."""
    if line.startswith(("+", "-")) and is_unfinished(line[1:]) and not _is_stub(path, line):
        return Leftover(path, line[1:].strip()[:SHOWN], 1 if line[0] == "+" else -1)
    return None


def merge_leftovers(before: Iterable[Leftover], now: Iterable[Leftover]) -> tuple[Leftover, ...]:
    """Both together, one entry a line and file; what was put in and taken out again is gone."""
    counts: dict[tuple[str, str], int] = {}
    for path, text, times in (*before, *now):
        counts[path, text] = counts.get((path, text), 0) + times
    return tuple(Leftover(path, text, times) for (path, text), times in counts.items() if times)


def new_leftovers(leftovers: Iterable[Leftover]) -> tuple[Leftover, ...]:
    """Those that are there now and were not before."""
    return tuple(each for each in leftovers if each.times > 0)
