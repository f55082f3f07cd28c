"""Search for a block of lines in a text: exact, else differing in whitespace, indentation or punctuation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import IntEnum
from itertools import pairwise

from daiku.dataclass import dataclass
from daiku.edits.rules.matching.indents import learn_indents
from daiku.texts.rules.patterns import lazy

_LOOK_ALIKES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys(
            "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "
        ),
        **dict.fromkeys("\u200b\u2060\ufeff", None),
        "\u2026": "...",
    }
)
_UNSAFE = lazy(r"[\s'\"\-.\u0080-\U0010ffff]+")
"""Pattern of what may differ between look-alikes; an anchor has none of it."""
_BLANK = lazy(r"^[^\S\n]*$", re.MULTILINE)
_COMMON = 2000
"""Number of occurrences above which an anchor is poor and another is tried first."""


class Level(IntEnum):
    """How far a block in the file differs from the search."""

    exact = 0
    trailing = 1
    indent = 2
    look_alike = 3
    blanks = 4


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """A match of complete lines: code points `start` to `end`, the lines without line ends, and their levels."""

    start: int
    end: int
    lines: tuple[str, ...]
    levels: tuple[Level, ...]

    @property
    def level(self) -> Level:
        return max(self.levels, default=Level.exact)


def fold_punctuation(line: str) -> str:
    """Return `line` stripped, with look-alike punctuation and spaces as ASCII."""
    return (line if line.isascii() else line.translate(_LOOK_ALIKES)).strip()


def compare(search: str, line: str) -> Level | None:
    """Return how close two lines are; None if they are different lines."""
    if search == line:
        return Level.exact
    if search.rstrip() == line.rstrip():
        return Level.trailing
    if search.strip() == line.strip():
        return Level.indent
    a, b = fold_punctuation(search), fold_punctuation(line)
    if a == b:
        return Level.look_alike
    return Level.blanks if a.split() == b.split() else None


SearchLines = Sequence[str | None]
"""Lines to search for, without line ends; None matches any one line."""


def find_lines(text: str, search: Sequence[str]) -> list[BlockMatch]:
    """Return all matches of the closest level. Indentation may differ if it does so alike in all lines."""
    return select_nearest([span for span in find_windows(text, search) if is_evenly_indented(search, span)])


def select_nearest(spans: Sequence[BlockMatch]) -> list[BlockMatch]:
    """Return the matches of the closest level."""
    level = min((span.level for span in spans), default=Level.exact)
    return [span for span in spans if span.level == level]


def is_evenly_indented(search: SearchLines, span: BlockMatch) -> bool:
    """Return True if the indentation differs in the same way on all lines."""
    return span.level < Level.indent or learn_indents(search, span.lines) is not None


def find_windows(text: str, search: SearchLines) -> list[BlockMatch]:
    """Return all matches of `search`, at any level and with any indentation of each line."""
    full = [(k, line.strip()) for k, line in enumerate(search) if line and line.strip()]
    if not full:
        return _find_blank_lines(text, search)
    spans = _find_windows_at_anchors(text, search, _select_longest(full))
    if not spans:
        fragments = ((k, max(_UNSAFE.split(line), key=len)) for k, line in full)
        spans = _find_windows_at_anchors(
            text, search, _select_longest([fragment for fragment in fragments if fragment[1]])
        )
    return spans


def _select_longest(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the four longest lines, with their numbers."""
    return sorted(lines, key=lambda line: -len(line[1]))[:4]


def find_ignoring_blank_lines(text: str, search: Sequence[str]) -> list[int]:
    """Return the offsets where the non-blank lines of `search` follow one another with equal indentation."""
    lines = [line.rstrip() for line in search if line.strip()]
    if (
        rarest := _find_rarest_anchor(
            text, _select_longest([(k, line.strip()) for k, line in enumerate(lines)])
        )
    ) is None:
        return []
    k, places = rarest
    starts = dict.fromkeys(_find_full_lines_back(text, at, k) for at in places)
    return [start for start in starts if start is not None and _has_full_lines(text, start, lines)]


def _has_full_lines(text: str, start: int, lines: Sequence[str]) -> bool:
    """Return True if the non-blank lines from `start` begin with `lines`."""
    at = start
    for line in lines:
        current = ""
        while not current and at < len(text):
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            current, at = text[at:end].rstrip(), end + 1
        if current != line:
            return False
    return True


def find_line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _find_blank_lines(text: str, search: SearchLines) -> list[BlockMatch]:
    """Return exact matches of blank lines only, which have no anchor."""
    if not search:
        return []
    windows = (_match_window(text, search, match.start()) for match in _BLANK.finditer(text))
    return [span for span in windows if span and span.level == Level.exact]


def _find_windows_at_anchors(
    text: str, search: SearchLines, anchors: Sequence[tuple[int, str]]
) -> list[BlockMatch]:
    """Return the windows around the occurrences of the rarest anchor."""
    if (rarest := _find_rarest_anchor(text, anchors)) is None:
        return []
    k, places = rarest
    starts = dict.fromkeys(_find_lines_back(text, at, k) for at in places)
    return [span for start in starts if start is not None and (span := _match_window(text, search, start))]


def _find_rarest_anchor(text: str, anchors: Sequence[tuple[int, str]]) -> tuple[int, list[int]] | None:
    """Return the first anchor that is not too common, else the rarest: its line index and occurrences.

    Return None if an anchor does not occur.
    """
    best: tuple[int, list[int]] | None = None
    for k, anchor in anchors:
        places = _find_occurrences(text, anchor, _COMMON)
        if not places:
            return None
        if best is None or len(places) < len(best[1]):
            best = (k, places)
        if len(places) < _COMMON:
            break
    if best is None or len(best[1]) < _COMMON:
        return best
    return best[0], _find_occurrences(text, dict(anchors)[best[0]], None)


def _find_occurrences(text: str, part: str, limit: int | None) -> list[int]:
    """Return the offsets of `part`, one per line; the first `limit` of them."""
    offsets: list[int] = []
    at = text.find(part)
    while at >= 0 and len(offsets) != limit:
        offsets.append(at)
        end = text.find("\n", at)
        at = text.find(part, end + 1) if end >= 0 else -1
    return offsets


def _find_lines_back(text: str, offset: int, lines: int) -> int | None:
    """Return the start of the line that is `lines` above that of `offset`; None if there is none."""
    start = find_line_start(text, offset)
    for _ in range(lines):
        if start == 0:
            return None
        start = find_line_start(text, start - 1)
    return start


def _find_full_lines_back(text: str, offset: int, lines: int) -> int | None:
    """Return the start of the line that is `lines` non-blank lines above; None if there is none."""
    start = find_line_start(text, offset)
    while lines:
        if start == 0:
            return None
        end = start - 1
        start = find_line_start(text, end)
        lines -= bool(text[start:end].strip())
    return start


def _match_window(text: str, search: SearchLines, start: int) -> BlockMatch | None:
    """Return the match of `search` at `start`; None if a line differs."""
    lines: list[str] = []
    levels: list[Level] = []
    at = start
    for expected in search:
        if at >= len(text):
            return None
        newline = text.find("\n", at)
        end = len(text) if newline < 0 else newline
        line = text[at:end]
        level = Level.exact if expected is None else compare_in_file(expected, line)
        if level is None:
            return None
        lines.append(line)
        levels.append(level)
        at = len(text) + 1 if newline < 0 else newline + 1
    return BlockMatch(start, min(at, len(text)), tuple(lines), tuple(levels))


def compare_in_file(search: str, line: str) -> Level | None:
    """Return how close a line is to a line of a file that may have CR LF line ends."""
    return compare(search, line if search.endswith("\r") else line.removesuffix("\r"))


def find_tokens(text: str, search: str) -> list[tuple[int, int]]:
    """Find places (start, end) with the same tokens as `search` and different whitespace."""
    tokens = re.findall(r"\w+|[^\w\s]", search)
    if len(tokens) < 4 or len(tokens) > 2000:
        return []
    if any(token not in text for token in sorted(set(tokens), key=len)[-3:]):
        return []
    pattern = re.escape(tokens[0])
    for before, token in pairwise(tokens):
        between = r"\s+" if _is_word(before) and _is_word(token) else r"\s*"
        pattern += between + re.escape(token)
    head = r"(?<!\w)" if _is_word(tokens[0]) else ""
    tail = r"(?!\w)" if _is_word(tokens[-1]) else ""
    return [match.span() for match in re.finditer(head + pattern + tail, text)]


def _is_word(token: str) -> bool:
    return token[0].isalnum() or token[0] == "_"
