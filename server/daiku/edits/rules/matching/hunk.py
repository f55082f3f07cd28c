"""A hunk as a model wrote it: context, removed and added lines, and its stated place in the file."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Literal

from daiku.dataclass import dataclass
from daiku.edits.rules.matching.match import Level

Tag = Literal[" ", "-", "+"]


@dataclass(frozen=True, slots=True)
class HunkLine:
    """A context, removed or added line.

    `bare`: the raw context line, whose first blank may be text. `any_line`: a context line that the hunk
    lacks.
    """

    tag: Tag
    text: str
    bare: str | None = None
    any_line: bool = False


def parse_hunk_line(line: str) -> HunkLine:
    """Parse a line of a patch by its prefix. A line without one is context whose blank was forgotten."""
    if line[:1] == "-":
        return HunkLine("-", line[1:])
    if line[:1] == "+":
        return HunkLine("+", line[1:])
    return HunkLine(" ", line[1:], bare=line) if line[:1] == " " else HunkLine(" ", line)


@dataclass(frozen=True, slots=True)
class Hunk:
    """A hunk with its stated place.

    `line`: where the old lines should start (from 1). `anchors`: lines above it. `final_newline`: whether the
    new file ends with one, None if unstated. `gap`: indentation of the elision before this hunk, None without
    one.
    """

    lines: tuple[HunkLine, ...]
    line: int | None = None
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    final_newline: bool | None = None
    gap: int | None = None
    placed: bool = True
    """Whether the hunk itself says that it is at the end; otherwise the end is the default for lines without
    a place."""
    block: bool = False
    """Whether old and new lines are two complete texts: if indentation was lost, all of their lines lost it."""

    @property
    def changes(self) -> bool:
        return any(line.tag != " " for line in self.lines)

    def old(self) -> list[str | None]:
        return [None if line.any_line else line.text for line in self.lines if line.tag != "+"]

    def old_text(self) -> list[str]:
        return [line.text for line in self.lines if line.tag != "+" and not line.any_line]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A replacement of the text from `start` to `end` by `new`."""

    start: int
    end: int
    new: str


def build_hunk(search: Sequence[str], replace: Sequence[str], levels: Sequence[Level]) -> Hunk:
    """Return search and replacement lines as a hunk.

    Shared lines are context; trailing whitespace is the file's.
    """
    lines: list[HunkLine] = []
    bare = [[line.rstrip() for line in side] for side in (search, replace)]
    for op, i, j, k, m in SequenceMatcher(None, *bare, autojunk=False).get_opcodes():
        if op == "equal":
            for old, new, level in zip(search[i:j], replace[k:m], levels[i:j], strict=True):
                same = old == new or level > Level.exact
                lines += [HunkLine(" ", old)] if same else [HunkLine("-", old), HunkLine("+", new)]
            continue
        lines += (HunkLine("-", line) for line in search[i:j])
        lines += (HunkLine("+", line) for line in replace[k:m])
    return Hunk(tuple(lines), block=True)
