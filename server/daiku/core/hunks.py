"""Hunks: old and new lines at one place of a file; locating them and putting them in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

from daiku.core.match import Level, Span, find_lines, indent_map, line_start, reindent
from daiku.core.refusal import Refusal, ambiguous, line_number, not_found

Tag = Literal[" ", "-", "+"]


@dataclass(frozen=True, slots=True)
class HunkLine:
    """One line: kept, removed or added. `bare` is the line as it came, when its first blank may be
    part of it (a context line whose leading blank was forgotten)."""

    tag: Tag
    text: str
    bare: str | None = None


@dataclass(frozen=True, slots=True)
class Hunk:
    """`line`: where the old lines should begin (from 1). `anchors`: lines that stand above it. `final_newline`:
    what the hunk says of the end of the new file, None when nothing."""

    lines: tuple[HunkLine, ...]
    line: int | None = None
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    final_newline: bool | None = None
    exact_insert: bool = False
    """A hunk without old lines whose line number is to be trusted (`@@ -7,0 +8,2 @@`)."""

    @property
    def changes(self) -> bool:
        return any(line.tag != " " for line in self.lines)

    def old(self) -> list[str]:
        return [line.text for line in self.lines if line.tag != "+"]


@dataclass(frozen=True, slots=True)
class _Place:
    start: int
    end: int
    new: str


def apply_hunks(text: str, hunks: Sequence[Hunk]) -> str | Refusal:
    """`text` with every hunk put in, or why one of them cannot be. All are located in the old text."""
    changing = [hunk for hunk in hunks if hunk.changes]
    options: list[tuple[_Place, ...]] = []
    for number, hunk in enumerate(changing, 1):
        found = _places(text, hunk)
        if isinstance(found, Refusal):
            return _at(found, number, changing)
        options.append(found)
    places: list[_Place] = []
    for number, place in enumerate(_in_order(options), 1):
        if place is None:
            return _at(ambiguous(text, [p.start for p in options[number - 1]]), number, changing)
        places.append(place)
    places.sort(key=lambda place: (place.start, place.end))
    for one, other in pairwise(places):
        if other.start < one.end or (other.start == one.start and other.end == one.end):
            return Refusal(f"Two hunks change the same lines, at line {line_number(text, other.start)}.")
    parts: list[str] = []
    at = 0
    for place in places:
        parts += (text[at : place.start], place.new)
        at = place.end
    parts.append(text[at:])
    return "".join(parts)


def _at(refusal: Refusal, number: int, hunks: Sequence[Hunk]) -> Refusal:
    return refusal if len(hunks) == 1 else refusal.within(f"Hunk {number} of {len(hunks)}")


def _in_order(options: Sequence[Sequence[_Place]]) -> list[_Place | None]:
    """One place each: the only one, or the only one that is left when hunks follow one another in the file."""
    earliest: list[_Place | None] = []
    end = 0
    for places in options:
        first = next((place for place in places if place.start >= end), None)
        end = first.end if first else end
        earliest.append(first)
    latest: list[_Place | None] = []
    for places in reversed(options):
        start = next((place.start for place in reversed(latest) if place), None)
        last = next((place for place in reversed(places) if start is None or place.end <= start), None)
        latest.append(last)
    return [
        places[0] if len(places) == 1 else early if early is late else None
        for places, early, late in zip(options, earliest, reversed(latest), strict=True)
    ]


def _places(text: str, hunk: Hunk) -> tuple[_Place, ...] | Refusal:
    """The places of the hunk as it reads best, in the order of the file."""
    scope = _scope(text, hunk.anchors)
    if isinstance(scope, Refusal):
        return scope
    if not hunk.old():
        insertion = _locate_insertion(text, hunk, scope)
        return insertion if isinstance(insertion, Refusal) else (insertion,)
    for variant in _variants(hunk):
        if spans := find_lines(text, variant.old()):
            meant = _meant(text, variant, spans, scope)
            return tuple(_put(text, variant, span) for span in sorted(meant, key=lambda s: s.start))
    return not_found(text, hunk.old())


def _variants(hunk: Hunk) -> list[Hunk]:
    """The hunk as it reads, as it reads with forgotten leading blanks, and both without blank edges."""
    bare = tuple(HunkLine(x.tag, x.bare if x.bare is not None else x.text) for x in hunk.lines)
    readings = [hunk.lines] + ([bare] if bare != hunk.lines else [])
    readings += [trimmed for lines in readings if (trimmed := _trim(lines)) != lines]
    return [
        Hunk(lines, hunk.line, hunk.anchors, hunk.at_end, hunk.final_newline)
        for lines in readings
        if any(line.tag != "+" for line in lines)
    ]


def _trim(lines: tuple[HunkLine, ...]) -> tuple[HunkLine, ...]:
    first, last = 0, len(lines)
    while first < last and lines[first].tag == " " and not lines[first].text.strip():
        first += 1
    while last > first and lines[last - 1].tag == " " and not lines[last - 1].text.strip():
        last -= 1
    return lines[first:last]


@dataclass(frozen=True, slots=True)
class _Scope:
    """What an anchor narrows the search to: from its own line at `start`, which ends at `below`, to
    the end of its block. `named` is False where there is no anchor."""

    start: int
    below: int
    end: int
    named: bool


def _scope(text: str, anchors: Sequence[str]) -> _Scope | Refusal:
    start, below, end, named = 0, 0, len(text), False
    for anchor in anchors:
        spans = [s for s in find_lines(text, [anchor]) if start <= s.start < end]
        spans = spans or _lines_holding(text, anchor, start, end)
        if not spans:
            return not_found(text, [anchor])
        if len(spans) > 1:
            return ambiguous(text, [span.start for span in spans])
        start, below, end, named = spans[0].start, spans[0].end, _block_end(text, spans[0]), True
    return _Scope(start, below, end, named)


def _lines_holding(text: str, anchor: str, start: int, end: int) -> list[Span]:
    """An anchor may be the beginning of a line (`def f(` without its arguments)."""
    found: list[Span] = []
    part = anchor.strip()
    at = text.find(part, start, end) if part else -1
    while at >= 0 and len(found) < 20:
        first, newline = line_start(text, at), text.find("\n", at)
        stop = len(text) if newline < 0 else newline + 1
        if not text[first:at].strip():
            found.append(Span(first, stop, (text[first:stop].rstrip("\r\n"),), (Level.indent,)))
        at = text.find(part, stop, end) if stop < end else -1
    return found


def _block_end(text: str, head: Span) -> int:
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


def _meant(text: str, hunk: Hunk, spans: list[Span], scope: _Scope) -> list[Span]:
    """The places that agree with what else the hunk says; all where it says nothing."""
    if hunk.at_end and (last := [s for s in spans if not text[s.end :].strip()]):
        spans = last
    if scope.named:
        within = [s for s in spans if scope.start <= s.start < scope.end]
        return within or [s for s in spans if s.start >= scope.start] or spans
    if len(spans) > 1 and hunk.line is not None:
        return [s for s in spans if line_number(text, s.start) == hunk.line] or spans
    return spans


def _put(text: str, hunk: Hunk, span: Span) -> _Place:
    """The new lines of the place: kept lines stay as they stand in the file, added ones take on its
    indentation and line ends."""
    old = hunk.old()
    pairs = (indent_map(old, span.lines) or {}) if span.level >= Level.indent else {}
    eol = _line_end(text, span, faithful=any(line.endswith("\r") for line in old))
    out: list[tuple[str, str]] = []
    index = 0
    for line in hunk.lines:
        if line.tag == "+":
            body = reindent(line.text, pairs) if pairs else line.text
            out.append((body.removesuffix("\r") if eol == "\r\n" else body, eol))
            continue
        if line.tag == " ":
            out.append((span.lines[index], "\n"))
        index += 1
    return _Place(span.start, span.end, _join(text, span.end, out, hunk.final_newline))


def _join(text: str, end: int, out: list[tuple[str, str]], final_newline: bool | None) -> str:
    """The lines as text; at the end of the file the final newline is as before, or as the hunk says."""
    if not out:
        return ""
    new = "".join(body + eol for body, eol in out)
    keeps = final_newline if final_newline is not None else not text or text.endswith("\n")
    if end >= len(text) and not keeps:
        eol = out[-1][1]
        new = new[: len(new) - len(eol)]
    return new


def _line_end(text: str, span: Span, *, faithful: bool) -> str:
    """What ends an added line: that of its neighbours, unless the hunk itself spells out line ends."""
    if faithful:
        return "\n"
    ended = [line for line in span.lines[: -1 if span.end == len(text) else None] if line]
    if ended:
        return "\r\n" if ended[0].endswith("\r") else "\n"
    return line_end_at(text, span.start)


def line_end_at(text: str, offset: int) -> str:
    """The line end that is in use around `offset`: of its own line, else of the line before."""
    newline = text.find("\n", offset)
    if newline < 0:
        newline = text.rfind("\n", 0, offset)
    return "\r\n" if newline > 0 and text[newline - 1] == "\r" else "\n"


def _locate_insertion(text: str, hunk: Hunk, scope: _Scope) -> _Place | Refusal:
    """A hunk of added lines only: after its anchor, at the end, or at a line number that can be trusted."""
    if not text:
        at = 0
    elif scope.named:
        at = scope.below
    elif hunk.at_end:
        at = len(text)
    elif hunk.exact_insert and hunk.line is not None:
        start = 0
        for _ in range(hunk.line):
            newline = text.find("\n", start)
            if newline < 0 and start >= len(text):
                return Refusal(f"The file has fewer than {hunk.line} lines.")
            start = len(text) if newline < 0 else newline + 1
        at = start
    else:
        return Refusal("It adds lines but does not say where: give a line above or below as context.")
    eol = line_end_at(text, at)
    lines = [(line.text.removesuffix("\r") if eol == "\r\n" else line.text, eol) for line in hunk.lines]
    new = _join(text, at, lines, hunk.final_newline)
    if at and at == len(text) and not text.endswith("\n"):
        new = eol + new
    return _Place(at, at, new)


def hunk_of(search: Sequence[str], replace: Sequence[str], levels: Sequence[Level]) -> Hunk:
    """Search and replacement lines as a hunk: the lines they share are kept as the file has them,
    unless the file's differ inside (`Level.blanks`), where the replacement's count."""
    lines: list[HunkLine] = []
    for op, i, j, k, m in SequenceMatcher(None, search, replace, autojunk=False).get_opcodes():
        if op == "equal":
            for n in range(i, j):
                if levels[n] == Level.blanks:
                    lines += (HunkLine("-", search[n]), HunkLine("+", search[n]))
                else:
                    lines.append(HunkLine(" ", search[n]))
            continue
        lines += (HunkLine("-", line) for line in search[i:j])
        lines += (HunkLine("+", line) for line in replace[k:m])
    return Hunk(tuple(lines))


def put_lines(text: str, search: Sequence[str], replace: Sequence[str], span: Span) -> str:
    """`text` with `replace` for the lines at `span` that `search` matched."""
    place = _put(text, hunk_of(search, replace, span.levels), span)
    return splice(text, place.start, place.end, place.new)


def splice(text: str, start: int, end: int, new: str) -> str:
    """`text` with `new` for what stands from `start` to `end`."""
    old = text[start:end]
    if old and text.find(old) == start:
        return text.replace(old, new, 1)  # one copy of a large text where slices and a join make two
    return "".join((text[:start], new, text[end:]))
