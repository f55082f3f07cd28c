"""The rule by which a change is kept, refused or left undecided, as a value that stands before the first trial."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from daiku.core.statistics import sign_test
from daiku.domain.base import Frozen
from daiku.domain.playbook import GateVerdict, Tried

FIRST_BOUND = 0.05
"""How likely a difference so large may be by chance alone, at the first look at a change; half as likely at each further one."""


NEW_PART = 2
"""A change that was undecided is tried again where of the runs that may judge it at least one in so many is new to it."""


class Rule(Frozen):
    """What a change is judged by. It is tried on at most `cases` runs on record, on each `rounds` times with it and as often
    without it. A case is better where more of its trials pass with the change than without it, and worse where fewer do.
    The change is kept where more cases are better than worse and the exact sign test over these cases says that chance
    alone does so at most `bound` of the time, in either direction; but not where a case that passed each time without it
    fails each time with it. It is refused by the same rule, better and worse exchanged. Else it is undecided."""

    bound: float = FIRST_BOUND
    rounds: int = 2
    cases: int = 12


class Tally(NamedTuple):
    """What came of the cases of one change. `broken`: passed each time without it and never with it; `mended`: the other
    way round. These are among the worse and the better ones."""

    better: int = 0
    worse: int = 0
    same: int = 0
    untried: int = 0
    broken: int = 0
    mended: int = 0

    @property
    def chance(self) -> float:
        """How often chance alone makes so large a difference, in either direction; 1 where there is none."""
        return sign_test(self.better, self.worse)


def bound_at(look: int) -> float:
    """The bound at the `look`-th look at the same change, from 1. A change that stays undecided is tried again and again: all
    looks together may not be wrong more often than twice the first one."""
    return FIRST_BOUND / 2 ** (look - 1)


def shows_more(runs: Collection[str], looks: Sequence[Tried]) -> bool:
    """Whether trials on these `runs` can show more than earlier `looks` at the change did. The same runs once more would
    cost as much, and ask for more than before."""
    seen = {run for look in looks for run in look.runs}
    return not looks or sum(run not in seen for run in runs) * NEW_PART >= len(runs)


def least_cases(bound: float) -> int:
    """So many cases at least must differ before anything can be decided; with fewer there is nothing to pay for."""
    count = 1
    while sign_test(count, 0) > bound:
        count += 1
    return count


def verdict_of(tally: Tally, bound: float) -> GateVerdict:
    """What the rule says of these cases."""
    if tally.better == tally.worse or tally.chance > bound:
        return "undecided"
    if tally.better > tally.worse:
        return "undecided" if tally.broken else "kept"
    return "undecided" if tally.mended else "refused"


def is_settled(tally: Tally, left: int, bound: float) -> bool:
    """Whether the verdict is the same however the `left` cases turn out: then nothing more need be paid for. Which cases are
    tried does not depend on what was hoped for, so to stop here changes no verdict."""
    best = tally._replace(better=tally.better + left, mended=tally.mended + left)
    worst = tally._replace(worse=tally.worse + left, broken=tally.broken + left)
    return verdict_of(best, bound) == verdict_of(worst, bound)
