"""Integer vectors: every store computes exactly the same scores."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from operator import mul
from typing import TypeAlias

Vector: TypeAlias = tuple[int, ...]
"""A direction with a length of about SCALE and components between -SCALE and SCALE."""
SCALE = 4095
MOST_DIMENSIONS = 4096
"""Maximum number of dimensions."""


def to_integers(values: Sequence[float]) -> Vector:
    """Scale `values` to integers; all zero without a direction. Raises ValueError for invalid components."""
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
    """Return the square of the vector's length."""
    return sum(map(mul, vector, vector))


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two vectors, from -1 to 1; 0 if one is zero."""
    return compute_cosine(sum(map(mul, one, other)), squared_length(one) * squared_length(other))


def compute_cosine(product: int, lengths: int) -> float:
    """Return the cosine from the dot product and the product of the squared lengths."""
    return product / math.sqrt(lengths) if lengths else 0.0


def pack(vector: Vector) -> bytes:
    """Pack a vector as 16-bit integers, each increased by SCALE."""
    return struct.pack(f"<{len(vector)}H", *[part + SCALE for part in vector])
