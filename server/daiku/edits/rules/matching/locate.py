"""Location of a hunk in a file: every interpretation of its lines is tried, and the closest match is used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from daiku.dataclass import dataclass, replace
from daiku.edits.rules.matching.hunk import Hunk, HunkLine, Replacement, build_replacement
from daiku.edits.rules.matching.indents import learn_indents
from daiku.edits.rules.matching.match import (
    BlockMatch,
    Level,
    compare_in_file,
    find_ignoring_blank_lines,
    find_line_start,
    find_lines,
    find_windows,
)
from daiku.edits.rules.matching.refusal import Refusal, get_line_number, refuse_ambiguous, refuse_not_found

_LONGEST_GAPPED = 40
"""Largest number of old lines of a hunk in which an omitted line is searched for."""

_DEFINES = re.compile(
    r"^[ \t]*(?:(?:export|default|async|public|private|protected|static|pub|abstract|final|override)\s+)*"
    r"(?:def|class|function|func|fn|interface|struct|impl|enum|type|trait|module|namespace|const \w+ =)\b",
    re.MULTILINE,
)
_MOST_PLACES = 200
"""Number of places of one anchor above which it is ignored."""

_WORD = re.compile(r"\w")

_TOP = 4
"""Number of lines from the top within which a hunk that starts with added lines may mean the top."""


@dataclass(frozen=True, slots=True)
class LocatedHunk:
    """One interpretation of a hunk's lines, and a match for it in the file."""

    hunk: Hunk
    span: BlockMatch

    @property
    def rank(self) -> tuple[Level, int]:
        return self.span.level, sum(level > Level.trailing for level in self.span.levels)


def locate(text: str, hunk: Hunk) -> list[LocatedHunk] | Refusal:
    """Return the closest matches of the hunk, in file order, limited to the scope of its anchors."""
    if hunk.line is None and not hunk.at_end and not any(line.strip() for line in hunk.old_text()):
        return Refusal(
            "It names blank lines only, so its place is in doubt: give a line above or below as context."
        )
    matches = (
        _select_nearest(_find_matches(text, hunk))
        or _select_nearest(_find_matches(text, _trim_blank_context(hunk)))
        or _match_with_gap(text, hunk)
    )
    scopes = find_scopes(text, hunk.anchors)
    if not matches:
        return refuse_not_found(text, hunk.old_text())
    if matches[0].span.level >= Level.indent:  # lines that differ in blank lines only also count
        starts = {*find_ignoring_blank_lines(text, hunk.old_text()), *(one.span.start for one in matches)}
        if len(starts) > len(matches):
            return refuse_ambiguous(text, sorted(starts))
    if scopes is None:
        return matches if len(matches) == 1 else refuse_not_found(text, hunk.anchors[-1:])
    if not hunk.anchors and hunk.line is None and all(_may_mean_top(text, one) for one in matches):
        return Refusal(
            "It begins with added lines, as at the top of the file, but the lines below them stand further down: "
            "give the line above the added ones as context."
        )
    if hunk.line is None and any(_is_at_blank_lines(text, one) for one in matches):
        return Refusal(
            "Its added lines stand beside a blank line at its edge, and the file has several blank lines there: give"
            " the line beyond them as context."
        )
    in_scope = _limit_to_place(text, hunk, matches, scopes)
    if not in_scope:
        lines = ", ".join(str(get_line_number(text, one.span.start)) for one in matches[:10])
        return Refusal(
            f"The lines do not stand at or below `@@ {hunk.anchors[-1]}`, only above it (line {lines}): "
            "name the line above them, or leave the anchor out."
        )
    return sorted(in_scope, key=lambda one: one.span.start)


def _may_mean_top(text: str, one: LocatedHunk) -> bool:
    """Return True if added lines come first and only a few lines are above them: the top may be meant."""
    return one.hunk.lines[0].tag == "+" and 1 < get_line_number(text, one.span.start) <= _TOP


def _is_at_blank_lines(text: str, one: LocatedHunk) -> bool:
    """Return True if added lines are next to one of several blank lines of the file."""
    lines, span = one.hunk.lines, one.span
    above = text[: span.start].rsplit("\n", 2)[-2:-1]
    below = text[span.end :].split("\n", 1)[:1] if span.end < len(text) else []
    return _has_blank_edge(lines, above) or _has_blank_edge(lines[::-1], below)


def _has_blank_edge(lines: Sequence[HunkLine], beyond: Sequence[str]) -> bool:
    """Return True if a blank line, added, then removed lines come first: the place is ambiguous."""
    blank = lines[0].tag == " " and not lines[0].text.strip() and not lines[0].any_line
    inner = next((line.tag for line in lines[1:] if line.tag != "+"), " ")
    added = len(lines) > 1 and lines[1].tag == "+"
    return blank and added and inner == "-" and bool(beyond) and not beyond[0].strip()


def _limit_to_place(
    text: str, hunk: Hunk, matches: list[LocatedHunk], scopes: Sequence[AnchorScope]
) -> list[LocatedHunk]:
    """Return the matches at the end, in the anchor's block, or below the anchor, as the hunk says."""
    if hunk.at_end and (last := [one for one in matches if not text[one.span.end :].strip()]):
        matches = last
    if not hunk.anchors:
        return matches
    within = [one for one in matches if any(scope.reaches(text, one.span) for scope in scopes)]
    return within or [one for one in matches if any(one.span.start >= scope.start for scope in scopes)]


def _find_matches(text: str, hunk: Hunk) -> Iterator[LocatedHunk]:
    """Yield the file's windows that match the hunk's old lines, each with the closest interpretation."""
    old = hunk.old()
    if not old:
        return
    for window in find_windows(text, old):
        readings = (_match_at(reading, window) for reading in _interpret(hunk, window))
        best = min((one for one in readings if one), key=lambda one: one.rank, default=None)
        if best is not None:
            yield best


def _select_nearest(matches: Iterator[LocatedHunk]) -> list[LocatedHunk]:
    every = list(matches)
    level = min((one.span.level for one in every), default=Level.exact)
    return [one for one in every if one.span.level == level]


def _interpret(hunk: Hunk, window: BlockMatch) -> Iterator[Hunk]:
    """Yield the hunk as is, with every leading blank restored as text, and with some restored."""
    yield hunk
    if all(line.bare is None for line in hunk.lines):
        return
    bare = tuple(line if line.bare is None else HunkLine(line.tag, line.bare) for line in hunk.lines)
    yield replace(hunk, lines=bare)
    file_line = iter(window.lines)
    mixed = [line if line.tag == "+" else _choose_nearer(line, next(file_line)) for line in hunk.lines]
    yield replace(hunk, lines=tuple(mixed))


def _choose_nearer(line: HunkLine, file_line: str) -> HunkLine:
    if line.bare is None:
        return line
    as_read, as_bare = compare_in_file(line.text, file_line), compare_in_file(line.bare, file_line)
    nearer = as_bare is not None and (as_read is None or as_bare < as_read)
    return HunkLine(line.tag, line.bare) if nearer else line


def _match_at(hunk: Hunk, window: BlockMatch) -> LocatedHunk | None:
    """Return the hunk's match at the window; None if lines differ or their indentation is uneven."""
    old = hunk.old()
    levels: list[Level] = []
    for search, line in zip(old, window.lines, strict=True):
        level = Level.exact if search is None else compare_in_file(search, line)
        if level is None:
            return None
        levels.append(level)
    span = replace(window, levels=tuple(levels))
    if span.level >= Level.indent and not any(_WORD.search(line) for line in hunk.old_text()):
        return None  # a bracket at another depth is a different bracket
    if span.level >= Level.indent and learn_indents(old, span.lines, shift=not hunk.block) is None:
        return None
    return LocatedHunk(hunk, span)


def _trim_blank_context(hunk: Hunk) -> Hunk:
    """Return the hunk without blank context at its edges, except blank lines marked as context."""
    lines, first, last = hunk.lines, 0, len(hunk.lines)
    while first < last and _is_unmarked_blank(lines[first]):
        first += 1
    while last > first and _is_unmarked_blank(lines[last - 1]):
        last -= 1
    cut = (lines[first : first + 1] if first else ()) + (lines[last - 1 : last] if last < len(lines) else ())
    if (first, last) == (0, len(lines)) or any(line.tag == "+" for line in cut):
        return replace(hunk, lines=())  # next to added lines, a blank line marks their place
    return replace(hunk, lines=lines[first:last], line=None if hunk.line is None else hunk.line + first)


def _is_unmarked_blank(line: HunkLine) -> bool:
    return line.tag == " " and not line.text.strip() and not line.any_line and line.bare is None


def _match_with_gap(text: str, hunk: Hunk) -> list[LocatedHunk]:
    """Return the only match with one more line of the file between the old lines; none if it is ambiguous."""
    if len(hunk.old()) > _LONGEST_GAPPED:
        return []
    sure, unsure = _find_gaps(hunk.lines)
    by_result: dict[tuple[int, int, str], LocatedHunk] = {}
    for one in _find_matches_with_gaps(text, hunk, sure):
        place = build_replacement(text, one.hunk, one.span)
        if isinstance(place, Replacement):
            by_result[place.start, place.end, place.new] = one
    if len(by_result) != 1 or any(_find_matches_with_gaps(text, hunk, unsure)):
        return []
    return list(by_result.values())


def _find_matches_with_gaps(text: str, hunk: Hunk, gaps: Sequence[int]) -> Iterator[LocatedHunk]:
    """Yield matches of the hunk with one line of the file in one of the gaps."""
    for number in gaps:
        lines = (*hunk.lines[:number], HunkLine(" ", "", any_line=True), *hunk.lines[number:])
        for one in _find_matches(text, replace(hunk, lines=lines)):
            if one.span.level <= Level.look_alike and _is_distinct_gap(one):
                yield one


def _is_distinct_gap(match: LocatedHunk) -> bool:
    """Return True if the omitted line differs from its neighbors."""
    old = [line for line in match.hunk.lines if line.tag != "+"]
    at = next(number for number, line in enumerate(old) if line.any_line)
    left_out, *neighbors = (match.span.lines[n].strip() for n in (at, at - 1, at + 1))
    return bool(left_out) and left_out not in neighbors


def _find_gaps(lines: Sequence[HunkLine]) -> tuple[list[int], list[int]]:
    """Return where a context line may be missing: between old lines, and (ambiguous) at added ones."""
    old = [number for number, line in enumerate(lines) if line.tag != "+"]
    sure = [
        after
        for before, after in pairwise(old)
        if after == before + 1 and _is_anchored(lines[:after]) and _is_anchored(lines[after:])
    ]
    return sure, [after for before, after in pairwise(old) if after > before + 1]


def _is_anchored(side: Sequence[HunkLine]) -> bool:
    """Return True if nothing changes on this side of a gap, or a non-blank line fixes its place."""
    return all(line.tag == " " for line in side) or any(
        line.tag != "+" and line.text.strip() for line in side
    )


def locate_insertion(text: str, hunk: Hunk) -> int | Refusal:
    """Return the offset for a hunk of added lines only: below its anchor, or at the end."""
    scopes = find_scopes(text, hunk.anchors)
    if scopes is None:
        return refuse_not_found(text, hunk.anchors[-1:])
    if not text:
        return 0
    if hunk.anchors:
        return (
            scopes[0].below if len(scopes) == 1 else refuse_ambiguous(text, [scope.start for scope in scopes])
        )
    if hunk.at_end and (hunk.placed or text.endswith("\n")):
        return len(text)
    return Refusal("It adds lines but does not say where: give a line above or below as context.")


@dataclass(frozen=True, slots=True)
class AnchorScope:
    """The range of an anchor: its line from `start` to `below`, and its block up to `end`."""

    start: int
    below: int
    end: int

    def holds(self, span: BlockMatch) -> bool:
        """Return True if the span starts in the block, or contains the anchor line itself."""
        return self.start <= span.start < self.end or span.start <= self.start < span.end

    def reaches(self, text: str, span: BlockMatch) -> bool:
        """Return True if the span is in the block, or below it with no other definition between the two."""
        return self.holds(span) or (
            self.end <= span.start and not _DEFINES.search(text, self.below, span.start)
        )


def find_scopes(text: str, anchors: Sequence[str]) -> list[AnchorScope] | None:
    """Return all places of the anchors, each within the block of the previous one; None if one is missing."""
    scopes: list[AnchorScope] = []
    for depth, anchor in enumerate(anchors):
        spans = find_lines(text, [anchor]) or _find_lines_with(text, anchor)
        if depth:
            spans = [s for s in spans if any(outer.start <= s.start < outer.end for outer in scopes)]
        if not spans:
            return None
        scopes = [
            AnchorScope(span.start, span.end, _find_block_end(text, span)) for span in spans[:_MOST_PLACES]
        ]
    return scopes


def _find_lines_with(text: str, anchor: str) -> list[BlockMatch]:
    """Return the lines that start with an anchor, which may be `def f(` without its arguments."""
    matches: list[BlockMatch] = []
    part = anchor.strip()
    at = text.find(part) if part else -1
    while at >= 0 and len(matches) < _MOST_PLACES:
        first, newline = find_line_start(text, at), text.find("\n", at)
        stop = len(text) if newline < 0 else newline + 1
        if not text[first:at].strip():
            matches.append(BlockMatch(first, stop, (text[first:stop].rstrip("\r\n"),), (Level.indent,)))
        at = text.find(part, stop) if stop < len(text) else -1
    return matches


def _find_block_end(text: str, head: BlockMatch) -> int:
    """Return the end of `head`'s block: the next line indented no deeper, ignoring brackets."""
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
