"""Apply a search block that elides lines in its middle: match its parts in order, keep what is between."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from daiku.core.edits.elisions import split_at_elisions
from daiku.core.matching.hunk import hunk_of
from daiku.core.matching.indents import indent_of
from daiku.core.matching.insert import replacement_for, splice
from daiku.core.matching.match import BlockMatch, Level, find_windows
from daiku.core.matching.refusal import Refusal, ambiguous, not_found
from daiku.core.text.omissions import omission_kind

_UNEQUAL = "The search leaves lines out in {} places and the replacement in {}: write both out, or leave the same out in both."


def edit_with_gaps(text: str, search: Sequence[str], replace: Sequence[str]) -> str | Refusal | None:
    """Apply an edit whose search elides lines, keeping the elided lines as they are; None if the search elides
    nothing."""
    marks = _marks(search)
    if not marks:
        return None
    kept, said = split_at_elisions(search, marks)
    depths = [len(indent_of(search[mark])) for mark in kept]
    found = _one_below_the_other(text, [part for part in said if part], depths[1:] if not said[0] else depths)
    if isinstance(found, Refusal):
        return found
    between = [_lines(text, one.end, other.start) for one, other in pairwise(found)]
    new = (
        [part for part in split_at_elisions(replace, _marks(replace))[1] if part]
        if _marks(replace)
        else [list(replace)]
    )
    if len(new) != len(between) + 1:
        return Refusal(_UNEQUAL.format(len(between), len(new) - 1))
    whole = BlockMatch(found[0].start, found[-1].end, *_gap_lines(text, found[0].start, found[-1].end))
    filled = [
        *new[0],
        *(line for kept, part in zip(between, new[1:], strict=True) for line in (*kept, *part)),
    ]
    old = [line.removesuffix("\r") for line in whole.lines]
    place = replacement_for(text, hunk_of(old, filled, whole.levels), whole)
    return place if isinstance(place, Refusal) else splice(text, place.start, place.end, place.new)


def _marks(lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if omission_kind(line)]


def _one_below_the_other(
    text: str, said: Sequence[Sequence[str]], depths: Sequence[int]
) -> list[BlockMatch] | Refusal:
    """The only place of each part, below the one before it and within the block that the elision stands in."""
    found: list[BlockMatch] = []
    for number, part in enumerate(said):
        spans = [span for span in find_windows(text, part) if span.level <= Level.trailing]
        if found:
            end, depth = found[-1].end, depths[number - 1]
            spans = [s for s in spans if s.start >= end and _within(_lines(text, end, s.start), depth)]
        if len(spans) != 1:
            return ambiguous(text, [span.start for span in spans]) if spans else not_found(text, part)
        found += spans
    return found


def _within(lines: Sequence[str], depth: int) -> bool:
    return all(len(indent_of(line)) >= depth for line in lines if line.strip())


def _lines(text: str, start: int, end: int) -> list[str]:
    lines = text[start:end].replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _gap_lines(text: str, start: int, end: int) -> tuple[tuple[str, ...], tuple[Level, ...]]:
    lines = text[start:end].removesuffix("\n").split("\n")
    return tuple(lines), (Level.exact,) * len(lines)
