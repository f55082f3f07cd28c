"""The bound of cost over all runs is never passed, and is not wasted either."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.eval.evaluate import Pot, charge, reserve

SHARE = st.floats(0, 1)


def test_without_a_bound_a_run_has_its_own_limit() -> None:
    drawn = reserve(Pot(), 4, 0.5)
    assert drawn is not None
    assert drawn[1] == 0.5
    assert charge(*drawn, 9.0).held == ()


@given(st.floats(0.01, 100), st.integers(1, 8), st.lists(st.tuples(st.booleans(), SHARE), max_size=60))
def test_runs_that_keep_to_their_limits_never_pass_the_bound(
    most: float, jobs: int, steps: list[tuple[bool, float]]
) -> None:
    pot, running = Pot(most), list[float]()
    for begin, used in steps:
        if begin and len(running) < jobs:
            drawn = reserve(pot, jobs, 0.0)
            if drawn is not None:
                pot, limit = drawn
                running.append(limit)
        elif running:
            limit = running.pop()
            pot = charge(pot, limit, limit * used)
        assert pot.spent + sum(pot.held) <= most * (1 + 1e-9)
    assert pot.held == pytest.approx(tuple(running))


def test_a_run_that_would_likely_pass_what_is_free_is_not_begun() -> None:
    assert reserve(Pot(1.0, spent=0.8, ended=2), 1, 0.0) is None
    assert reserve(Pot(1.0, spent=0.6, ended=2), 1, 0.0) is not None
