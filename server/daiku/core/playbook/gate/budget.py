"""The budget of trials: what they will likely cost, what was spent, and what one more may cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from daiku.domain.trials import Case

MARGIN = 2
"""So many times what trials will likely cost they may cost where nobody says how much."""


class TrialBudget(NamedTuple):
    """`most` USD in all (None: nothing bounds them), what is `spent`, and on how many `trials`."""

    most: float | None = None
    spent: float = 0.0
    trials: int = 0

    @property
    def free(self) -> float | None:
        return None if self.most is None else max(0.0, self.most - self.spent)

    def after(self, cost: float) -> TrialBudget:
        """The budget after one trial more."""
        return TrialBudget(self.most, self.spent + cost, self.trials + 1)


def allowed(budget: TrialBudget, likely: float) -> float | None:
    """The most that one more trial may cost, which is all that is left: 0 where nothing bounds it. None: it is not to be
    begun, for nothing is left, or less than it `likely` costs."""
    if budget.free is None:
        return 0.0
    return budget.free if budget.free > 0 and budget.free >= likely else None


def bound_of(said: float | None, likely: float) -> float | None:
    """What all trials may cost: as much as was `said`, else a multiple of what they will `likely` cost, for a lesson that
    misleads makes a run longer. None, no bound, only where the runs on record cost nothing."""
    return said if said is not None else MARGIN * likely or None


def estimated(cases: Sequence[Case], rounds: int) -> float:
    """What all trials on these cases will likely cost: as much as the runs on record did, twice a round."""
    return sum(case.cost for case in cases) * rounds * 2


def trials_of(cases: Sequence[Case], rounds: int) -> int:
    """How many trials there are at most."""
    return len(cases) * rounds * 2
