"""Refusals of edits, with the lines of the file that are most similar to the search."""

from __future__ import annotations

import re
from collections.abc import Sequence

from daiku.dataclass import dataclass, replace

_CANDIDATES = 60
_MAX_LINES_SHOWN = 12
SHOWS_LINES = "showsLines"
"""Key in a refused edit's result data that is set if it shows the file's lines, so that a retry can be right."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason, for the model, why nothing was changed.

    `shows_lines`: it quotes the file. `as_wanted`: nothing had to change. `may_insist`: applied if sent again
    unchanged. `missing`: path of a missing file.
    """

    text: str
    shows_lines: bool = False
    as_wanted: bool = False
    may_insist: bool = False
    missing: str = ""

    def within(self, where: str) -> Refusal:
        """Return the refusal with `where`, the part of a larger edit, before its text."""
        return replace(self, text=f"{where}: {self.text}")


AS_WANTED = "It is already as wanted: nothing had to be changed."


def get_line_number(text: str, offset: int) -> int:
    """Return the number (from 1) of the line that contains `offset`."""
    return text.count("\n", 0, offset) + 1


def number_lines(text: str, first: int, last: int) -> str:
    """Return lines `first` to `last` (from 1, inclusive) of `text` with their numbers."""
    return _number_lines(text.split("\n"), first, last)


def _number_lines(lines: Sequence[str], first: int, last: int) -> str:
    last = min(last, len(lines))
    width = len(str(last))
    return "\n".join(f"{n:>{width}} | {lines[n - 1].rstrip()[:300]}" for n in range(max(first, 1), last + 1))


def refuse_not_found(text: str, search: Sequence[str]) -> Refusal:
    """Build the refusal for lines that are not in `text`, with the nearest lines and the first difference."""
    lines = text.split("\n")
    place = _find_nearest(text, lines, search)
    if place is None:
        return Refusal("The text to replace is not in the file, and no line of the file is like it.")
    first, matched = place
    difference = ""
    for offset, line in enumerate(search):
        current = lines[first + offset] if first + offset < len(lines) else None
        if current is None or current.strip() != line.strip():
            file_text = "the file ends here" if current is None else f"the file has: {current.rstrip()[:200]}"
            difference = (
                f"\nFirst difference, line {offset + 1} of the search: {line.rstrip()[:200]}\n{file_text}"
            )
            break
    last = min(first + max(len(search), 1), first + _MAX_LINES_SHOWN)
    like = "Nearest lines" if matched < len(search) else "Only blanks differ, but not alike in all lines"
    return Refusal(
        f"The text to replace is not in the file. {like}:\n{_number_lines(lines, first + 1, last)}{difference}",
        shows_lines=True,
    )


def refuse_ambiguous(text: str, offsets: Sequence[int], advice: str = "") -> Refusal:
    """Build the refusal for a search that matches at several `offsets` of `text`."""
    numbers = [str(get_line_number(text, offset)) for offset in offsets[:10]]
    more = "" if len(offsets) <= 10 else f" and {len(offsets) - 10} more"
    return Refusal(
        f"The text to replace stands in {len(offsets)} places: lines {', '.join(numbers)}{more}. "
        f"Add lines before or after it until it is the only one{advice}.",
        shows_lines=True,
    )


def _find_nearest(text: str, lines: Sequence[str], search: Sequence[str]) -> tuple[int, int] | None:
    """Return the index of the file line where `search` fits best, and how many of its lines are equal."""
    ranked = sorted(range(len(search)), key=lambda i: -len(search[i].strip()))
    starts: dict[int, float] = {}
    for k in [i for i in ranked if search[i].strip()][:4]:
        for index, likeness in _find_similar_lines(text, lines, search[k].strip()):
            starts[index - k] = max(starts.get(index - k, 0.0), likeness)
    if not starts:
        return None

    def score(start: int) -> tuple[int, float]:
        same = sum(
            0 <= start + i < len(lines) and lines[start + i].strip() == line.strip()
            for i, line in enumerate(search)
        )
        return same, starts[start]

    best = max(starts, key=score)
    return max(best, 0), score(best)[0]


def _find_similar_lines(text: str, lines: Sequence[str], core: str) -> list[tuple[int, float]]:
    """Return lines (index, similarity) that contain `core`, else similar ones that share words."""
    from difflib import SequenceMatcher  # when used

    exact = _find_lines_with(text, core)
    if exact:
        return [(index, 1.0) for index in exact]
    words = sorted(set(re.findall(r"\w{3,}", core)), key=len, reverse=True)[:3]
    ratios: dict[int, float] = {}
    for word in words:
        for index in _find_lines_with(text, word):
            if index not in ratios:
                ratios[index] = SequenceMatcher(
                    None, core, lines[index].strip()[:500], autojunk=False
                ).ratio()
    return [(index, ratio) for index, ratio in ratios.items() if ratio >= 0.5]


def _find_lines_with(text: str, part: str) -> list[int]:
    numbers: list[int] = []
    at, counted, number = text.find(part), 0, 0
    while at >= 0 and len(numbers) < _CANDIDATES:
        number += text.count("\n", counted, at)
        counted = at
        numbers.append(number)
        end = text.find("\n", at)
        at = text.find(part, end) if end >= 0 else -1
    return numbers
