"""Finding a block of lines in a text: exactly, else with drift in blanks, indentation or punctuation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise

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
_UNSAFE = re.compile(r"[\s'\"\-.\u0080-\U0010ffff]+")
"""What may differ between look-alikes: an anchor has none of it."""
_BLANK = re.compile(r"^[^\S\n]*$", re.MULTILINE)
_COMMON = 2000
"""An anchor that stands more often is a poor one; another is tried first."""


class Level(IntEnum):
    """How far a block in the file is from the block looked for."""

    exact = 0
    trailing = 1
    indent = 2
    look_alike = 3
    blanks = 4


@dataclass(frozen=True, slots=True)
class Span:
    """A place of whole lines: code points `start` to `end` (the last line's end included), the lines
    without their line ends, and for each how near it is."""

    start: int
    end: int
    lines: tuple[str, ...]
    levels: tuple[Level, ...]

    @property
    def level(self) -> Level:
        return max(self.levels, default=Level.exact)


def fold(line: str) -> str:
    """`line` with look-alike punctuation and spaces as ASCII, without blanks around it."""
    return (line if line.isascii() else line.translate(_LOOK_ALIKES)).strip()


def compare(wanted: str, found: str) -> Level | None:
    """How near two lines are; None when they are not the same line."""
    if wanted == found:
        return Level.exact
    if wanted.rstrip() == found.rstrip():
        return Level.trailing
    if wanted.strip() == found.strip():
        return Level.indent
    a, b = fold(wanted), fold(found)
    if a == b:
        return Level.look_alike
    return Level.blanks if a.split() == b.split() else None


def find_lines(text: str, wanted: Sequence[str]) -> list[Span]:
    """All places where `wanted` (lines without line ends) stands, of the nearest level that has any.

    A drift in indentation counts only where it is the same drift in all lines.
    """
    anchors = sorted(((len(line.strip()), k) for k, line in enumerate(wanted)), reverse=True)[:4]
    if not anchors or anchors[0][0] == 0:
        return _blank_lines(text, wanted)
    spans = _with_anchors(text, wanted, [(k, wanted[k].strip()) for _, k in anchors])
    if not spans:
        fragments = ((k, max(_UNSAFE.split(wanted[k]), key=len)) for k in range(len(wanted)))
        ranked = sorted((f for f in fragments if f[1]), key=lambda f: -len(f[1]))[:4]
        spans = _with_anchors(text, wanted, ranked)
    if not spans:
        return []
    nearest = min(span.level for span in spans)
    return [span for span in spans if span.level == nearest]


def line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def _blank_lines(text: str, wanted: Sequence[str]) -> list[Span]:
    """Nothing but blanks has no anchor: only the exact lines are looked for."""
    if not wanted:
        return []
    windows = (_window(text, wanted, match.start()) for match in _BLANK.finditer(text))
    return [span for span in windows if span and span.level == Level.exact]


def _with_anchors(text: str, wanted: Sequence[str], anchors: Sequence[tuple[int, str]]) -> list[Span]:
    """Windows around the occurrences of the first anchor that is not too common, else of the rarest."""
    best: tuple[int, list[int]] | None = None
    for k, anchor in anchors:
        places = _occurrences(text, anchor, _COMMON)
        if not places:
            return []
        if best is None or len(places) < len(best[1]):
            best = (k, places)
        if len(places) < _COMMON:
            break
    if best is None:
        return []
    k, places = best
    if len(places) == _COMMON:
        places = _occurrences(text, dict(anchors)[k], None)
    starts = dict.fromkeys(_lines_back(text, at, k) for at in places)
    return [span for start in starts if start is not None and (span := _window(text, wanted, start))]


def _occurrences(text: str, part: str, limit: int | None) -> list[int]:
    """Where `part` stands, once a line; the first `limit` of them."""
    found: list[int] = []
    at = text.find(part)
    while at >= 0 and len(found) != limit:
        found.append(at)
        end = text.find("\n", at)
        at = text.find(part, end + 1) if end >= 0 else -1
    return found


def _lines_back(text: str, offset: int, lines: int) -> int | None:
    """Where the line starts that is `lines` above the line of `offset`; None above the first."""
    start = line_start(text, offset)
    for _ in range(lines):
        if start == 0:
            return None
        start = line_start(text, start - 1)
    return start


def _window(text: str, wanted: Sequence[str], start: int) -> Span | None:
    """The lines from `start` when each is `wanted`'s."""
    lines: list[str] = []
    levels: list[Level] = []
    at = start
    for want in wanted:
        if at >= len(text):
            return None
        newline = text.find("\n", at)
        end = len(text) if newline < 0 else newline
        line = text[at:end]
        level = compare(want, line if want.endswith("\r") else line.removesuffix("\r"))
        if level is None:
            return None
        lines.append(line)
        levels.append(level)
        at = len(text) + 1 if newline < 0 else newline + 1
    span = Span(start, min(at, len(text)), tuple(lines), tuple(levels))
    return span if span.level < Level.indent or indent_map(wanted, span.lines) is not None else None


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def indent_map(wanted: Sequence[str], found: Sequence[str]) -> dict[str, str] | None:
    """Which indentation of `wanted` is which in the file; None when the shapes differ."""
    pairs: dict[str, str] = {}
    for want, line in zip(wanted, found, strict=True):
        if want.strip() and pairs.setdefault(indent_of(want), indent_of(line)) != indent_of(line):
            return None
    ordered = sorted(pairs.items(), key=lambda pair: len(pair[0]))
    depths = [len(there) for _, there in ordered]
    return pairs if depths == sorted(set(depths)) else None


def reindent(line: str, pairs: dict[str, str]) -> str:
    """`line` with its indentation as the file has it, by what `indent_map` learnt."""
    if not line.strip():
        return line.strip()
    indent = indent_of(line)
    body = line[len(indent) :]
    if indent in pairs:
        return pairs[indent] + body
    known = [here for here in pairs if indent.startswith(here)]
    if known:
        base = max(known, key=len)
        return pairs[base] + _in_units(indent[len(base) :], pairs) + body
    here, there = min(pairs.items(), key=lambda pair: len(pair[0]), default=("", ""))
    if there.endswith(here):
        return there[: len(there) - len(here)] + indent + body
    surplus = here[: len(here) - len(there)] if here.endswith(there) else ""
    return indent.removeprefix(surplus) + body


def _in_units(extra: str, pairs: dict[str, str]) -> str:
    """Deeper indentation in the file's own unit, where the two have different ones (blanks, tabs)."""
    for here, there in sorted(pairs.items(), key=lambda pair: -len(pair[0])):
        if here and there and set(here) != set(there) and len(set(here)) == len(set(there)) == 1:
            per_unit = len(here) / len(there)
            units = len(extra) / per_unit
            if extra and set(extra) == set(here) and units == int(units):
                return there[0] * int(units)
    return extra


def find_tokens(text: str, search: str) -> list[tuple[int, int]]:
    """Places (start, end) with the same words and signs as `search` in another layout."""
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
