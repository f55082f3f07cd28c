from __future__ import annotations

from threading import Barrier

import pytest
from hypothesis import settings

from tests.cases import examples, for_each


def test_every_case_is_tried_and_each_that_failed_is_named() -> None:
    tried: list[tuple[str, int]] = []

    @for_each("letter", ["a", "b"])
    @for_each("number", [1, 2])
    def wrong(letter: str, number: int) -> None:
        tried.append((letter, number))
        assert number < 2, "too large"

    with pytest.raises(BaseExceptionGroup) as found:
        wrong()
    assert tried == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert [error.__notes__ for error in found.value.exceptions] == [
        ["number = 2", "letter = 'a'"],
        ["number = 2", "letter = 'b'"],
    ]


def test_a_single_failure_is_raised_as_it_is_also_one_of_pytests_own() -> None:
    @for_each(("value", "kind"), [("1", ValueError), ("x", ValueError)])
    def wrong(value: str, kind: type[Exception]) -> None:
        with pytest.raises(kind):
            int(value)

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE") as found:
        wrong()
    assert found.value.__notes__[0].startswith("value, kind = ('1', ")


def test_cases_run_side_by_side_and_each_that_failed_is_named() -> None:
    both = Barrier(2, timeout=10)

    @for_each("letter", ["a", "b"], at_once=2)
    def wrong(letter: str) -> None:
        both.wait()
        raise ValueError(letter)

    with pytest.raises(BaseExceptionGroup) as found:
        wrong()
    assert [error.__notes__ for error in found.value.exceptions] == [["letter = 'a'"], ["letter = 'b'"]]


@for_each("name", ["a", "b"])
def test_a_fixture_is_there_beside_the_cases(name: str, request: pytest.FixtureRequest) -> None:
    assert (name in "ab", request.node.name) == (True, "test_a_fixture_is_there_beside_the_cases")


def test_a_loop_over_nothing_is_no_test() -> None:
    with pytest.raises(ValueError, match="no case"):
        for_each("name", [])


@for_each(("profile", "wanted"), [("daiku", [5, 600]), ("quick", [5, 20])])
def test_only_the_fast_loop_takes_fewer_examples_than_a_property_asks_for(
    profile: str, wanted: list[int]
) -> None:
    before = settings.get_current_profile_name()
    try:
        settings.load_profile(profile)
        assert [examples(5), examples(600)] == wanted
    finally:
        settings.load_profile(before)
