"""A change map of a text whose secrets were blacked out, as one of the text itself: the secrets stay where they are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from daiku.core.changes.align import line_ops
from daiku.core.changes.changemap import change_of
from daiku.core.changes.diff import split_lines
from daiku.core.matching.refusal import Refusal
from daiku.domain.work.patches import Change

_HIDDEN = r"(-----BEGIN .*?-----END [^\n]*?-----|[^\n]*?|.*?)"
"""What a mark stands for. A block of a key goes first: its own line breaks are not those between two secrets."""


class Hidden(NamedTuple):
    """A mark in the shown text (half-open), and what stands for it in the real one."""

    start: int
    end: int
    real: str


def unredacted(real: str, shown: str, mark: str, changes: Sequence[Change]) -> tuple[Change, ...] | Refusal:
    """Return `changes` of `shown` as changes of `real`, which has secrets in the place of each `mark`.

    A change must keep the marks that it covers, else it is refused.
    """
    if real == shown:
        return tuple(changes)
    hidden = _hidden(real, shown, mark)
    if hidden is None:
        return Refusal("The text holds secrets, and it cannot be told where.")
    made: list[Change] = []
    for change in changes:
        text = _revealed(change, hidden, mark)
        if text is None:
            return Refusal("A change would take out or move a secret.")
        shift = sum(len(h.real) - (h.end - h.start) for h in hidden if h.end <= change.start)
        inside = sum(
            len(h.real) - (h.end - h.start)
            for h in hidden
            if change.start <= h.start and h.end <= change.end and change.start < change.end
        )
        made.append(change_of(change.start + shift, change.end + shift + inside, text))
    return tuple(made)


def moves_marks(shown: str, mark: str, changes: Sequence[Change]) -> bool:
    """Return True if a change of `shown` removes, cuts, or adds a mark."""
    places = [match.span() for match in re.finditer(re.escape(mark), shown)]
    hidden = [Hidden(start, end, "") for start, end in places]
    return any(_revealed(change, hidden, mark) is None for change in changes)


def _revealed(change: Change, hidden: Sequence[Hidden], mark: str) -> str | None:
    """The change's text with what its marks stand for; None where they are not those that it covers."""
    touched = [h for h in hidden if h.start < change.end and change.start < h.end]
    whole = all(change.start <= h.start and h.end <= change.end for h in touched)
    pieces = (change.text or "").split(mark)
    if not whole or len(pieces) - 1 != len(touched):
        return None
    return "".join(piece + (touched[n].real if n < len(touched) else "") for n, piece in enumerate(pieces))


def _hidden(real: str, shown: str, mark: str) -> list[Hidden] | None:
    """The marks of `shown` with what they stand for; None where the texts differ in more than that."""
    before, after = split_lines(shown), split_lines(real)
    starts = [0, *accumulate(map(len, before))]
    found: list[Hidden] = []
    for op, i, j, k, m in line_ops(before, after):
        if op == "equal":
            continue
        blocks = (
            zip(before[i:j], after[k:m], starts[i:j], strict=True)
            if j - i == m - k
            else iter([("".join(before[i:j]), "".join(after[k:m]), starts[i])])
        )
        for one, other, at in blocks:
            here = _in_block(one, other, at, mark)
            if here is None:
                return None
            found += here
    return found


def _in_block(shown: str, real: str, at: int, mark: str) -> Iterator[Hidden] | None:
    pieces = shown.split(mark)
    match = re.fullmatch(_HIDDEN.join(map(re.escape, pieces)), real, re.DOTALL)
    if match is None:
        return None
    starts = accumulate((len(piece) + len(mark) for piece in pieces[:-1]), initial=0)
    return (
        Hidden(at + start + len(piece), at + start + len(piece) + len(mark), secret)
        for start, piece, secret in zip(starts, pieces, match.groups(), strict=False)
    )
