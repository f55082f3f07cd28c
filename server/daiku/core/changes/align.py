"""Line diff of two texts: equal, added and removed lines, in time that is bounded for any input."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

LineOp = tuple[Literal["equal", "replace", "delete", "insert"], int, int, int, int]
"""What happens, old lines from-to, new lines from-to (half-open)."""

_MOST_PAIRS = 90_000
"""Old times new lines of a stretch without unique ones beyond which it is shown as replaced whole: the
exact search may take cubic time (0.3 s at this size)."""


def line_ops(old: Sequence[str], new: Sequence[str]) -> list[LineOp]:
    """Return the operations that lead from `old` to `new`, in order, equal stretches included.

    Lines that occur once in both are fixed points. About linear for real files, and bounded for any.
    """
    ops: list[LineOp] = []
    i = k = 0
    for j, m, length in _matches(old, new):
        if length:
            _add(ops, i, j, k, m)
            if ops and ops[-1][0] == "equal":
                _, first, _, other, _ = ops.pop()
                ops.append(("equal", first, j + length, other, m + length))
            else:
                ops.append(("equal", j, j + length, m, m + length))
            i, k = j + length, m + length
    _add(ops, i, len(old), k, len(new))
    return ops


def _add(ops: list[LineOp], i: int, j: int, k: int, m: int) -> None:
    if i < j and k < m:
        ops.append(("replace", i, j, k, m))
    elif i < j:
        ops.append(("delete", i, j, k, m))
    elif k < m:
        ops.append(("insert", i, j, k, m))


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Equal stretches (old index, new index, length), in order."""
    pending: list[tuple[int, int, int, int, bool]] = [(0, len(old), 0, len(new), True)]
    while pending:
        i, j, k, m, may_split = pending.pop()
        head = 0
        while i + head < j and k + head < m and old[i + head] == new[k + head]:
            head += 1
        yield i, k, head
        i, k = i + head, k + head
        tail = 0
        while i < j - tail and k < m - tail and old[j - tail - 1] == new[m - tail - 1]:
            tail += 1
        if tail:  # what lies between comes first
            pending.append((j - tail, j, m - tail, m, False))
            j, m = j - tail, m - tail
        if i == j or k == m:
            continue
        fixed = _fixed_points(old[i:j], new[k:m]) if may_split else []
        if not fixed:
            yield from ((i + a, k + b, n) for a, b, n in _inside(old[i:j], new[k:m]))
            continue
        ends = [*fixed[1:], (j - i, m - k)]
        parts = [(0, fixed[0][0], 0, fixed[0][1])]
        parts += [(a, c, b, d) for (a, b), (c, d) in zip(fixed, ends, strict=True)]
        pending += [(i + a, i + c, k + b, k + d, True) for a, c, b, d in reversed(parts) if c > a or d > b]


def _fixed_points(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Lines that stand once in both, as many as keep the same order."""
    once, also = Counter(old), Counter(new)
    place = {line: index for index, line in enumerate(new) if also[line] == 1}
    pairs = [(index, place[line]) for index, line in enumerate(old) if once[line] == 1 and line in place]
    tops: list[int] = []  # smallest last new index of an increasing run of each length
    chain: list[tuple[int, int]] = []  # for each pair: the length of its run, the pair before it
    last: list[int] = []
    for number, (_, at) in enumerate(pairs):
        length = bisect_left(tops, at)
        chain.append((length, last[length - 1] if length else -1))
        if length == len(tops):
            tops.append(at)
            last.append(number)
        else:
            tops[length], last[length] = at, number
    found: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        found.append(pairs[number])
        number = chain[number][1]
    found.reverse()
    # A run of them is one stretch: its first is enough, the rest follows from it.
    return [pair for before, pair in pairwise([(-2, -2), *found]) if (before[0] + 1, before[1] + 1) != pair]


def _inside(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Equal stretches where no line stands once in both; none where looking for them could take long."""
    if len(old) * len(new) <= _MOST_PAIRS:
        yield from SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
