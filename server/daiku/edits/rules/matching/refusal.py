"""An edit that was refused, and the lines of the file that come nearest to what was looked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daiku.dataclass import dataclass, replace

_CANDIDATES = 60
_SHOWN = 12
SHOWS_LINES = "showsLines"
"""What the data of a refused edit's result hold where it shows the file's lines: the next try can be right."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing was changed, for the model. `shows_lines`: it quotes the file. `as_wanted`: nothing had to change.
    `may_insist`: applied if sent again unchanged. `missing`: path of a missing file."""

    text: str
    shows_lines: bool = False
    as_wanted: bool = False
    may_insist: bool = False
    missing: str = ""

    def within(self, where: str) -> Refusal:
        """Return the refusal with `where`, the part of a larger edit, before its text."""
        return replace(self, text=f"{where}: {self.text}")


AS_WANTED = "It is already as wanted: nothing had to be changed."


def line_number(text: str, offset: int) -> int:
    """The number of the line that holds `offset`, from 1."""
    return text.count("\n", 0, offset) + 1


def number_lines(text: str, first: int, last: int) -> str:
    """Lines `first` to `last` (from 1, both included) of `text` with their numbers."""
    return _numbered(text.split("\n"), first, last)


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    last = min(last, len(lines))
    width = len(str(last))
    return "\n".join(f"{n:>{width}} | {lines[n - 1].rstrip()[:300]}" for n in range(max(first, 1), last + 1))


def not_found(text: str, wanted: Sequence[str]) -> Refusal:
    """Build the refusal for lines that are not in `text`, with the nearest lines and the first difference."""
    lines = text.split("\n")
    place = _nearest(text, lines, wanted)
    if place is None:
        return Refusal("The text to replace is not in the file, and no line of the file is like it.")
    first, matched = place
    difference = ""
    for offset, line in enumerate(wanted):
        here = lines[first + offset] if first + offset < len(lines) else None
        if here is None or here.strip() != line.strip():
            there = "the file ends here" if here is None else f"the file has: {here.rstrip()[:200]}"
            difference = (
                f"\nFirst difference, line {offset + 1} of the search: {line.rstrip()[:200]}\n{there}"
            )
            break
    last = min(first + max(len(wanted), 1), first + _SHOWN)
    like = "Nearest lines" if matched < len(wanted) else "Only blanks differ, but not alike in all lines"
    return Refusal(
        f"The text to replace is not in the file. {like}:\n{_numbered(lines, first + 1, last)}{difference}",
        shows_lines=True,
    )


def ambiguous(text: str, offsets: Sequence[int], advice: str = "") -> Refusal:
    """Build the refusal for a search that matches at several `offsets` of `text`."""
    numbers = [str(line_number(text, offset)) for offset in offsets[:10]]
    more = "" if len(offsets) <= 10 else f" and {len(offsets) - 10} more"
    return Refusal(
        f"The text to replace stands in {len(offsets)} places: lines {', '.join(numbers)}{more}. "
        f"Add lines before or after it until it is the only one{advice}.",
        shows_lines=True,
    )


def _nearest(text: str, lines: Sequence[str], wanted: Sequence[str]) -> tuple[int, int] | None:
    """The index of the file line where `wanted` fits best, and how many of its lines are the same."""
    ranked = sorted(range(len(wanted)), key=lambda i: -len(wanted[i].strip()))
    starts: dict[int, float] = {}
    for k in [i for i in ranked if wanted[i].strip()][:4]:
        for index, likeness in _like(text, lines, wanted[k].strip()):
            starts[index - k] = max(starts.get(index - k, 0.0), likeness)
    if not starts:
        return None

    def score(start: int) -> tuple[int, float]:
        same = sum(
            0 <= start + i < len(lines) and lines[start + i].strip() == line.strip()
            for i, line in enumerate(wanted)
        )
        return same, starts[start]

    best = max(starts, key=score)
    return max(best, 0), score(best)[0]


def _like(text: str, lines: Sequence[str], core: str) -> list[tuple[int, float]]:
    """Lines (index, likeness) that hold `core`, else those that share its longest words and look like it."""
    from difflib import SequenceMatcher  # when used

    exact = _lines_with(text, core)
    if exact:
        return [(index, 1.0) for index in exact]
    words = sorted(set(re.findall(r"\w{3,}", core)), key=len, reverse=True)[:3]
    found: dict[int, float] = {}
    for word in words:
        for index in _lines_with(text, word):
            if index not in found:
                found[index] = SequenceMatcher(None, core, lines[index].strip()[:500], autojunk=False).ratio()
    return [(index, ratio) for index, ratio in found.items() if ratio >= 0.5]


def _lines_with(text: str, part: str) -> list[int]:
    found: list[int] = []
    at, counted, number = text.find(part), 0, 0
    while at >= 0 and len(found) < _CANDIDATES:
        number += text.count("\n", counted, at)
        counted = at
        found.append(number)
        end = text.find("\n", at)
        at = text.find(part, end) if end >= 0 else -1
    return found
