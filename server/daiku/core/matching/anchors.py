"""The lines that a hunk names above it (`@@ def f():`): where they stand, and what lies in their block."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daiku.core.matching.match import BlockMatch, Level, find_lines, line_start
from daiku.dataclass import dataclass

_DEFINES = re.compile(
    r"^[ \t]*(?:(?:export|default|async|public|private|protected|static|pub|abstract|final|override)\s+)*"
    r"(?:def|class|function|func|fn|interface|struct|impl|enum|type|trait|module|namespace|const \w+ =)\b",
    re.MULTILINE,
)
_MOST = 200
"""Places of one anchor beyond which it says nothing."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What an anchor narrows the search to: from its own line at `start`, which ends at `below`, to the end
    of its block."""

    start: int
    below: int
    end: int

    def holds(self, span: BlockMatch) -> bool:
        """Return whether the span starts in the block, or contains the anchor line itself."""
        return self.start <= span.start < self.end or span.start <= self.start < span.end

    def reaches(self, text: str, span: BlockMatch) -> bool:
        """Return whether the span is in the block, or below it with no other definition between the two."""
        return self.holds(span) or (
            self.end <= span.start and not _DEFINES.search(text, self.below, span.start)
        )


def find_scopes(text: str, anchors: Sequence[str]) -> list[Scope] | None:
    """All places where the anchors stand, each within the block of the one before; None where one is nowhere.
    Without anchors an empty list."""
    found: list[Scope] = []
    for depth, anchor in enumerate(anchors):
        spans = find_lines(text, [anchor]) or _lines_holding(text, anchor)
        if depth:
            spans = [s for s in spans if any(outer.start <= s.start < outer.end for outer in found)]
        if not spans:
            return None
        found = [Scope(span.start, span.end, _block_end(text, span)) for span in spans[:_MOST]]
    return found


def _lines_holding(text: str, anchor: str) -> list[BlockMatch]:
    """An anchor may be the beginning of a line (`def f(` without its arguments)."""
    found: list[BlockMatch] = []
    part = anchor.strip()
    at = text.find(part) if part else -1
    while at >= 0 and len(found) < _MOST:
        first, newline = line_start(text, at), text.find("\n", at)
        stop = len(text) if newline < 0 else newline + 1
        if not text[first:at].strip():
            found.append(BlockMatch(first, stop, (text[first:stop].rstrip("\r\n"),), (Level.indent,)))
        at = text.find(part, stop) if stop < len(text) else -1
    return found


def _block_end(text: str, head: BlockMatch) -> int:
    """Where the block that `head` opens ends: the next line that is indented no deeper, brackets apart."""
    depth = len(head.lines[-1]) - len(head.lines[-1].lstrip())
    at = head.end
    while at < len(text):
        newline = text.find("\n", at)
        stop = len(text) if newline < 0 else newline + 1
        line = text[at:stop]
        shallow = len(line) - len(line.lstrip()) <= depth
        if line.strip() and shallow and line.strip()[0] not in "})]{":
            return at
        at = stop
    return len(text)
