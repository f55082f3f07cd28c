"""Two texts to the smallest text edits between them, in the editor's positions."""

from __future__ import annotations

from dataclasses import dataclass

from daiku.core.changes.align import line_ops
from daiku.domain.runs import Range
from daiku.lsp.documents.positions import Encoding, line_starts, range_of


@dataclass(frozen=True, slots=True)
class TextEdit:
    """Replace `range` of the old text by `text`."""

    range: Range
    text: str


def text_edits(old: str, new: str, encoding: Encoding) -> tuple[TextEdit, ...]:
    """Edits of whole lines that turn `old` into `new`; they do not overlap, positions are in `old`."""
    starts = line_starts(old)
    before, after = _lines(old, starts), _lines(new, line_starts(new))
    offsets = [*starts[: len(before)], len(old)]
    return tuple(
        TextEdit(range_of(old, starts, offsets[a], offsets[b], encoding), "".join(after[c:d]))
        for kind, a, b, c, d in line_ops(before, after)
        if kind != "equal"
    )


def _lines(text: str, starts: list[int]) -> list[str]:
    """Lines with their ends; the part after the last line end only where it is not empty."""
    ends = [*starts[1:], len(text)]
    lines = [text[a:b] for a, b in zip(starts, ends, strict=True)]
    return lines if lines[-1] else lines[:-1]
