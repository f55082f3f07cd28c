"""What trials may cost, and which runs on record judge a change."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.core.playbook.gate.budget import TrialBudget, allowed, bound_of, estimated, trials_of
from daiku.core.playbook.gate.heldout import is_held_out, judges_of
from daiku.domain.playbook import Delta, LearntFrom
from daiku.domain.trials import Case, ProjectStart
from tests.cases import for_each


def case(run: str, session: str, question: str = "", cost: float = 0.0, commit: str = "c") -> Case:
    start = ProjectStart(root="/here", commit=commit)
    return Case(run=run, session=session, question=question or run, start=start, checks=(), cost=cost)


def delta(*places: tuple[str, str]) -> Delta:
    return Delta(
        id="r1",
        type="add",
        content="x",
        evidence=tuple(LearntFrom(session_id=session, run_id=run) for session, run in places),
    )


def itself(session: str, run: str) -> tuple[str, str]:
    return session, run


HELD_OUT = [name for n in range(60) if is_held_out(name := f"s{n}")]
TEACHING = [name for n in range(60) if not is_held_out(name := f"s{n}")]


@given(st.floats(0, 5), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=40))
def test_no_more_is_spent_than_may_be(most: float, trials: list[tuple[float, float]]) -> None:
    """X.12: each trial costs at most what it is allowed."""
    budget = TrialBudget(most)
    for likely, part in trials:
        free = allowed(budget, likely)
        if free is None:
            continue
        assert free > 0  # which would bound nothing
        budget = budget.after(free * part)
    assert budget.spent <= most + 1e-9


def test_what_is_likely_too_dear_is_not_begun_and_without_a_bound_all_is() -> None:
    assert allowed(TrialBudget(1.0, 0.9), 0.2) is None
    assert allowed(TrialBudget(1.0, 0.9), 0.05) == pytest.approx(0.1)
    assert allowed(TrialBudget(0.0), 0.0) is None
    assert allowed(TrialBudget(), 7.0) == 0.0
    cases = [case("a", "s", cost=0.25), case("b", "s", cost=0.5)]
    assert (estimated(cases, 2), trials_of(cases, 2)) == (3.0, 8)


@given(st.lists(st.sampled_from(HELD_OUT + TEACHING), unique=True, max_size=30), st.data())
def test_what_teaches_never_judges(sessions: list[str], data: st.DataObject) -> None:
    """X.12: no change is judged by a session that it was learnt from, nor by one that teaches; whatever is learnt anew is
    learnt from these alone."""
    cases = [case(f"run of {name}", name) for name in sessions]
    taught = data.draw(st.lists(st.sampled_from(sessions), max_size=5)) if sessions else []
    judges = judges_of(delta(*((name, "any") for name in taught)), cases, (), itself)
    assert {each.session for each in judges} == {s for s in sessions if is_held_out(s)} - set(taught)
    assert judges == judges_of(delta(*((name, "any") for name in taught)), cases[::-1], (), itself)


def test_a_copy_by_a_fork_and_the_same_request_again_do_not_judge_either() -> None:
    """X.12."""
    first, second, third = HELD_OUT[:3]
    cases = [case("a", first), case("b", second, "Mend  the parser"), case("c", third, "other")]

    def forked(session: str, run: str) -> tuple[str, str]:
        return (second, run) if session == first else (session, run)

    kept = judges_of(delta((second, "b")), cases, ("mend the parser",), forked)
    assert [each.run for each in kept] == ["c"]
    assert [
        each.run for each in judges_of(delta(), cases, ("mend the PARSER",), itself) if each.run == "b"
    ] == []


def test_where_it_was_learnt_once_more_does_not_judge_either() -> None:
    """X.12."""
    again = delta().model_copy(update={"again": (LearntFrom(session_id=HELD_OUT[0], run_id="a"),)})
    cases = [case("a", HELD_OUT[0]), case("b", HELD_OUT[1])]
    assert [each.run for each in judges_of(again, cases, (), itself)] == ["b"]


def test_the_same_request_on_the_same_files_is_one_case() -> None:
    cases = [case(f"r{n}", name, "again") for n, name in enumerate(HELD_OUT[:4])]
    other = case("r9", HELD_OUT[4], "again", commit="later")
    assert len(judges_of(delta(), [*cases, other], (), itself)) == 2


@for_each(
    ("content", "questions"),
    [
        ("Build by `lupana dist-gateway`.", ("Build the gateway", "Start the gateway", "Mend the parser")),
        ("設定の読み込みは config.py で行う。", ("設定の読み込みを直す", "設定の画面を作る", "テストを書く")),
    ],
)
def test_requests_that_have_most_to_do_with_the_change_judge_first(
    content: str, questions: tuple[str, ...]
) -> None:
    """X.12: what came of them has no part in it."""
    change = delta().model_copy(update={"content": content})
    for order in permutations(questions):
        cases = [case(f"r{n}", HELD_OUT[n], question) for n, question in enumerate(order)]
        assert [each.question for each in judges_of(change, cases, (), itself)] == list(questions)


def test_about_two_of_three_sessions_judge() -> None:
    share = sum(is_held_out(f"ses_{n:032x}") for n in range(3000)) / 3000
    assert 0.62 < share < 0.71


def test_where_nobody_says_what_may_be_spent_it_is_bounded_by_what_is_likely() -> None:
    """X.12."""
    assert [
        bound_of(said, likely) for said, likely in ((0.5, 3.0), (0.0, 3.0), (None, 3.0), (None, 0.0))
    ] == [0.5, 0.0, 6.0, None]
