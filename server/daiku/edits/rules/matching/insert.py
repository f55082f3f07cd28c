"""Putting lines into a text: kept lines stay as they stand, added ones take on indentation and line ends."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from daiku.dataclass import dataclass, field
from daiku.edits.rules.matching.hunk import Hunk, Replacement, Tag
from daiku.edits.rules.matching.indents import indent_of, learn_indents
from daiku.edits.rules.matching.match import BlockMatch, Level
from daiku.edits.rules.matching.refusal import Refusal, line_number

_TOKEN = re.compile(r"(\s*)(\w+|[^\w\s])")
_ALIKE = 0.5
"""Least share of a removed line's tokens in an added line that counts as its changed form."""


@dataclass(frozen=True, slots=True)
class _OldLine:
    """A kept or removed line: as the model wrote it, as the file has it, and how near the two are."""

    tag: Tag
    wanted: str
    there: str
    level: Level


def _keep_blanks(added: str, instead_of: Sequence[_OldLine], removed: Sequence[_OldLine]) -> str:
    """Return an added line with the file's whitespace if it only moved or replaces `instead_of`."""
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
    if matcher.ratio() < _ALIKE:
        return None
    origin = {m: i for i, m in _pairs(matcher)}
    parts: list[str] = []
    for m, (gap, token) in enumerate(b):
        i = origin.get(m)
        together = i is not None and (m == 0 or origin.get(m - 1) == i - 1)
        parts += (c[i][0] if i is not None and together and a[i][0] == gap else gap, token)
    return "".join(parts)


def _similarity(one: str, other: str) -> float:
    """How much two lines have of one another, from 0 to 1."""
    return _matcher(_TOKEN.findall(one), _TOKEN.findall(other)).ratio()


def _matcher(one: Sequence[tuple[str, str]], other: Sequence[tuple[str, str]]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, [token for _, token in one], [token for _, token in other], autojunk=False)


def _pairs(matcher: SequenceMatcher[str]) -> list[tuple[int, int]]:
    return [(i + n, m + n) for i, m, size in matcher.get_matching_blocks() for n in range(size)]


_WORD = re.compile(r"\w+")
Lines = list[tuple[str, str]]
"""Lines, each with its line end."""


def replacement_for(text: str, hunk: Hunk, span: BlockMatch) -> Replacement | Refusal:
    """Return the hunk's replacement text; a Refusal if an added line's indentation is ambiguous."""
    drift = (
        learn_indents(hunk.old(), span.lines, shift=not hunk.block) if span.level >= Level.indent else None
    )
    eol = _line_end(text, span, faithful=any(line is not None and line.endswith("\r") for line in hunk.old()))
    out: Lines = []
    everything = [line for line in _old_lines(hunk, span) if line.tag == "-"]
    for change in _changes(hunk, span):
        out += (_kept(text, hunk, line.there) for line in change.kept)
        for number, added in enumerate(change.added):
            instead_of = change.removed[number : number + 1]
            body: str | None = _keep_blanks(added, instead_of, everything)
            if drift is not None:
                body = (
                    drift.apply(body) if hunk.block or not drift.is_ambiguous(body) else change.beside(body)
                )
            if body is None:
                return Refusal(
                    f"The indentation of this line is in doubt, because the lines around line"
                    f" {line_number(text, span.start)} have lost theirs: {added[:200]!r}"
                )
            out.append((body.removesuffix("\r") if eol == "\r\n" else body, eol))
    return Replacement(
        _start(text, hunk, span, out), span.end, join_lines(text, span.end, out, hunk.final_newline)
    )


def _kept(text: str, hunk: Hunk, line: str) -> tuple[str, str]:
    """A kept line and its line end, which goes with it where the file has no final one."""
    ends = hunk.final_newline is None and line.endswith("\r") and not text.endswith(("\r", "\n"))
    return (line[:-1], "\r\n") if ends else (line, "\n")


def _start(text: str, hunk: Hunk, span: BlockMatch, out: Lines) -> int:
    """Where the place starts: with the line end above it where the last lines go of a file without a final one."""
    if out or hunk.final_newline is not None or span.end < len(text) or text.endswith("\n") or not span.start:
        return span.start
    return span.start - len(line_end_at(text, span.start - 1))


@dataclass(slots=True)
class _LineChange:
    """Kept lines, then lines that go and lines that come; `below` is the line after them."""

    kept: list[_OldLine] = field(default_factory=list[_OldLine])
    removed: list[_OldLine] = field(default_factory=list[_OldLine])
    added: list[str] = field(default_factory=list[str])
    below: _OldLine | None = None

    def beside(self, added: str) -> str | None:
        """Return an added line indented like the removed line that it replaces, else like its neighbors."""
        indent, body = indent_of(added), added.lstrip()
        likeness = {line: _version(line.wanted.strip(), body) for line in self.removed}
        most = max(likeness.values(), default=0)
        if most > _ALIKE:
            same = [
                line for line, how in likeness.items() if how == most and indent_of(line.wanted) == indent
            ]
            found = {indent_of(line.there) for line in same}
            return found.pop() + body if len(found) == 1 else None
        within = [*self.removed, *([self.below] if self.below else [])]
        near = [line for line in [*self.kept[-1:], *within] if line.wanted.strip()]
        found = {indent_of(line.there) for line in near if indent_of(line.wanted) == indent}
        if len(found) != 1 or any(not line.wanted.strip() for line in within):
            return None
        return found.pop() + body


def _version(removed: str, added: str) -> float:
    """How much of a removed line an added one has; signs alone (`f()` and `g()`) say nothing."""
    if removed and added.startswith(removed):
        return 1.0
    shared = set(_WORD.findall(removed)).intersection(_WORD.findall(added))
    return _similarity(removed, added) if shared else 0.0


def _old_lines(hunk: Hunk, span: BlockMatch) -> list[_OldLine]:
    old = (line for line in hunk.lines if line.tag != "+")
    both = zip(old, span.lines, span.levels, strict=True)
    return [_OldLine(line.tag, line.text, there, level) for line, there, level in both]


def _changes(hunk: Hunk, span: BlockMatch) -> list[_LineChange]:
    """The hunk as kept lines and changes, one after the other."""
    changes = [_LineChange()]
    old = iter(_old_lines(hunk, span))
    for line in hunk.lines:
        if line.tag == "+":
            changes[-1].added.append(line.text)
            continue
        there = next(old)
        if line.tag == "-":
            if changes[-1].added:
                changes.append(_LineChange())
            changes[-1].removed.append(there)
        else:
            if changes[-1].added or changes[-1].removed:
                changes.append(_LineChange())
            changes[-1].kept.append(there)
    for change, following in pairwise(changes):
        change.below = next(iter([*following.kept, *following.removed]), None)
    return changes


def join_lines(text: str, end: int, out: Sequence[tuple[str, str]], final_newline: bool | None) -> str:
    """The lines as text; at the end of the file the final newline is as before, or as the hunk says."""
    if not out:
        return ""
    new = "".join(body + eol for body, eol in out)
    keeps = final_newline if final_newline is not None else not text or text.endswith("\n")
    if end >= len(text) and not keeps:
        new = new[: len(new) - len(out[-1][1])]
    return new


def _line_end(text: str, span: BlockMatch, *, faithful: bool) -> str:
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


def splice_all(text: str, places: Sequence[Replacement]) -> str | Refusal:
    """Return `text` with all replacements made, or a Refusal if two of them overlap."""
    ordered = sorted(places, key=lambda place: (place.start, place.end))
    for one, other in pairwise(ordered):
        if other.start < one.end or (other.start == one.start and other.end == one.end):
            return Refusal(f"Two hunks change the same lines, at line {line_number(text, other.start)}.")
    parts: list[str] = []
    at = 0
    for place in ordered:
        parts += (text[at : place.start], place.new)
        at = place.end
    return "".join([*parts, text[at:]])


def splice(text: str, start: int, end: int, new: str) -> str:
    """`text` with `new` for what stands from `start` to `end`."""
    old = text[start:end]
    if old and text.find(old) == start:
        return text.replace(old, new, 1)  # one copy of a large text where slices and a join make two
    return "".join((text[:start], new, text[end:]))
