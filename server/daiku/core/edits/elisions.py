"""Fill in what a model elided from a new text (`...`) from the old text; report it if that is ambiguous."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from daiku.core.matching.indents import indent_of
from daiku.core.matching.refusal import Refusal
from daiku.core.text.omissions import Kind, has_omission_comment, may_hold_omission, omission_kind
from daiku.dataclass import dataclass

_CONTEXT = 4
"""Lines next to an elision that are compared where one of them stands in several places."""
_COMPARED = 100_000
"""Lines that are compared at most to tell places apart."""
_LOST, _SHOWN = 10, 8
_ELSEWHERE = "the line {} it is not in the old text there, or in several places"
_BARE = re.compile(r"(?:\.{3}|…)")
_HEAD = re.compile(r":\s*(?:#.*)?$")
_PROSE = (".md", ".mdx", ".markdown", ".rst", ".adoc")


def fill_text(new: str, old: str, *, path: str = "", insisted: bool = False) -> str | Refusal:
    """Fill the elisions in the new text of a file from its old text; a Refusal names the missing lines.

    `insisted`: dots alone are meant as they stand, and so is what a text with examples of code says (`path`).
    """
    if not may_hold_omission(new) or not old.strip():
        return new
    ends = "\r\n" if "\r\n" in new else "\n"
    lines, there = (text.replace("\r\n", "\n").removesuffix("\n").split("\n") for text in (new, old))
    filled = fill_elisions(lines, there, path=path, insisted=insisted)
    if isinstance(filled, Refusal):
        return filled
    return new if filled == lines else ends.join(filled) + (ends if new.endswith("\n") else "")


def fill_elisions(
    new: Sequence[str],
    old: Sequence[str],
    *,
    path: str = "",
    insisted: bool = False,
    kept: Collection[int] = (),
) -> list[str] | Refusal:
    """The lines of `new`, elisions filled in with lines of `old`, which it takes the place of. `kept`: the indices of
    lines of `new` that are known to stand in `old`, so that dots there are what the file says."""
    kinds: dict[int, Kind] = {index: kind for index, line in enumerate(new) if (kind := omission_kind(line))}
    marks: dict[int, Kind] = {
        index: kind
        for index, kind in kinds.items()
        if index not in kept and not (insisted and _weak(kind, path)) and not _is_text(new, index, old)
    }
    known = {line.strip() for line in old}
    for line in new:
        if has_omission_comment(line) and not omission_kind(line) and line.strip() not in known:
            return Refusal(f"This line leaves code out, write all of it: {line.strip()[:200]!r}")
    if not marks:
        return list(new)
    may_insist = all(_weak(kind, path) for kind in marks.values())
    filled = _fill_marks(new, old, sorted(marks))
    if isinstance(filled, _Doubt) and filled.nothing and marks[filled.index] == "words":
        # A comment: there is nothing that it could leave out.
        rest = [index for index in sorted(marks) if index != filled.index]
        filled = _fill_marks(new, old, rest) if rest else list(new)
    if isinstance(filled, _Doubt):
        return _missing_lines(new, old, filled, may_insist)
    if filled == list(old) and any(_is_stub(new, index) for index in marks):
        return list(new)
    if filled == list(old) and may_insist:
        return _missing_lines(new, old, _Doubt(min(marks), "without it nothing would change"), may_insist)
    return filled


def _weak(kind: Kind, path: str) -> bool:
    return kind == "dots" or path.lower().endswith(_PROSE)


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Why an elision, the line `index` of the new text, cannot be filled in."""

    index: int
    why: str
    nothing: bool = False


def _missing_lines(new: Sequence[str], old: Sequence[str], doubt: _Doubt, may_insist: bool) -> Refusal:
    kept = {line.strip() for line in new}
    missing = [(n, line) for n, line in enumerate(old, 1) if line.strip() and line.strip() not in kept]
    shown = "\n".join(f"{n} | {line.rstrip()[:200]}" for n, line in missing[:_SHOWN])
    more = f"\n… and {len(missing) - _SHOWN} more lines" if len(missing) > _SHOWN else ""
    what = f"\nOf the old lines these are not in the new text:\n{shown}{more}" if missing else ""
    insist = " If the line is meant as it stands, send exactly the same again." if may_insist else ""
    return Refusal(
        f"Line {doubt.index + 1} of the new text stands for lines that are left out"
        f" ({new[doubt.index].strip()[:100]!r}), and which they are is not certain: {doubt.why}. Write them out, or"
        f" change only the lines that change.{insist}{what}",
        may_insist=may_insist,
    )


def _is_text(new: Sequence[str], index: int, old: Sequence[str]) -> bool:
    """Whether the line is no elision: it stands in the old text beside the same line, or is a literal `...`."""
    line = new[index].strip()
    beside = (_next(new, index, -1), _next(new, index, 1))
    for at, there in enumerate(old):
        if there.strip() == line:
            around = (_next(old, at, -1), _next(old, at, 1))
            if any(here is not None and here == other for here, other in zip(beside, around, strict=True)):
                return True
            if around == (None, None) or beside == (None, None):
                return True
    if not _BARE.fullmatch(line):
        return False
    above, below = beside
    if (above or "").startswith((">>>", "... ")) or (below or "").startswith("---"):
        return True
    if (above or "").endswith(",") and (below or "").startswith(")"):
        return True
    return _is_stub(new, index) and not _has_body(new, index, old)


def _next(lines: Sequence[str], index: int, step: int) -> str | None:
    """The nearest line above or below that is not blank, without its indentation."""
    index += step
    while 0 <= index < len(lines):
        if lines[index].strip():
            return lines[index].strip()
        index += step
    return None


def _is_stub(lines: Sequence[str], index: int) -> bool:
    """Whether `...` is the whole body of what is defined above it."""
    head = _head(lines, index)
    if head is None or not _BARE.fullmatch(lines[index].strip()):
        return False
    below = next((line for line in lines[index + 1 :] if line.strip()), None)
    return below is None or len(indent_of(below)) < len(indent_of(lines[index]))


def _head(lines: Sequence[str], index: int) -> str | None:
    """The line that opens the block whose only statement, a docstring apart, is at `index`."""
    above = [line for line in lines[:index] if line.strip()]
    depth = len(indent_of(lines[index]))
    if above and above[-1].rstrip().endswith(('"""', "'''")):
        while above and len(indent_of(above[-1])) >= depth:
            above.pop()
    opens = above and _HEAD.search(above[-1]) and len(indent_of(above[-1])) < depth
    return above[-1].rstrip() if opens else None


def _has_body(new: Sequence[str], index: int, old: Sequence[str]) -> bool:
    """Whether what the stub defines has a body in the old text."""
    head = _head(new, index)
    bodies = [_next(old, at, 1) for at, line in enumerate(old) if line.rstrip() == head]
    return any(body not in (None, "...", "…", "pass") for body in bodies)


def _fill_marks(new: Sequence[str], old: Sequence[str], marks: Sequence[int]) -> list[str] | _Doubt:
    """The new lines with the old ones between the neighbours of each elision."""
    lines = _Lines(old)
    marks, said = split_at_elisions(new, marks)
    out: list[str] = said[0]
    since = 0
    for number, mark in enumerate(marks):
        before, after = said[number], said[number + 1]
        end = lines.end_of(before, since) if before else since
        if end is None:
            return _Doubt(mark, f"{_ELSEWHERE.format('above')}: {before[-1].strip()[:80]!r}")
        if before and lines.lost(before, since, end) > max(_LOST, 2 * len(before)):
            return _Doubt(mark, "what stands above it would take the place of many more lines")
        depth = len(indent_of(new[mark]))
        begin = (
            lines.start_of(after, end, depth, last=number + 1 == len(marks))
            if after
            else lines.rest(end, depth)
        )
        if begin is None:
            why = (
                f"{_ELSEWHERE.format('below')}: {after[0].strip()[:80]!r}"
                if after
                else "it is not clear how far they go"
            )
            return _Doubt(mark, why)
        if not any(line.strip() for line in old[end:begin]):
            sure = lines.is_once(before, -1) and lines.is_once(after, 0)
            return _Doubt(mark, "nothing stands there in the old text", nothing=sure)
        out += [*old[end:begin], *after]
        since = begin
    if said[-1] and lines.lost(said[-1], since, len(old)) > max(_LOST, 2 * len(said[-1])):
        return _Doubt(marks[-1], "what stands below it would take the place of many more lines")
    return out


def split_at_elisions(new: Sequence[str], marks: Sequence[int]) -> tuple[list[int], list[list[str]]]:
    """Split lines at their elision marks; return the marks and the parts between them, adjacent marks merged."""
    kept: list[int] = []
    parts = [_tail_off(new[: marks[0]])]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        part = _head_off(new[mark + 1 : following])
        kept.append(mark)
        parts.append(part if following is None else _tail_off(part))
        if len(kept) > 1 and not parts[-2]:
            kept.pop()
            parts.pop(-2)
    return kept, parts


def _tail_off(lines: Sequence[str]) -> list[str]:
    end = len(lines)
    while end and not lines[end - 1].strip():
        end -= 1
    return list(lines[:end])


def _head_off(lines: Sequence[str]) -> list[str]:
    start = 0
    while start < len(lines) and not lines[start].strip():
        start += 1
    return list(lines[start:])


def _count_differing(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines only one of the two has."""
    return (Counter(one) - Counter(other)).total() + (Counter(other) - Counter(one)).total()


def _nearest(said: Sequence[str], old: Sequence[str], ends: Sequence[int]) -> int | None:
    """Of the lines at which `said` may end, the one up to which `old` has the most of it and the least besides;
    None where that is not one alone."""
    wanted = Counter(said)
    apart: dict[int, int] = {}
    seen, both, count = Counter[str](), 0, 0
    candidates = set(ends)
    for at, line in enumerate(old):
        if line:
            seen[line] += 1
            count += 1
            both += seen[line] <= wanted[line]
        if at in candidates:
            apart[at] = count - 2 * both
    least = min(apart.values(), default=0)
    found = [at for at, how in apart.items() if how == least]
    return found[0] if len(found) == 1 else None


class _Lines:
    """The old lines, with the places of each."""

    def __init__(self, old: Sequence[str]) -> None:
        self.old = [line.rstrip() for line in old]
        self.places: defaultdict[str, list[int]] = defaultdict(list)
        for index, line in enumerate(self.old):
            self.places[line].append(index)

    def is_once(self, said: Sequence[str], at: int) -> bool:
        """Whether the first or last line of what is said stands in one place only; true where nothing is said."""
        return not said or len(self.places[said[at].rstrip()]) == 1

    def end_of(self, before: Sequence[str], since: int) -> int | None:
        """Where the old lines behind the last of `before` begin; None where that is not certain."""
        full = [line.rstrip() for line in before if line.strip()]
        found = [place for place in self.places.get(full[-1], []) if place >= since]
        if len(found) == 1:
            return found[0] + 1
        nearest = _nearest(full, self.old[since:], [place - since for place in found])
        if nearest is None:
            return None
        place = self._closing(full, since)
        for count in range(2, min(_CONTEXT, len(full)) + 1):
            found = [each for each in found if self._around(each, -1, count) == full[-count:][::-1]]
            place = found[0] if place is None and len(found) == 1 else place
        return None if place is None or place != since + nearest else place + 1

    def _closing(self, full: Sequence[str], since: int) -> int | None:
        """Where the block ends whose last line `full` ends with: by the line of the same indentation that opens it."""
        depth = len(indent_of(full[-1]))
        for line in reversed(full[:-1]):
            if len(indent_of(line)) < depth:
                return None
            if len(indent_of(line)) == depth:
                heads = [place for place in self.places.get(line, []) if place >= since]
                if len(heads) != 1:
                    return None
                end = self._shallower(heads[0] + 1, depth + 1)
                return end if end < len(self.old) and self.old[end] == full[-1] else None
        return None

    def start_of(self, after: Sequence[str], end: int, depth: int, *, last: bool) -> int | None:
        """Where the first of `after` stands below `end`, in the block of an elision of that indentation. `last`:
        nothing is left out behind them."""
        full = [line.rstrip() for line in after if line.strip()]
        border = self._shallower(end, depth)
        if len(indent_of(full[0])) < depth:
            return border if border < len(self.old) and self.old[border] == full[0] else None
        found = [place for place in self.places.get(full[0], []) if end <= place <= border]
        if len(found) == 1:
            return found[0]
        nearest = self._likest(full, found, end, last=last)
        for count in range(2, min(_CONTEXT, len(full)) + 1):
            found = [place for place in found if self._around(place, 1, count) == full[:count]]
            if len(found) == 1:
                return found[0] if found[0] == nearest else None
        return None

    def _likest(self, full: Sequence[str], found: Sequence[int], end: int, *, last: bool) -> int | None:
        """Of several places the one from which on the old lines are most like those said."""
        if last:
            back = len(self.old) - 1
            there = _nearest(full[::-1], self.old[end:][::-1], [back - place for place in found])
            return None if there is None else back - there
        if len(found) * len(full) > _COMPARED:
            return None
        apart = {place: _count_differing(full, self._around(place, 1, len(full))) for place in found}
        likest = [place for place, how in apart.items() if how == min(apart.values())]
        return likest[0] if len(likest) == 1 else None

    def rest(self, end: int, depth: int) -> int | None:
        """The end of the text, where all that is left is of that indentation or deeper."""
        return len(self.old) if self._shallower(end, depth) == len(self.old) else None

    def lost(self, said: Sequence[str], start: int, end: int) -> int:
        """How many old lines of that stretch are not among what is said instead."""
        kept = {line.strip() for line in said}
        return sum(bool(line.strip()) and line.strip() not in kept for line in self.old[start:end])

    def _around(self, place: int, step: int, count: int) -> list[str]:
        found: list[str] = []
        while 0 <= place < len(self.old) and len(found) < count:
            if self.old[place]:
                found.append(self.old[place])
            place += step
        return found

    def _shallower(self, start: int, depth: int) -> int:
        """The first line from `start` on that is indented less than `depth`, blank ones apart."""
        for index in range(start, len(self.old)):
            if self.old[index] and len(indent_of(self.old[index])) < depth:
                return index
        return len(self.old)
