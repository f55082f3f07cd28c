"""What an edit did to the editor's problems: those that are new, those that are gone; moved ones are neither."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject
from daiku.domain.work.patches import FileChange
from daiku.edits.rules.changes.diff import LineOp, line_ops
from daiku.run.rules.outside import Diagnostic

SHOWN = 20
"""Problems that one answer lists."""
LONGEST = 500
"""Characters of one problem's message."""

_ORDER = ("error", "warning", "info", "hint")
_NUMBER = re.compile(r"\d+")
_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ProblemDelta:
    """`new` stands worst first. `fixed`: so many were there before and are not any more."""

    new: tuple[Diagnostic, ...] = ()
    fixed: int = 0


def worst_first(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By severity, then by place."""
    return tuple(sorted(found, key=lambda d: (_ORDER.index(d.severity), d.path, d.range.start.line)))


def problem_delta(
    before: Sequence[Diagnostic], after: Sequence[Diagnostic], changes: Sequence[FileChange]
) -> ProblemDelta:
    """Return which diagnostics `changes` added and how many it fixed; hints are ignored.
    One that moved with its line, or that the rewritten lines had before, is the same one."""
    moves = {change.path: _Moves.of(change) for change in changes}
    became = {move.path: move for move in moves.values()}
    was = [_carried(d, moves) for d in before if d.severity != "hint"]
    left = [one for one in was if one is not None]
    here = list(worst_first(d for d in after if d.severity != "hint"))
    here, left = _unmatched(here, left, _exactly, lambda one: _exactly(one[0]))
    here, left = _unmatched(
        here, left, lambda d: _roughly(d, _stretch(d, became)), lambda one: _roughly(*one)
    )
    return ProblemDelta(tuple(here), len(left))


Carried = tuple[Diagnostic, int | None]
"""A former problem at its new place, or in a stretch that was rewritten (then the stretch's number)."""


@dataclass(frozen=True, slots=True)
class _Moves:
    """Where the lines of one file went."""

    path: str
    gone: bool
    ops: tuple[LineOp, ...]

    @classmethod
    def of(cls, change: FileChange) -> _Moves:
        old, new = (_END.split(text) if text else [] for text in (change.old, change.new))
        return cls(change.to or change.path, change.kind == "delete", tuple(line_ops(old, new)))

    def shifted(self, line: int) -> tuple[int, int | None]:
        """The new line of an old one; for one that was rewritten the number of its stretch too."""
        for number, (kind, i, j, k, _) in enumerate(self.ops):
            if i <= line < j:
                return k + line - i, None if kind == "equal" else number
        end = self.ops[-1] if self.ops else ("equal", 0, 0, 0, 0)
        return end[4] + max(0, line - end[2]), None  # past the last line

    def stretch(self, line: int) -> int | None:
        """The number of the stretch that a new line was written in; None for a line that stood before."""
        at = bisect_right(self.ops, line, key=lambda op: op[3]) - 1
        while at >= 0 and self.ops[at][3] == self.ops[at][4]:
            at -= 1  # deletions hold no new line
        return at if at >= 0 and self.ops[at][0] != "equal" else None


def _carried(found: Diagnostic, moves: Mapping[str, _Moves]) -> Carried | None:
    move = moves.get(found.path)
    if move is None:
        return found, None
    if move.gone:
        return None
    line, stretch = move.shifted(found.range.start.line)
    start = found.range.start.model_copy(update={"line": line})
    return replace(found, path=move.path, range=found.range.model_copy(update={"start": start})), stretch


def _kind(found: Diagnostic) -> tuple[str, str, str, str]:
    # Messages name lines and columns, which move ("declared in line 5").
    return found.path, found.severity, found.source, _NUMBER.sub("#", found.message)


def _exactly(found: Diagnostic) -> Hashable:
    return (*_kind(found), found.range.start.line)


def _roughly(found: Diagnostic, stretch: int | None) -> Hashable:
    return None if stretch is None else (*_kind(found), stretch)


def _stretch(found: Diagnostic, moves: Mapping[str, _Moves]) -> int | None:
    move = moves.get(found.path)
    return move.stretch(found.range.start.line) if move is not None else None


def _unmatched(
    here: Sequence[Diagnostic],
    left: Sequence[Carried],
    new_key: Callable[[Diagnostic], Hashable],
    old_key: Callable[[Carried], Hashable],
) -> tuple[list[Diagnostic], list[Carried]]:
    """Both lists without the pairs of equal keys; what has the key None pairs with nothing."""
    waiting = Counter(old_key(one) for one in left)
    del waiting[None]
    taken: Counter[Hashable] = Counter()
    rest: list[Diagnostic] = []
    for found in here:
        key = new_key(found)
        if waiting[key] > taken[key]:
            taken[key] += 1
        else:
            rest.append(found)
    kept: list[Carried] = []
    for one in left:
        key = old_key(one)
        if taken[key]:
            taken[key] -= 1
        else:
            kept.append(one)
    return rest, kept


def problem_line(found: Diagnostic) -> str:
    """Format a diagnostic like a compiler: `path:line:character severity: message [source]`."""
    start = found.range.start
    cell = f" (cell {found.cell})" if found.cell is not None else ""
    source = f" [{found.source}]" if found.source else ""
    message = found.message if len(found.message) <= LONGEST else f"{found.message[:LONGEST]} …"
    return f"{found.path}:{start.line + 1}:{start.character + 1}{cell} {found.severity}: {message}{source}"


def count_text(found: Iterable[Diagnostic]) -> str:
    """`2 errors, 1 warning`."""
    counts = Counter(d.severity for d in found)
    return ", ".join(f"{counts[s]} {s}{'s' if counts[s] > 1 else ''}" for s in _ORDER if counts[s])


def new_problems(data: JsonObject | None) -> int:
    """How many problems are new since an edit, by the data of its result."""
    told = data.get("problems") if data is not None else None
    counts = told.get("new") if isinstance(told, dict) else None
    return sum(n for n in counts.values() if isinstance(n, int)) if isinstance(counts, dict) else 0


def problem_delta_text(change: ProblemDelta) -> str:
    """Format the change in diagnostics for the model; empty if nothing changed."""
    fixed = f"{change.fixed} fixed" if change.fixed else ""
    if not change.new:
        return f"Problems in the editor: {fixed}, none new." if fixed else ""
    head = f"New problems in the editor since this edit ({count_text(change.new)}{fixed and f'; {fixed}'}):"
    lines = [problem_line(d) for d in change.new[:SHOWN]]
    more = len(change.new) - SHOWN
    return "\n".join([head, *lines, *([f"… and {more} more"] if more > 0 else [])])
