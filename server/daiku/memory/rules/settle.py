"""The exact order of rows that a database has put into an order of its own, by floating-point numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from daiku.memory.rules.nearest import Ranked, in_order
from daiku.memory.rules.vectors import Vector, cosine

FLOAT_ERROR = 1e-5
"""By no more than this a database's cosine of 32-bit floats is off."""
SPARE = 32
"""Rows beyond those asked for that a database is asked for first."""


class Candidate(NamedTuple):
    """A row as a database found it: its cosine there, and its vector."""

    number: int
    score: float
    vector: Vector


def wider(most: int, taken: int) -> int:
    """How many rows to ask for next, when `taken` were not enough to be sure."""
    return most + (taken - most) * 4 + SPARE


def settled(
    question: Vector, found: Sequence[Candidate], most: int, *, complete: bool
) -> list[Ranked] | None:
    """The best `most` in exact order; None where a row that was not fetched could belong among them. `complete`:
    there are no other rows."""
    exact = in_order((Ranked(each.number, cosine(question, each.vector)) for each in found), most)
    if complete or not found:
        return exact
    sure = len(exact) == most and exact[-1].score > found[-1].score + 2 * FLOAT_ERROR
    return exact if sure else None
