"""Line diffs of two texts: operations in bounded time, line counts, and the unified diff."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal

from daiku.domain.work.patches import FileChange, FileStat, Patch

LineOp = tuple[Literal["equal", "replace", "delete", "insert"], int, int, int, int]
"""Operation, range of old lines, range of new lines (half-open)."""

_MOST_PAIRS = 90_000
"""Largest product of old and new line counts of a range without unique lines that is compared exactly; above
it the range is replaced. The exact comparison may take cubic time (0.3 s at this size)."""


def compute_line_ops(old: Sequence[str], new: Sequence[str]) -> list[LineOp]:
    """Return the operations from `old` to `new` in order, equal ranges included.

    Lines that occur once in both are fixed points. About linear time for real files, and bounded for any.
    """
    ops: list[LineOp] = []
    i = k = 0
    for j, m, length in _iter_matches(old, new):
        if length:
            _add_op(ops, i, j, k, m)
            if ops and ops[-1][0] == "equal":
                _, first, _, other, _ = ops.pop()
                ops.append(("equal", first, j + length, other, m + length))
            else:
                ops.append(("equal", j, j + length, m, m + length))
            i, k = j + length, m + length
    _add_op(ops, i, len(old), k, len(new))
    return ops


def _add_op(ops: list[LineOp], i: int, j: int, k: int, m: int) -> None:
    if i < j and k < m:
        ops.append(("replace", i, j, k, m))
    elif i < j:
        ops.append(("delete", i, j, k, m))
    elif k < m:
        ops.append(("insert", i, j, k, m))


def _iter_matches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield the equal ranges (old index, new index, length), in order."""
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
        if tail:  # the range between comes first
            pending.append((j - tail, j, m - tail, m, False))
            j, m = j - tail, m - tail
        if i == j or k == m:
            continue
        fixed = _find_fixed_points(old[i:j], new[k:m]) if may_split else []
        if not fixed:
            yield from ((i + a, k + b, n) for a, b, n in _match_exactly(old[i:j], new[k:m]))
            continue
        ends = [*fixed[1:], (j - i, m - k)]
        parts = [(0, fixed[0][0], 0, fixed[0][1])]
        parts += [(a, c, b, d) for (a, b), (c, d) in zip(fixed, ends, strict=True)]
        pending += [(i + a, i + c, k + b, k + d, True) for a, c, b, d in reversed(parts) if c > a or d > b]


def _find_fixed_points(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the largest set of lines that occur once in both and keep their order."""
    old_counts, new_counts = Counter(old), Counter(new)
    place = {line: index for index, line in enumerate(new) if new_counts[line] == 1}
    pairs = [
        (index, place[line]) for index, line in enumerate(old) if old_counts[line] == 1 and line in place
    ]
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
    points: list[tuple[int, int]] = []
    number = last[-1] if last else -1
    while number >= 0:
        points.append(pairs[number])
        number = chain[number][1]
    points.reverse()
    # Of a run of adjacent points the first is enough.
    return [pair for before, pair in pairwise([(-2, -2), *points]) if (before[0] + 1, before[1] + 1) != pair]


def _match_exactly(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield equal ranges where no line is unique; none if the search could take long."""
    if len(old) * len(new) <= _MOST_PAIRS:
        yield from SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()


CONTEXT = 3
"""Lines of context around a change."""


def split_lines(text: str) -> list[str]:
    r"""Split a text into lines with their line ends; only `\n` ends a line."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def group_hunks(ops: Sequence[LineOp]) -> Iterator[list[LineOp]]:
    """Yield changes with `CONTEXT` equal lines around them; nearby changes form one group."""
    group: list[LineOp] = []
    for index, (op, i, j, k, m) in enumerate(ops):
        if op != "equal":
            group.append((op, i, j, k, m))
            continue
        is_last = index == len(ops) - 1
        if group and (is_last or j - i > 2 * CONTEXT):
            group.append((op, i, min(j, i + CONTEXT), k, min(m, k + CONTEXT)))
            yield group
            group = []
        if not is_last:
            near = 0 if group else max(0, j - i - CONTEXT)
            group.append((op, i + near, j, k + near, m))
    if any(op != "equal" for op, *_ in group):
        yield group


def _format_range(start: int, stop: int) -> str:
    length = stop - start
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"


def _format_hunk(group: Sequence[LineOp], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    head, last = group[0], group[-1]
    yield f"@@ -{_format_range(head[1], last[2])} +{_format_range(head[3], last[4])} @@\n"
    for op, i, j, k, m in group:
        if op == "equal":
            yield from _prefix_lines(" ", old[i:j])
            continue
        yield from _prefix_lines("-", old[i:j])
        yield from _prefix_lines("+", new[k:m])


def _prefix_lines(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line if line.endswith("\n") else f"{mark}{line}\n\\ No newline at end of file\n"


def render_unified_diff(change: FileChange) -> str:
    """Return one file's change as a git diff; empty if nothing changes."""
    old, new = split_lines(change.old or ""), split_lines(change.new or "")
    target = change.to or change.path
    lines: list[str] = []
    if change.to is not None and change.to != change.path:
        lines += (
            f"diff --git a/{change.path} b/{target}\n",
            f"rename from {change.path}\n",
            f"rename to {target}\n",
        )
    hunks = [
        line for group in group_hunks(compute_line_ops(old, new)) for line in _format_hunk(group, old, new)
    ]
    if not hunks:
        return "".join(lines) or _format_empty_file(change)
    from_name = "/dev/null" if change.old is None else f"a/{change.path}"
    to_name = "/dev/null" if change.new is None else f"b/{target}"
    return "".join([*lines, f"--- {from_name}\n", f"+++ {to_name}\n", *hunks])


def _format_empty_file(change: FileChange) -> str:
    """Return git's header for creating or deleting a file without content, which has no hunk."""
    words = {"create": "new file mode 100644", "delete": "deleted file mode 100644"}.get(change.kind)
    return f"diff --git a/{change.path} b/{change.path}\n{words}\n" if words else ""


def render_patch(patch: Patch) -> str:
    """Return the complete patch as one unified diff."""
    return "".join(render_unified_diff(change) for change in patch.files)


def stat(change: FileChange) -> FileStat:
    """Return the number of lines that one file's change adds and removes."""
    added = removed = 0
    for op, i, j, k, m in compute_line_ops(split_lines(change.old or ""), split_lines(change.new or "")):
        if op != "equal":
            added += m - k
            removed += j - i
    return FileStat(path=change.to or change.path, kind=change.kind, added=added, removed=removed)
