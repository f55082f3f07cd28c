"""A hunk as a model wrote it, and the insertion of its added lines between context lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

from daiku.dataclass import dataclass, field
from daiku.edits.rules.matching.indents import get_indent, learn_indents
from daiku.edits.rules.matching.match import BlockMatch, Level
from daiku.edits.rules.matching.refusal import Refusal, get_line_number

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


_TOKEN = re.compile(r"(\s*)(\w+|[^\w\s])")
_ALIKE = 0.5
"""Smallest share (0 to 1) of common tokens at which an added line counts as a changed removed line."""


@dataclass(frozen=True, slots=True)
class _OldLine:
    """A context or removed line: the model's text, the file's text, and how close they are."""

    tag: Tag
    search: str
    file_text: str
    level: Level


def _keep_blanks(added: str, instead_of: Sequence[_OldLine], removed: Sequence[_OldLine]) -> str:
    """Return an added line with the file's whitespace if it only moved or replaces `instead_of`."""
    indent = added[: len(added) - len(added.lstrip())]
    body = added.strip()
    for line in removed:
        if body and line.level >= Level.look_alike and line.search.strip() == body:
            return indent + line.file_text.strip()
    for line in instead_of:
        if line.level == Level.blanks:
            new = merge_blanks(line.search.strip(), body, line.file_text.strip())
            return added if new is None else indent + new
    return added


def merge_blanks(search: str, replace: str, file_line: str) -> str | None:
    """Return `replace` with the whitespace of `file_line` wherever it has that of `search`.

    Return None if `search` and `file_line` differ in more than whitespace, or `replace` is too different.
    """
    a, b, c = (_TOKEN.findall(line) for line in (search, replace, file_line))
    if [token for _, token in a] != [token for _, token in c]:
        return None
    matcher = _build_matcher(a, b)
    if matcher.ratio() < _ALIKE:
        return None
    origin = {m: i for i, m in _list_pairs(matcher)}
    parts: list[str] = []
    for m, (gap, token) in enumerate(b):
        i = origin.get(m)
        adjacent = i is not None and (m == 0 or origin.get(m - 1) == i - 1)
        parts += (c[i][0] if i is not None and adjacent and a[i][0] == gap else gap, token)
    return "".join(parts)


def _compute_similarity(one: str, other: str) -> float:
    """Return the share of common tokens of two lines, from 0 to 1."""
    return _build_matcher(_TOKEN.findall(one), _TOKEN.findall(other)).ratio()


def _build_matcher(one: Sequence[tuple[str, str]], other: Sequence[tuple[str, str]]) -> SequenceMatcher[str]:
    return SequenceMatcher(None, [token for _, token in one], [token for _, token in other], autojunk=False)


def _list_pairs(matcher: SequenceMatcher[str]) -> list[tuple[int, int]]:
    return [(i + n, m + n) for i, m, size in matcher.get_matching_blocks() for n in range(size)]


_WORD = re.compile(r"\w+")
Lines = list[tuple[str, str]]
"""Lines, each with its line end."""


def build_replacement(text: str, hunk: Hunk, span: BlockMatch) -> Replacement | Refusal:
    """Return the hunk's replacement text; a Refusal if an added line's indentation is ambiguous."""
    drift = (
        learn_indents(hunk.old(), span.lines, shift=not hunk.block) if span.level >= Level.indent else None
    )
    eol = _choose_line_end(
        text, span, faithful=any(line is not None and line.endswith("\r") for line in hunk.old())
    )
    out: Lines = []
    all_removed = [line for line in _pair_old_lines(hunk, span) if line.tag == "-"]
    for change in _group_changes(hunk, span):
        out += (_split_context_line(text, hunk, line.file_text) for line in change.context)
        for number, added in enumerate(change.added):
            instead_of = change.removed[number : number + 1]
            body: str | None = _keep_blanks(added, instead_of, all_removed)
            if drift is not None:
                body = (
                    drift.apply(body)
                    if hunk.block or not drift.is_ambiguous(body)
                    else change.indent_like_neighbors(body)
                )
            if body is None:
                return Refusal(
                    f"The indentation of this line is in doubt, because the lines around line"
                    f" {get_line_number(text, span.start)} have lost theirs: {added[:200]!r}"
                )
            out.append((body.removesuffix("\r") if eol == "\r\n" else body, eol))
    return Replacement(
        _find_start(text, hunk, span, out), span.end, join_lines(text, span.end, out, hunk.final_newline)
    )


def _split_context_line(text: str, hunk: Hunk, line: str) -> tuple[str, str]:
    """Return a context line and its line end: CR belongs to the line end if the file has no final one."""
    ends = hunk.final_newline is None and line.endswith("\r") and not text.endswith(("\r", "\n"))
    return (line[:-1], "\r\n") if ends else (line, "\n")


def _find_start(text: str, hunk: Hunk, span: BlockMatch, out: Lines) -> int:
    """Return the start offset.

    It includes the line end above if the file's last lines, without a final one, go.
    """
    if out or hunk.final_newline is not None or span.end < len(text) or text.endswith("\n") or not span.start:
        return span.start
    return span.start - len(find_line_end(text, span.start - 1))


@dataclass(slots=True)
class _LineChange:
    """Context lines, then removed and added lines. `below` is the next line."""

    context: list[_OldLine] = field(default_factory=list[_OldLine])
    removed: list[_OldLine] = field(default_factory=list[_OldLine])
    added: list[str] = field(default_factory=list[str])
    below: _OldLine | None = None

    def indent_like_neighbors(self, added: str) -> str | None:
        """Indent an added line like the removed line that it replaces, else like its neighbors.

        Return None if that is ambiguous.
        """
        indent, body = get_indent(added), added.lstrip()
        scores = {line: _score_as_version(line.search.strip(), body) for line in self.removed}
        best = max(scores.values(), default=0)
        if best > _ALIKE:
            same = [
                line for line, score in scores.items() if score == best and get_indent(line.search) == indent
            ]
            indents = {get_indent(line.file_text) for line in same}
            return indents.pop() + body if len(indents) == 1 else None
        within = [*self.removed, *([self.below] if self.below else [])]
        near = [line for line in [*self.context[-1:], *within] if line.search.strip()]
        indents = {get_indent(line.file_text) for line in near if get_indent(line.search) == indent}
        if len(indents) != 1 or any(not line.search.strip() for line in within):
            return None
        return indents.pop() + body


def _score_as_version(removed: str, added: str) -> float:
    """Return how much of a removed line an added one has, 0 to 1. Punctuation alone does not count."""
    if removed and added.startswith(removed):
        return 1.0
    shared = set(_WORD.findall(removed)).intersection(_WORD.findall(added))
    return _compute_similarity(removed, added) if shared else 0.0


def _pair_old_lines(hunk: Hunk, span: BlockMatch) -> list[_OldLine]:
    old = (line for line in hunk.lines if line.tag != "+")
    both = zip(old, span.lines, span.levels, strict=True)
    return [_OldLine(line.tag, line.text, file_text, level) for line, file_text, level in both]


def _group_changes(hunk: Hunk, span: BlockMatch) -> list[_LineChange]:
    """Return the hunk as a sequence of changes, each with the context before it."""
    changes = [_LineChange()]
    old = iter(_pair_old_lines(hunk, span))
    for line in hunk.lines:
        if line.tag == "+":
            changes[-1].added.append(line.text)
            continue
        old_line = next(old)
        if line.tag == "-":
            if changes[-1].added:
                changes.append(_LineChange())
            changes[-1].removed.append(old_line)
        else:
            if changes[-1].added or changes[-1].removed:
                changes.append(_LineChange())
            changes[-1].context.append(old_line)
    for change, following in pairwise(changes):
        change.below = next(iter([*following.context, *following.removed]), None)
    return changes


def join_lines(text: str, end: int, out: Sequence[tuple[str, str]], final_newline: bool | None) -> str:
    """Join the lines. At the end of the file, the final newline is as before, or as the hunk says."""
    if not out:
        return ""
    new = "".join(body + eol for body, eol in out)
    keeps = final_newline if final_newline is not None else not text or text.endswith("\n")
    if end >= len(text) and not keeps:
        new = new[: len(new) - len(out[-1][1])]
    return new


def _choose_line_end(text: str, span: BlockMatch, *, faithful: bool) -> str:
    """Return the line end for added lines: that of the neighbors, unless the hunk itself has CRs."""
    if faithful:
        return "\n"
    ended = [line for line in span.lines[: -1 if span.end == len(text) else None] if line]
    if ended:
        return "\r\n" if ended[0].endswith("\r") else "\n"
    return find_line_end(text, span.start)


def find_line_end(text: str, offset: int) -> str:
    """Return the line end used around `offset`: of its own line, else of the line before."""
    newline = text.find("\n", offset)
    if newline < 0:
        newline = text.rfind("\n", 0, offset)
    return "\r\n" if newline > 0 and text[newline - 1] == "\r" else "\n"


def splice_all(text: str, places: Sequence[Replacement]) -> str | Refusal:
    """Return `text` with all replacements made, or a Refusal if two of them overlap."""
    ordered = sorted(places, key=lambda place: (place.start, place.end))
    for one, other in pairwise(ordered):
        if other.start < one.end or (other.start == one.start and other.end == one.end):
            return Refusal(f"Two hunks change the same lines, at line {get_line_number(text, other.start)}.")
    parts: list[str] = []
    at = 0
    for place in ordered:
        parts += (text[at : place.start], place.new)
        at = place.end
    return "".join([*parts, text[at:]])


def splice(text: str, start: int, end: int, new: str) -> str:
    """Return `text` with `new` from `start` to `end`."""
    old = text[start:end]
    if old and text.find(old) == start:
        return text.replace(old, new, 1)  # copies a large text once; slices and a join copy it twice
    return "".join((text[:start], new, text[end:]))
