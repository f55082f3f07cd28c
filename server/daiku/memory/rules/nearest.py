"""Exact search for the nearest of many vectors by cosine, with numpy; exact order of approximately ordered rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

from daiku.memory.rules.vectors import SCALE, Vector, compute_cosine, cosine, squared_length

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MARGIN = 1e-4
"""Cosine margin, above the error of products of 32-bit floats.

Every row within it of the last of the best is compared exactly.
"""


class Row(NamedTuple):
    """A packed vector with its number, which breaks ties, and the square of its length."""

    number: int
    packed: bytes
    squared: int


class Ranked(NamedTuple):
    """The number of a row and its score."""

    number: int
    score: float


def take_best(ranked: Iterable[Ranked], most: int) -> list[Ranked]:
    """Return the best `most`; ties are ordered by number."""
    return sorted(ranked, key=lambda each: (-each.score, each.number))[:most]


class Nearest:
    """Vectors of one dimension, and the search for the nearest ones.

    Scores and order are exact: numpy's floats only choose the rows that are compared as integers.
    """

    def __init__(self, dimension: int) -> None:
        import numpy as np  # when used

        self.dimension = dimension
        self._numbers: list[int] = []
        self._squares = np.empty(0, np.int64)
        self._vectors = np.empty((0, dimension), np.float32)

    def add(self, rows: Iterable[Row]) -> None:
        """Add further rows."""
        import numpy as np  # when used

        added = list(rows)
        if not added:
            return
        start, end = len(self._numbers), len(self._numbers) + len(added)
        if end > len(self._squares):
            room = max(end, 2 * start)  # doubled, so that adding one row rarely copies the others
            self._squares = np.resize(self._squares, room)
            vectors = np.empty((room, self.dimension), np.float32)
            vectors[:start] = self._vectors[:start]
            self._vectors = vectors
        packed = np.frombuffer(b"".join(row.packed for row in added), "<u2")
        self._vectors[start:end] = packed.reshape(len(added), -1)
        self._vectors[start:end] -= SCALE
        self._squares[start:end] = [row.squared for row in added]
        self._numbers += [row.number for row in added]

    def search(self, question: Vector, most: int, hidden: AbstractSet[int] = frozenset()) -> list[Ranked]:
        """Return the `most` rows nearest to `question`; ties by number, without those that are `hidden`."""
        import numpy as np  # when used

        count, squared = len(self._numbers), squared_length(question)
        vectors, squares = self._vectors[:count], self._squares[:count]
        lengths = np.sqrt(np.maximum(squares, 1) * float(max(squared, 1)))
        scores = vectors @ np.array(question, np.float32) / lengths
        visible = np.flatnonzero(~np.isin(self._numbers, list(hidden))) if hidden else np.arange(count)
        best = visible[_find_candidates(scores[visible], most)]
        products = vectors[best].astype(np.int64) @ np.array(question, np.int64)
        return take_best(
            (
                Ranked(self._numbers[place], compute_cosine(int(product), squared * int(squares[place])))
                for place, product in zip(best.tolist(), products.tolist(), strict=True)
            ),
            most,
        )


def _find_candidates(scores: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Return the places whose score can be among the best `most`, given the error of the scores."""
    import numpy as np  # when used

    if len(scores) <= most:
        return np.arange(len(scores))
    last = np.partition(scores, len(scores) - most)[len(scores) - most]
    return np.flatnonzero(scores >= last - MARGIN)


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
