"""Keep the file's own whitespace in lines where the model changed whitespace unintentionally."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from daiku.core.matching.hunk import Tag
from daiku.core.matching.match import Level
from daiku.dataclass import dataclass

_TOKEN = re.compile(r"(\s*)(\w+|[^\w\s])")
ALIKE = 0.5
"""How much of a removed line an added one must have to be the same line, changed."""


@dataclass(frozen=True, slots=True)
class OldLine:
    """A kept or removed line: as the model wrote it, as the file has it, and how near the two are."""

    tag: Tag
    wanted: str
    there: str
    level: Level


def keep_blanks(added: str, instead_of: Sequence[OldLine], removed: Sequence[OldLine]) -> str:
    """Return an added line with the file's whitespace where the model changed it by mistake: in a line that
    only moved, and in the one that it replaces (`instead_of`). Indentation is kept."""
    indent = added[: len(added) - len(added.lstrip())]
    body = added.strip()
    for line in removed:
        if body and line.level >= Level.look_alike and line.wanted.strip() == body:
            return indent + line.there.strip()
    for line in instead_of:
        if line.level == Level.blanks:
            new = merge_blanks(line.wanted.strip(), body, line.there.strip())
            return added if new is None else indent + new
    return added


def merge_blanks(search: str, replace: str, there: str) -> str | None:
    """Return `replace` with the whitespace of `there` wherever it has that of `search`; None if `search` and
    `there` differ in more than whitespace, or `replace` is too different."""
    a, b, c = (_TOKEN.findall(line) for line in (search, replace, there))
    if [token for _, token in a] != [token for _, token in c]:
        return None
    matcher = _matcher(a, b)
    if matcher.ratio() < ALIKE:
        return None
    origin = {m: i for i, m in _pairs(matcher)}
    parts: list[str] = []
    for m, (gap, token) in enumerate(b):
        i = origin.get(m)
        together = i is not None and (m == 0 or origin.get(m - 1) == i - 1)
        parts += (c[i][0] if i is not None and together and a[i][0] == gap else gap, token)
    return "".join(parts)


def similarity(one: str, other: str) -> float:
    """How much two lines have of one another, from 0 to 1."""
    return _matcher(_TOKEN.findall(one), _TOKEN.findall(other)).ratio()


def _matcher(one: Sequence[tuple[str, str]], other: Sequence[tuple[str, str]]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, [token for _, token in one], [token for _, token in other], autojunk=False)


def _pairs(matcher: SequenceMatcher[str]) -> list[tuple[int, int]]:
    return [(i + n, m + n) for i, m, size in matcher.get_matching_blocks() for n in range(size)]
