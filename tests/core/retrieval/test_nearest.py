"""The search with numpy finds exactly what comparing one by one finds."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.memory.rules.nearest import FLOAT_ERROR, Candidate, Nearest, Ranked, Row, settle, take_best, widen
from daiku.memory.rules.vectors import (
    MOST_DIMENSIONS,
    SCALE,
    Vector,
    cosine,
    pack,
    squared_length,
    to_integers,
)


def row(number: int, vector: Vector) -> Row:
    return Row(number, pack(vector), squared_length(vector))


def one_by_one(question: Vector, vectors: dict[int, Vector], most: int) -> list[Ranked]:
    return take_best((Ranked(n, cosine(question, v)) for n, v in vectors.items()), most)


component = st.integers(-SCALE, SCALE)


@given(st.data(), st.integers(1, 12), st.integers(1, 5))
def test_it_finds_what_comparing_one_by_one_finds(data: st.DataObject, dimension: int, most: int) -> None:
    """R1.16, R1.62: exact also at the largest components and with ties."""
    vector = st.lists(
        st.one_of(component, st.sampled_from([-SCALE, 0, SCALE])), min_size=dimension, max_size=dimension
    )
    vectors = {
        n: tuple(v) for n, v in enumerate(data.draw(st.lists(vector, min_size=1, max_size=40))) if any(v)
    }
    question = tuple(data.draw(vector))
    index = Nearest(dimension)
    index.add(row(n, v) for n, v in vectors.items())
    assert index.search(question, most) == one_by_one(question, vectors, most)


@pytest.mark.parametrize("dimension", [7, 384])
def test_it_finds_the_nearest_of_thousands_and_rows_added_later(dimension: int) -> None:
    chance = random.Random(dimension)
    count = 4200
    vectors = {n: to_integers([chance.gauss(0, 1) for _ in range(dimension)]) for n in range(count)}
    index = Nearest(dimension)
    index.add(row(n, vectors[n]) for n in range(count - 50))
    question = to_integers([chance.gauss(0, 1) for _ in range(dimension)])
    before = {n: vectors[n] for n in range(count - 50)}
    assert index.search(question, 20) == one_by_one(question, before, 20)
    index.add(row(n, vectors[n]) for n in range(count - 50, count))
    assert index.search(question, 20) == one_by_one(question, vectors, 20)


@given(st.data(), st.integers(1, 6), st.integers(1, 5))
def test_what_is_hidden_is_not_among_the_nearest(data: st.DataObject, dimension: int, most: int) -> None:
    """R3.45: hidden rows are left out, and do not keep others from being found."""
    vector = st.lists(st.sampled_from([-3.0, -1.0, 0.0, 1.0, 3.0]), min_size=dimension, max_size=dimension)
    drawn = data.draw(st.lists(vector, min_size=1, max_size=30))
    vectors = {n: to_integers(v) for n, v in enumerate(drawn)}  # all of one length, but for those of none
    question = to_integers(data.draw(vector))
    hidden = frozenset(each.number for each in one_by_one(question, vectors, data.draw(st.integers(0, 30))))
    index = Nearest(dimension)
    index.add(row(n, v) for n, v in vectors.items())
    shown = {n: v for n, v in vectors.items() if n not in hidden}
    assert index.search(question, most, hidden) == one_by_one(question, shown, most)


def test_the_largest_vectors_are_ordered_exactly() -> None:
    """The worst case of the sums: all dimensions, all components as large as they can be."""
    same = to_integers([1.0] * MOST_DIMENSIONS)
    opposite = tuple(-part for part in same)
    axis = to_integers([1.0, *[0.0] * (MOST_DIMENSIONS - 1)])
    vectors = {1: opposite, 2: same, 3: axis, 4: opposite}
    index = Nearest(MOST_DIMENSIONS)
    index.add(row(n, v) for n, v in vectors.items())
    for question in (same, opposite, axis):
        assert index.search(question, 4) == one_by_one(question, vectors, 4)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30))
def test_a_vector_is_kept_as_whole_numbers_that_come_back_as_they_were(values: list[float]) -> None:
    vector = to_integers(values)
    raised = struct.unpack(f"<{len(vector)}H", pack(vector))
    assert tuple(part - SCALE for part in raised) == vector
    assert all(-SCALE <= part <= SCALE for part in vector)


@pytest.mark.parametrize("values", [[], [float("nan")], [float("inf")], [0.0] * (MOST_DIMENSIONS + 1)])
def test_what_is_no_direction_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="a vector has"):
        to_integers(values)


def test_rows_of_a_database_are_settled_only_where_no_other_could_belong_among_them() -> None:
    question = to_integers([1.0, 0.0])
    near, middle, far = (to_integers(v) for v in ([1.0, 0.1], [1.0, 0.5], [0.2, 1.0]))
    # The database has the two best the wrong way round, by less than its error.
    found = [
        Candidate(7, cosine(question, near) - FLOAT_ERROR / 2, near),
        Candidate(3, cosine(question, middle), middle),
        Candidate(5, cosine(question, far), far),
    ]
    assert [each.number for each in settle(question, found, 2, complete=False) or ()] == [7, 3]
    assert settle(question, found, 3, complete=False) is None
    assert [each.number for each in settle(question, found, 3, complete=True) or ()] == [7, 3, 5]
    assert [widen(10, 10), widen(10, widen(10, 10))] == [42, 170]
