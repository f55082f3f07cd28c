"""Shares, differences and ratios with what they may as well be."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.eval.compare import mean_ratio, paired_difference, sign_test, t_quantile, wilson_interval

DIFFERENCES = st.lists(st.floats(-1, 1, allow_nan=False), min_size=1, max_size=60)
POSITIVE = st.floats(0.01, 1e6)


@given(st.integers(0, 200), st.integers(0, 200))
def test_a_share_lies_within_its_bounds_and_these_within_nought_and_one(good: int, bad: int) -> None:
    found = wilson_interval(good, good + bad)
    assert 0 <= found.low <= found.high <= 1
    assert found.low - 1e-9 <= found.value <= found.high + 1e-9


def test_wilson_is_as_in_the_books() -> None:
    found = wilson_interval(8, 10)
    assert (round(found.low, 3), round(found.high, 3)) == (0.490, 0.943)


@given(DIFFERENCES)
def test_a_difference_turned_round_has_its_bounds_turned_round(differences: list[float]) -> None:
    found, other = paired_difference(differences), paired_difference([-d for d in differences])
    assert found.low <= found.value <= found.high
    assert (other.low, other.high) == pytest.approx((-found.high, -found.low))


@given(DIFFERENCES)
def test_the_same_tasks_four_times_are_no_less_certain(differences: list[float]) -> None:
    few, many = paired_difference(differences), paired_difference(differences * 4)
    assert many.high - many.low <= few.high - few.low + 1e-9


def test_two_settings_that_never_differ_are_not_known_to_be_the_same() -> None:
    few, many = paired_difference([0.0] * 3), paired_difference([0.0] * 300)
    assert few.low < -0.3 < 0.3 < few.high
    assert -0.02 < many.low < 0 < many.high < 0.02


@given(st.integers(0, 60), st.integers(0, 60))
def test_a_sign_test_is_a_chance_and_knows_no_sides(better: int, worse: int) -> None:
    p = sign_test(better, worse)
    assert 0 < p <= 1
    assert p == sign_test(worse, better)


def test_the_sign_test_is_exact() -> None:
    assert sign_test(0, 0) == 1
    assert sign_test(6, 0) == pytest.approx(2 / 64)
    assert sign_test(5, 1) == pytest.approx(14 / 64)


@given(st.lists(st.tuples(POSITIVE, POSITIVE), min_size=1, max_size=30))
def test_a_ratio_turned_round_is_its_inverse(pairs: list[tuple[float, float]]) -> None:
    found, other = mean_ratio(pairs), mean_ratio([(b, a) for a, b in pairs])
    assert found is not None
    assert other is not None
    assert found.low <= found.value * (1 + 1e-9)
    assert found.value == pytest.approx(1 / other.value)


def test_a_ratio_needs_something_on_both_sides_and_one_pair_tells_nothing_of_others() -> None:
    assert mean_ratio([(0.0, 1.0), (1.0, 0.0)]) is None
    assert mean_ratio([(2.0, 4.0)]) == (pytest.approx(2.0), 0.0, math.inf)


def test_students_t_falls_towards_the_normal_distribution() -> None:
    found = [t_quantile(n) for n in range(1, 400)]
    assert found == sorted(found, reverse=True)
    assert found[-1] == pytest.approx(1.966, abs=0.001)
