"""Vectors of whole numbers: every store computes the same with them, to the last digit."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from operator import mul
from typing import TypeAlias

Vector: TypeAlias = tuple[int, ...]
"""A direction: its length is about SCALE, its components lie between -SCALE and SCALE."""
SCALE = 4095
MOST_DIMENSIONS = 4096
"""Dimensions of the largest vector that is accepted."""


def whole_vector(values: Sequence[float]) -> Vector:
    """The direction of `values`; all zero where they have none. Raises ValueError for too many or no real numbers."""
    if not 0 < len(values) <= MOST_DIMENSIONS:
        raise ValueError(f"a vector has between 1 and {MOST_DIMENSIONS} components, not {len(values)}")
    length = math.sqrt(sum(map(mul, values, values)))
    if not math.isfinite(length):
        raise ValueError("a vector has finite components")
    if length == 0.0:
        return (0,) * len(values)
    factor = SCALE / length
    return tuple([round(value * factor) if value else 0 for value in values])


def squared_length(vector: Vector) -> int:
    """The square of the vector's length."""
    return sum(map(mul, vector, vector))


def cosine(one: Vector, other: Vector) -> float:
    """How alike two directions are, from -1 to 1; 0 where one has none."""
    return score_of(sum(map(mul, one, other)), squared_length(one) * squared_length(other))


def score_of(product: int, lengths: int) -> float:
    """The cosine from the product of two vectors and the product of their squared lengths."""
    return product / math.sqrt(lengths) if lengths else 0.0


def pack(vector: Vector) -> bytes:
    """The vector as bytes, two for each component, raised by SCALE so that none is negative."""
    return struct.pack(f"<{len(vector)}H", *[part + SCALE for part in vector])
