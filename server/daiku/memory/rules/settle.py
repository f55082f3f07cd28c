"""Exact order of rows that a database has ordered by floating-point scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from daiku.memory.rules.nearest import Ranked, take_best
from daiku.memory.rules.vectors import Vector, cosine

FLOAT_ERROR = 1e-5
"""Maximum error of a database's cosine of 32-bit floats."""
SPARE = 32
"""Number of extra rows in the first query."""


class Candidate(NamedTuple):
    """A row from a database: its cosine there, and its vector."""

    number: int
    score: float
    vector: Vector


def widen(most: int, limit: int) -> int:
    """Return the number of rows for the next query, if `limit` rows were not enough."""
    return most + (limit - most) * 4 + SPARE


def settle(
    question: Vector, candidates: Sequence[Candidate], most: int, *, complete: bool
) -> list[Ranked] | None:
    """Return the best `most` in exact order; None if a row that was not fetched could be among them.

    `complete`: there are no other rows.
    """
    exact = take_best((Ranked(each.number, cosine(question, each.vector)) for each in candidates), most)
    if complete or not candidates:
        return exact
    is_certain = len(exact) == most and exact[-1].score > candidates[-1].score + 2 * FLOAT_ERROR
    return exact if is_certain else None
