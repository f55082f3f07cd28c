"""The effect of an edit on the editor's diagnostics: new and fixed ones; moved ones count as neither."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject
from daiku.domain.work.patches import FileChange
from daiku.edits.rules.changes.diff import LineOp, compute_line_ops
from daiku.run.rules.outside import Diagnostic

SHOWN = 20
"""Largest number of problems that one answer lists."""
LONGEST = 500
"""Largest number of characters of one problem's message."""

_ORDER = ("error", "warning", "info", "hint")
_NUMBER = re.compile(r"\d+")
_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ProblemDelta:
    """The diagnostics that an edit added, worst first, and the number that it fixed."""

    new: tuple[Diagnostic, ...] = ()
    fixed: int = 0


def sort_by_severity(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sort by severity, then by place."""
    return tuple(sorted(diagnostics, key=lambda d: (_ORDER.index(d.severity), d.path, d.range.start.line)))


def compute_problem_delta(
    before: Sequence[Diagnostic], after: Sequence[Diagnostic], changes: Sequence[FileChange]
) -> ProblemDelta:
    """Return which diagnostics `changes` added and how many it fixed; hints are ignored.

    A diagnostic is the same if it moved with its line, or if the rewritten lines had it before.
    """
    moves = {change.path: _Moves.of(change) for change in changes}
    by_new_path = {move.path: move for move in moves.values()}
    carried = [_carry_over(d, moves) for d in before if d.severity != "hint"]
    unmatched_old = [one for one in carried if one is not None]
    unmatched_new = list(sort_by_severity(d for d in after if d.severity != "hint"))
    unmatched_new, unmatched_old = _remove_matches(
        unmatched_new, unmatched_old, _get_exact_key, lambda one: _get_exact_key(one[0])
    )
    unmatched_new, unmatched_old = _remove_matches(
        unmatched_new,
        unmatched_old,
        lambda d: _get_rough_key(d, _find_rewritten_range(d, by_new_path)),
        lambda one: _get_rough_key(*one),
    )
    return ProblemDelta(tuple(unmatched_new), len(unmatched_old))


Carried = tuple[Diagnostic, int | None]
"""An old diagnostic at its new place; the int is the number of the rewritten range it is in, if any."""


@dataclass(frozen=True, slots=True)
class _Moves:
    """The new place of one file's lines."""

    path: str
    gone: bool
    ops: tuple[LineOp, ...]

    @classmethod
    def of(cls, change: FileChange) -> _Moves:
        old, new = (_END.split(text) if text else [] for text in (change.old, change.new))
        return cls(change.to or change.path, change.kind == "delete", tuple(compute_line_ops(old, new)))

    def map_line(self, line: int) -> tuple[int, int | None]:
        """Return the new number of an old line, and the number of its range if it was rewritten."""
        for number, (kind, i, j, k, _) in enumerate(self.ops):
            if i <= line < j:
                return k + line - i, None if kind == "equal" else number
        end = self.ops[-1] if self.ops else ("equal", 0, 0, 0, 0)
        return end[4] + max(0, line - end[2]), None  # past the last line

    def find_rewritten_range(self, line: int) -> int | None:
        """Return the number of the range in which a new line was written; None for an old line."""
        at = bisect_right(self.ops, line, key=lambda op: op[3]) - 1
        while at >= 0 and self.ops[at][3] == self.ops[at][4]:
            at -= 1  # a deletion has no new line
        return at if at >= 0 and self.ops[at][0] != "equal" else None


def _carry_over(problem: Diagnostic, moves: Mapping[str, _Moves]) -> Carried | None:
    move = moves.get(problem.path)
    if move is None:
        return problem, None
    if move.gone:
        return None
    line, rewritten = move.map_line(problem.range.start.line)
    start = problem.range.start.model_copy(update={"line": line})
    return replace(
        problem, path=move.path, range=problem.range.model_copy(update={"start": start})
    ), rewritten


def _get_kind(problem: Diagnostic) -> tuple[str, str, str, str]:
    # Messages contain line and column numbers, which change ("declared in line 5").
    return problem.path, problem.severity, problem.source, _NUMBER.sub("#", problem.message)


def _get_exact_key(problem: Diagnostic) -> Hashable:
    return (*_get_kind(problem), problem.range.start.line)


def _get_rough_key(problem: Diagnostic, rewritten: int | None) -> Hashable:
    return None if rewritten is None else (*_get_kind(problem), rewritten)


def _find_rewritten_range(problem: Diagnostic, moves: Mapping[str, _Moves]) -> int | None:
    move = moves.get(problem.path)
    return move.find_rewritten_range(problem.range.start.line) if move is not None else None


def _remove_matches(
    new: Sequence[Diagnostic],
    old: Sequence[Carried],
    new_key: Callable[[Diagnostic], Hashable],
    old_key: Callable[[Carried], Hashable],
) -> tuple[list[Diagnostic], list[Carried]]:
    """Return both lists without the pairs of equal keys. The key None matches nothing."""
    available = Counter(old_key(one) for one in old)
    del available[None]
    matched: Counter[Hashable] = Counter()
    unmatched_new: list[Diagnostic] = []
    for problem in new:
        key = new_key(problem)
        if available[key] > matched[key]:
            matched[key] += 1
        else:
            unmatched_new.append(problem)
    unmatched_old: list[Carried] = []
    for one in old:
        key = old_key(one)
        if matched[key]:
            matched[key] -= 1
        else:
            unmatched_old.append(one)
    return unmatched_new, unmatched_old


def format_problem(problem: Diagnostic) -> str:
    """Format a diagnostic like a compiler: `path:line:character severity: message [source]`."""
    start = problem.range.start
    cell = f" (cell {problem.cell})" if problem.cell is not None else ""
    source = f" [{problem.source}]" if problem.source else ""
    message = problem.message if len(problem.message) <= LONGEST else f"{problem.message[:LONGEST]} …"
    return (
        f"{problem.path}:{start.line + 1}:{start.character + 1}{cell} {problem.severity}: {message}{source}"
    )


def format_counts(diagnostics: Iterable[Diagnostic]) -> str:
    """Format the counts by severity: `2 errors, 1 warning`."""
    counts = Counter(d.severity for d in diagnostics)
    return ", ".join(f"{counts[s]} {s}{'s' if counts[s] > 1 else ''}" for s in _ORDER if counts[s])


def count_new_problems(data: JsonObject | None) -> int:
    """Return the number of new problems from the data of an edit's result."""
    problems = data.get("problems") if data is not None else None
    counts = problems.get("new") if isinstance(problems, dict) else None
    return sum(n for n in counts.values() if isinstance(n, int)) if isinstance(counts, dict) else 0


def format_problem_delta(change: ProblemDelta) -> str:
    """Format the change in diagnostics for the model; empty if nothing changed."""
    fixed = f"{change.fixed} fixed" if change.fixed else ""
    if not change.new:
        return f"Problems in the editor: {fixed}, none new." if fixed else ""
    head = (
        f"New problems in the editor since this edit ({format_counts(change.new)}{fixed and f'; {fixed}'}):"
    )
    lines = [format_problem(d) for d in change.new[:SHOWN]]
    more = len(change.new) - SHOWN
    return "\n".join([head, *lines, *([f"… and {more} more"] if more > 0 else [])])
