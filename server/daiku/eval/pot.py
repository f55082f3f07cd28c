"""The bound of cost over all runs: what is spent, what is set aside for runs under way."""

from __future__ import annotations

from typing import NamedTuple


class Pot(NamedTuple):
    """`most` USD in all, 0 for no bound; `held` is set aside for runs under way, one entry each."""

    most: float = 0.0
    spent: float = 0.0
    ended: int = 0
    held: tuple[float, ...] = ()

    @property
    def free(self) -> float:
        return self.most - self.spent - sum(self.held)


def draw(pot: Pot, jobs: int, own: float) -> tuple[Pot, float] | None:
    """Set aside what one more run may cost: its own limit `own` (0: none), at most an equal part of what is
    free for the runs that may go on at the same time. A run that would likely pass what is free, going by the
    mean of those that ended, is not begun: None. The limit is 0 where nothing bounds the run."""
    if not pot.most:
        return pot._replace(held=(*pot.held, 0.0)), own
    likely = pot.spent / pot.ended if pot.ended else 0.0
    if pot.free <= 0 or pot.free < likely:
        return None
    share = max(pot.free / max(1, jobs - len(pot.held)), min(pot.free, 2 * likely))
    limit = min(own, share) if own else share
    return pot._replace(held=(*pot.held, limit)), limit


def settle(pot: Pot, limit: float, cost: float) -> Pot:
    """Give back what was set aside for a run, and charge what it cost."""
    held = list(pot.held)
    held.remove(limit if pot.most else 0.0)
    return pot._replace(spent=pot.spent + cost, ended=pot.ended + 1, held=tuple(held))
