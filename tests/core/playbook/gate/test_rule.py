"""The rule by which a change is kept, refused or left undecided: what it never does, whatever the trials show."""

from __future__ import annotations

import random
from itertools import pairwise, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daiku.core.playbook.gate.pairs import steps_of, tally_of
from daiku.core.playbook.gate.rule import FIRST_BOUND, Tally, bound_at, is_settled, shows_more, verdict_of
from daiku.domain.playbook import GateVerdict, Tried
from daiku.domain.trials import Arm, Case, ProjectStart, Trial
from tests.cases import for_each

RANK: dict[GateVerdict, int] = {"refused": -1, "undecided": 0, "kept": 1}
OTHER: dict[Arm, Arm] = {"with": "without", "without": "with"}
SWAPPED: dict[GateVerdict, GateVerdict] = {"kept": "refused", "refused": "kept", "undecided": "undecided"}


def case(number: int) -> Case:
    start = ProjectStart(root="/here", commit="c")
    return Case(run=f"run_{number}", session=f"s{number}", question=f"q{number}", start=start, checks=())


Ends = list[list[tuple[bool | None, bool | None]]]
ENDS = st.lists(
    st.lists(st.tuples(*[st.sampled_from([True, True, False, False, None])] * 2), min_size=1, max_size=3),
    max_size=16,
)


def trials_of(ends: Ends) -> list[Trial]:
    """The trials of cases by round: (with, without)."""
    arms: tuple[Arm, Arm] = ("with", "without")
    return [
        Trial(case=f"run_{number}", arm=arm, round=round_, passed=passed)
        for number, rounds in enumerate(ends)
        for round_, pair in enumerate(rounds, 1)
        for arm, passed in zip(arms, pair, strict=True)
    ]


def verdict(ends: Ends) -> GateVerdict:
    return verdict_of(tally_of(map(case, range(len(ends))), trials_of(ends)), FIRST_BOUND)


@given(ENDS)
@example([[(False, True)]] * 11 + [[(True, False)]])
@example([[(True, False)]] * 11 + [[(False, True)]])
@example([[(True, False)]] * 6)
def test_with_the_arms_exchanged_kept_is_refused_and_refused_is_kept(ends: Ends) -> None:
    """X.12: who is hoped for has no say."""
    cases = [case(n) for n in range(len(ends))]
    swapped = [each.model_copy(update={"arm": OTHER[each.arm]}) for each in trials_of(ends)]
    assert verdict_of(tally_of(cases, swapped), FIRST_BOUND) == SWAPPED[verdict(ends)]


@given(ENDS, st.data())
def test_a_trial_that_passes_with_the_change_never_speaks_against_it(ends: Ends, data: st.DataObject) -> None:
    """More wins never turn kept into undecided, nor anything into refused."""
    before = verdict(ends)
    failed = [(n, r) for n, rounds in enumerate(ends) for r, pair in enumerate(rounds) if pair[0] is False]
    if failed:
        number, round_ = data.draw(st.sampled_from(failed))
        better = [list(each) for each in ends]
        better[number][round_] = (True, ends[number][round_][1])
        assert RANK[verdict(better)] >= RANK[before]
    assert RANK[verdict([*ends, [(True, False)]])] >= RANK[before]


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=3), max_size=20))
def test_where_nothing_differs_nothing_is_decided(ends: list[list[bool]]) -> None:
    same: Ends = [[(passed, passed) for passed in rounds] for rounds in ends]
    assert verdict(same) == "undecided"


@given(ENDS, st.randoms(use_true_random=False))
def test_the_order_of_trials_and_cases_does_not_matter(ends: Ends, chance: random.Random) -> None:
    cases, trials = [case(n) for n in range(len(ends))], trials_of(ends)
    before = tally_of(cases, trials)
    chance.shuffle(trials)
    chance.shuffle(cases)
    assert tally_of(cases, trials) == before


@given(ENDS)
def test_a_trial_that_could_not_be_made_leaves_its_round_out(ends: Ends) -> None:
    """X.12."""
    tally = tally_of(map(case, range(len(ends))), trials_of(ends))
    assert tally.better + tally.worse + tally.same + tally.untried == len(ends)
    assert tally.untried == sum(all(None in pair for pair in rounds) for rounds in ends)


def test_what_is_settled_stays_so_however_the_rest_turns_out() -> None:
    """X.12: an early end changes no verdict."""
    settled = 0
    for better, worse, left in product(range(9), range(9), range(1, 9)):
        for mended, broken in product({0, better}, {0, worse}):
            tally = Tally(better, worse, 0, 0, broken, mended)
            if not is_settled(tally, left, FIRST_BOUND):
                continue
            settled += 1
            for more in range(left + 1):
                for less, clearly in product(range(left - more + 1), (0, 1)):
                    later = Tally(
                        better + more,
                        worse + less,
                        left - more - less,
                        0,
                        broken + clearly * less,
                        mended + clearly * more,
                    )
                    assert verdict_of(later, FIRST_BOUND) == verdict_of(tally, FIRST_BOUND)
    assert settled > 500


@pytest.mark.parametrize(
    ("better", "worse", "expected"),
    [
        (6, 0, "kept"),
        (5, 0, "undecided"),
        (0, 6, "refused"),
        (8, 1, "kept"),
        (7, 1, "undecided"),
        (3, 3, "undecided"),
    ],
)
def test_six_cases_of_one_mind_decide_and_five_do_not(better: int, worse: int, expected: GateVerdict) -> None:
    """X.12: the exact sign test at 0.05, both directions together."""
    assert verdict_of(Tally(better=better, worse=worse), bound_at(1)) == expected


def test_a_change_that_breaks_a_case_is_not_kept_however_many_others_it_mends() -> None:
    """X.12: a case that passed each time without it and never with it."""
    mended: Ends = [[(True, False), (True, False)]] * 11
    assert verdict([*mended, [(False, True), (True, True)]]) == "kept"
    assert verdict([*mended, [(False, True), (False, True)]]) == "undecided"


def test_the_bounds_of_all_looks_together_are_twice_the_first_one() -> None:
    """X.12: a job that is done each night does not keep by chance what it looks at often enough."""
    assert sum(bound_at(look) for look in range(1, 400)) == pytest.approx(2 * FIRST_BOUND)
    assert [verdict_of(Tally(better=6), bound_at(look)) for look in (1, 2)] == ["kept", "undecided"]


@for_each(
    ("looks", "expected"),
    [((), True), (("ab",), True), (("abc",), False), (("ab", "c"), False), (("xyz",), True), (("",), True)],
)
def test_a_change_is_looked_at_again_when_half_of_its_runs_are_new(
    looks: tuple[str, ...], expected: bool
) -> None:
    """X.12: the same runs once more would cost as much, and a stricter bound."""
    tried = [Tried(verdict="undecided", runs=tuple(each)) for each in looks]
    assert shows_more("abcd", tried) is expected


@given(st.integers(0, 50), st.integers(1, 6))
def test_each_round_has_both_arms_and_the_first_one_alternates(number: int, rounds: int) -> None:
    """X.12."""
    steps = steps_of(number, rounds)
    assert {(each.arm, each.round) for each in steps} == {
        (arm, round_) for arm in OTHER for round_ in range(1, rounds + 1)
    }
    assert len(steps) == 2 * rounds
    firsts = [each.arm for each in steps[::2]]
    assert all(a != b for a, b in pairwise(firsts))
    assert steps[0].arm != steps_of(number + 1, 1)[0].arm
