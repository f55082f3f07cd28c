"""Elisions (`...`) in a model's new text, filled in from the old text; ambiguous ones are refused."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from daiku.dataclass import dataclass, replace
from daiku.edits.rules.matching.hunk import Hunk, HunkLine, build_hunk
from daiku.edits.rules.matching.indents import get_indent
from daiku.edits.rules.matching.match import Level
from daiku.edits.rules.matching.refusal import Refusal
from daiku.texts.rules.omissions import Kind, has_omission_comment, may_hold_omission, omission_kind

_MAX_LOST, _MAX_LINES_SHOWN = 10, 8
_AMBIGUOUS = "the line {} it is not in the old text there, or in several places"
_REMOVES_ELISION = "This line stands for lines that are left out ({!r}) and is to be removed: write out the lines that are to go."
_UNEQUAL = "The search leaves lines out in {} places and the replacement in {}: write both out, or leave the same out in both."
_DOTS = re.compile(r"(?:\.{3}|…)")
_HEAD = re.compile(r":\s*(?:#.*)?$")
_PROSE = (".md", ".mdx", ".markdown", ".rst", ".adoc")


def fill_text(new: str, old: str, *, path: str = "", insisted: bool = False) -> str | Refusal:
    """Fill the elisions in a file's new text from its old text. A Refusal lists the missing lines.

    `insisted`: dots alone are literal, and so is prose (by `path`) with examples of code.
    """
    if not may_hold_omission(new) or not old.strip():
        return new
    ends = "\r\n" if "\r\n" in new else "\n"
    lines, old_lines = (text.replace("\r\n", "\n").removesuffix("\n").split("\n") for text in (new, old))
    filled = fill_elisions(lines, old_lines, path=path, insisted=insisted)
    if isinstance(filled, Refusal):
        return filled
    return new if filled == lines else ends.join(filled) + (ends if new.endswith("\n") else "")


def fill_elisions(
    new: Sequence[str],
    old: Sequence[str],
    *,
    path: str = "",
    insisted: bool = False,
    kept_indices: Collection[int] = (),
) -> list[str] | Refusal:
    """Return `new` with its elisions filled in from `old`, which it replaces.

    `kept_indices`: indices of lines of `new` that are also in `old`, so that dots there are literal.
    """
    kinds: dict[int, Kind] = {index: kind for index, line in enumerate(new) if (kind := omission_kind(line))}
    marks: dict[int, Kind] = {
        index: kind
        for index, kind in kinds.items()
        if index not in kept_indices
        and not (insisted and _is_weak(kind, path))
        and not _is_literal(new, index, old)
    }
    known_lines = {line.strip() for line in old}
    for line in new:
        if has_omission_comment(line) and not omission_kind(line) and line.strip() not in known_lines:
            return Refusal(f"This line leaves code out, write all of it: {line.strip()[:200]!r}")
    if not marks:
        return list(new)
    may_insist = all(_is_weak(kind, path) for kind in marks.values())
    filled = _fill_marks(new, old, sorted(marks))
    if isinstance(filled, _Ambiguity) and filled.nothing and marks[filled.index] == "words":
        # A comment that elides nothing is text.
        rest = [index for index in sorted(marks) if index != filled.index]
        filled = _fill_marks(new, old, rest) if rest else list(new)
    if isinstance(filled, _Ambiguity):
        return _refuse_ambiguity(new, old, filled, may_insist)
    if filled == list(old) and any(_is_stub(new, index) for index in marks):
        return list(new)
    if filled == list(old) and may_insist:
        return _refuse_ambiguity(
            new, old, _Ambiguity(min(marks), "without it nothing would change"), may_insist
        )
    return filled


def _is_weak(kind: Kind, path: str) -> bool:
    return kind == "dots" or path.lower().endswith(_PROSE)


@dataclass(frozen=True, slots=True)
class _Ambiguity:
    """The reason why an elision, line `index` of the new text, cannot be filled in.

    `nothing`: there is no old line.
    """

    index: int
    why: str
    nothing: bool = False


def _refuse_ambiguity(
    new: Sequence[str], old: Sequence[str], ambiguity: _Ambiguity, may_insist: bool
) -> Refusal:
    new_lines = {line.strip() for line in new}
    missing = [(n, line) for n, line in enumerate(old, 1) if line.strip() and line.strip() not in new_lines]
    listing = "\n".join(f"{n} | {line.rstrip()[:200]}" for n, line in missing[:_MAX_LINES_SHOWN])
    more = f"\n… and {len(missing) - _MAX_LINES_SHOWN} more lines" if len(missing) > _MAX_LINES_SHOWN else ""
    what = f"\nOf the old lines these are not in the new text:\n{listing}{more}" if missing else ""
    insist = " If the line is meant as it stands, send exactly the same again." if may_insist else ""
    return Refusal(
        f"Line {ambiguity.index + 1} of the new text stands for lines that are left out"
        f" ({new[ambiguity.index].strip()[:100]!r}), and which they are is not certain: {ambiguity.why}. Write them out, or"
        f" change only the lines that change.{insist}{what}",
        may_insist=may_insist,
    )


def _is_literal(new: Sequence[str], index: int, old: Sequence[str]) -> bool:
    """Return True if the line is no elision: the old text has it in the same place, or `...` is meant."""
    line = new[index].strip()
    neighbors = (_find_neighbor(new, index, -1), _find_neighbor(new, index, 1))
    for at, old_line in enumerate(old):
        if old_line.strip() == line:
            around = (_find_neighbor(old, at, -1), _find_neighbor(old, at, 1))
            if any(ours is not None and ours == other for ours, other in zip(neighbors, around, strict=True)):
                return True
            if around == (None, None) or neighbors == (None, None):
                return True
    if not _DOTS.fullmatch(line):
        return False
    above, below = neighbors
    if (above or "").startswith((">>>", "... ")) or (below or "").startswith("---"):
        return True
    if (above or "").endswith(",") and (below or "").startswith(")"):
        return True
    return _is_stub(new, index) and not _has_body(new, index, old)


def _find_neighbor(lines: Sequence[str], index: int, step: int) -> str | None:
    """Return the nearest non-blank line above or below, stripped; None if there is none."""
    index += step
    while 0 <= index < len(lines):
        if lines[index].strip():
            return lines[index].strip()
        index += step
    return None


def _is_stub(lines: Sequence[str], index: int) -> bool:
    """Return True if `...` is the complete body of the definition above it."""
    head = _find_block_head(lines, index)
    if head is None or not _DOTS.fullmatch(lines[index].strip()):
        return False
    below = next((line for line in lines[index + 1 :] if line.strip()), None)
    return below is None or len(get_indent(below)) < len(get_indent(lines[index]))


def _find_block_head(lines: Sequence[str], index: int) -> str | None:
    """Return the line that opens the block whose only statement, apart from a docstring, is at `index`."""
    above = [line for line in lines[:index] if line.strip()]
    depth = len(get_indent(lines[index]))
    if above and above[-1].rstrip().endswith(('"""', "'''")):
        while above and len(get_indent(above[-1])) >= depth:
            above.pop()
    opens = above and _HEAD.search(above[-1]) and len(get_indent(above[-1])) < depth
    return above[-1].rstrip() if opens else None


def _has_body(new: Sequence[str], index: int, old: Sequence[str]) -> bool:
    """Return True if the stub's definition has a body in the old text."""
    head = _find_block_head(new, index)
    bodies = [_find_neighbor(old, at, 1) for at, line in enumerate(old) if line.rstrip() == head]
    return any(body not in (None, "...", "…", "pass") for body in bodies)


def _fill_marks(new: Sequence[str], old: Sequence[str], marks: Sequence[int]) -> list[str] | _Ambiguity:
    """Return the new lines with the old ones between the neighbors of each elision.

    A neighbor is usable if it is unique in the rest of the old text, or ends the elision's block.
    """
    old_lines = [line.rstrip() for line in old]
    marks, parts = _split(new, marks)
    out: list[str] = parts[0]
    since = 0
    for number, mark in enumerate(marks):
        before, after = parts[number], parts[number + 1]
        end = _find_start(before, old_lines, since) if before else since
        if end is None:
            return _Ambiguity(mark, f"{_AMBIGUOUS.format('above')}: {before[-1].strip()[:80]!r}")
        if _drops_much(before, old_lines[since:end]):
            return _Ambiguity(mark, "what stands above it would take the place of many more lines")
        begin = _find_end(after, old_lines, end, len(get_indent(new[mark])))
        if begin is None:
            below = f"{_AMBIGUOUS.format('below')}: {after[0].strip()[:80]!r}" if after else ""
            return _Ambiguity(mark, below or "it is not clear how far they go")
        if not any(old_lines[end:begin]):
            is_sure = all(old_lines.count(line.rstrip()) == 1 for line in (*before[-1:], *after[:1]))
            return _Ambiguity(mark, "nothing stands there in the old text", nothing=is_sure)
        out += [*old[end:begin], *after]
        since = begin
    if _drops_much(parts[-1], old_lines[since:]):
        return _Ambiguity(marks[-1], "what stands below it would take the place of many more lines")
    return out


def _split(new: Sequence[str], marks: Sequence[int]) -> tuple[list[int], list[list[str]]]:
    """Split lines at their elision marks. Return the marks and the parts between them, adjacent marks merged."""
    if not marks:
        return [], [list(new)]
    merged: list[int] = []
    parts = [_strip_blank_lines(new[: marks[0]], start=False)]
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        part = _strip_blank_lines(new[mark + 1 : following], end=following is not None)
        if merged and not parts[-1]:
            parts[-1] = part
            continue
        merged.append(mark)
        parts.append(part)
    return merged, parts


def _strip_blank_lines(lines: Sequence[str], *, start: bool = True, end: bool = True) -> list[str]:
    full = [number for number, line in enumerate(lines) if line.strip()]
    if not full:
        return []
    return list(lines[full[0] if start else 0 : full[-1] + 1 if end else len(lines)])


def _find_start(before: Sequence[str], old: Sequence[str], since: int) -> int | None:
    """Return the first old line below the last of `before`; None if that line is ambiguous."""
    full = [line.rstrip() for line in before if line.strip()]
    if old[since:].count(full[-1]) == 1:
        return old.index(full[-1], since) + 1
    depth = len(get_indent(full[-1]))
    head = next((line for line in reversed(full[:-1]) if len(get_indent(line)) <= depth), "")
    if len(get_indent(head)) != depth or not full.count(head) == old[since:].count(head) == 1:
        return None
    end = _find_shallower(old, old.index(head, since) + 1, depth + 1)
    return end + 1 if old[end : end + 1] == full[-1:] else None


def _find_end(after: Sequence[str], old: Sequence[str], end: int, depth: int) -> int | None:
    """Return the old line of the first of `after` in the block that starts at `end`; None if ambiguous.

    The block is indented by `depth`. Without `after` the elision must reach the end of the text.
    """
    border = _find_shallower(old, end, depth)
    if not after:
        return border if border == len(old) else None
    line = after[0].rstrip()
    if len(get_indent(line)) < depth:
        return border if old[border : border + 1] == [line] else None
    places = [at for at in range(end, min(border + 1, len(old))) if old[at] == line]
    return places[0] if len(places) == 1 else None


def _find_shallower(old: Sequence[str], start: int, depth: int) -> int:
    """Return the first line from `start` on that is indented less than `depth`, ignoring blank lines."""
    return next(
        (at for at in range(start, len(old)) if old[at] and len(get_indent(old[at])) < depth), len(old)
    )


def _drops_much(part: Sequence[str], old: Sequence[str]) -> bool:
    """Return True if `part` would replace many old lines that are not in it."""
    new_lines = {line.strip() for line in part}
    lost = sum(bool(line) and line.strip() not in new_lines for line in old)
    return bool(part) and lost > max(_MAX_LOST, 2 * len(part))


def resolve_elisions(
    text: str, hunk: Hunk, *, path: str = "", insisted: bool = False
) -> list[Hunk] | Refusal:
    """Split a hunk at elided context and fill in elided added lines.

    Each part must match below the previous one.
    """
    if not text.strip() or not any(may_hold_omission(line.text) for line in hunk.lines):
        return [hunk]
    known_lines = {line.strip() for line in text.split("\n")}
    parts = [replace(hunk, lines=())]
    added = ""
    for line, below in zip(hunk.lines, (*hunk.lines[1:], None), strict=True):
        mark = line.text.strip()
        if added:  # an elision that is removed and added again is context
            added = ""
        elif line.tag == "+" or not omission_kind(mark) or mark in known_lines:
            parts[-1] = replace(parts[-1], lines=(*parts[-1].lines, line))
        elif line.tag == "-" and (below is None or below.tag != "+" or below.text.strip() != mark):
            return Refusal(_REMOVES_ELISION.format(mark[:100]))
        else:
            added = mark if line.tag == "-" else ""
            parts.append(replace(hunk, lines=(), line=None, gap=len(get_indent(line.text))))
    filled: list[Hunk] = []
    for part in parts:
        if any(line.text.strip() for line in part.lines):
            filled_part = _fill_hunk(part, path, insisted=insisted)
            if isinstance(filled_part, Refusal):
                return filled_part
            filled.append(filled_part)
    return filled


def _fill_hunk(hunk: Hunk, path: str, *, insisted: bool) -> Hunk | Refusal:
    """Fill in the elisions in the hunk's added lines."""
    if not any(line.tag == "+" and may_hold_omission(line.text) for line in hunk.lines):
        return hunk
    old = [line.text for line in hunk.lines if line.tag != "+"]
    after = [line for line in hunk.lines if line.tag != "-"]
    new, kept_indices = (
        [line.text for line in after],
        {at for at, line in enumerate(after) if line.tag == " "},
    )
    filled = fill_elisions(new, old, path=path, insisted=insisted, kept_indices=kept_indices)
    if isinstance(filled, Refusal) or filled == new:
        return filled if isinstance(filled, Refusal) else hunk
    return replace(hunk, lines=build_hunk(old, filled, [Level.exact] * len(old)).lines)


def build_elided_hunk(search: Sequence[str], replacement: Sequence[str]) -> Hunk | Refusal | None:
    """Return a hunk for a search and a replacement that elide the same lines; None without elisions."""
    if not (marks := _find_marks(search)):
        return None
    marks, old = _split(search, marks)
    new = _split(replacement, _find_marks(replacement))[1]
    if len(new) != len(old):
        return Refusal(_UNEQUAL.format(len(marks), len(new) - 1))
    lines: list[HunkLine] = []
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        if number:
            lines.append(HunkLine(" ", search[marks[number - 1]]))
        lines += build_hunk(before, after, [Level.exact] * len(before)).lines
    return Hunk(tuple(lines), block=True)


def _find_marks(lines: Sequence[str]) -> list[int]:
    return [number for number, line in enumerate(lines) if omission_kind(line)]
