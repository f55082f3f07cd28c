"""Resolve elisions in hunks: split the hunk there, or fill the lines in from those it replaces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from daiku.core.edits.elisions import fill_elisions
from daiku.core.matching.hunk import Hunk, HunkLine, hunk_of
from daiku.core.matching.match import Level
from daiku.core.matching.refusal import Refusal
from daiku.core.text.omissions import may_hold_omission, omission_kind
from daiku.dataclass import replace

_TAKES_OUT = "This line stands for lines that are left out ({!r}) and is to be removed: write out the lines that are to go."


def resolve_elisions(
    text: str, hunk: Hunk, *, path: str = "", insisted: bool = False
) -> list[Hunk] | Refusal:
    """Split a hunk at elided context, so that each part must match below the previous one; elided added lines
    are filled in from the lines that they replace."""
    if not text.strip() or not any(may_hold_omission(line.text) for line in hunk.lines):
        return [hunk]
    known = {line.strip() for line in text.split("\n")}
    parts: list[list[HunkLine]] = [[]]
    for line in _pair_elisions(hunk.lines, known):
        if line is None:
            parts.append([])
        elif line.tag != "+" and _is_elision(line, known):
            if line.tag == "-":
                return Refusal(_TAKES_OUT.format(line.text.strip()[:100]))
            parts.append([])
        else:
            parts[-1].append(line)
    found: list[Hunk] = []
    anchors = hunk.anchors
    for number, lines in enumerate(parts):
        part = replace(hunk, lines=tuple(lines), anchors=anchors, after=hunk.after or bool(found))
        part = part if number == 0 else replace(part, line=None)
        if not part.changes:  # lines above what is left out say where it is
            above = [line.text for line in lines if line.text.strip()]
            anchors = (*anchors, above[-1]) if above and not found else anchors
            continue
        filled = _fill_hunk(part, path, insisted=insisted)
        if isinstance(filled, Refusal):
            return filled
        found.append(filled)
        anchors = hunk.anchors
    return found


def _is_elision(line: HunkLine, known: set[str]) -> bool:
    return bool(omission_kind(line.text)) and line.text.strip() not in known


def _pair_elisions(lines: Sequence[HunkLine], known: set[str]) -> Iterator[HunkLine | None]:
    """The lines, with None for an elision that is removed and added again, which is left-out context."""
    removed = [line.text.strip() for line in lines if line.tag == "-" and _is_elision(line, known)]
    added = [line.text.strip() for line in lines if line.tag == "+" and omission_kind(line.text)]
    both = {text for text in removed if text in added}
    for line in lines:
        if line.text.strip() not in both:
            yield line
        elif line.tag == "-":
            yield None


def _fill_hunk(hunk: Hunk, path: str, *, insisted: bool) -> Hunk | Refusal:
    """The hunk with the elisions of its added lines filled in."""
    if not any(line.tag == "+" and may_hold_omission(line.text) for line in hunk.lines):
        return hunk
    old = [line.text for line in hunk.lines if line.tag != "+"]
    after = [line for line in hunk.lines if line.tag != "-"]
    new, kept = [line.text for line in after], {at for at, line in enumerate(after) if line.tag == " "}
    filled = fill_elisions(new, old, path=path, insisted=insisted, kept=kept)
    if isinstance(filled, Refusal) or filled == new:
        return filled if isinstance(filled, Refusal) else hunk
    return replace(hunk, lines=hunk_of(old, filled, [Level.exact] * len(old)).lines)
