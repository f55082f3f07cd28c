"""The nearest of many vectors, exactly: sums over all of them at once, in the lanes of long whole numbers."""

from __future__ import annotations

from array import array
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import nlargest, nsmallest
from math import sqrt
from typing import NamedTuple

from daiku.core.retrieval.vectors import SCALE, Vector, score_of, squared_length

BLOCK = 2048
"""Vectors that are summed together: enough to be worth the call, few enough for the processor's cache."""
FIT = 8
"""Columns whose sum stays within 16 bits: 8 times 2 * SCALE."""


class Row(NamedTuple):
    """A packed vector with its number, by which equals are ordered, and the square of its length."""

    number: int
    packed: bytes
    squared: int


class Ranked(NamedTuple):
    """The number of a row and how well it fits."""

    number: int
    score: float


def in_order(found: Iterable[Ranked], most: int) -> list[Ranked]:
    """The best `most`, equals by their number."""
    return sorted(found, key=lambda each: (-each.score, each.number))[:most]


class Block(NamedTuple):
    """Vectors by component: the n-th number holds the n-th component of each, in 16 bits apiece."""

    numbers: Sequence[int]
    squares: Sequence[int]
    shortest: int
    longest: int
    """The least and the greatest of the squares."""
    columns: Sequence[int]
    ones: int
    """A one in each lane of 32 bits: for every second row."""


class Nearest:
    """Vectors of one dimension, and the search for those nearest to another. All products are exact, so the order is
    that of comparing one by one: what a list in C would need, plain Python does in about 11 ms for 100,000."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._full: list[Block] = []
        self._rows: list[Row] = []
        self._rest: Block | None = None

    def add(self, rows: Iterable[Row]) -> None:
        """Take in further rows."""
        for row in rows:
            self._rows.append(row)
            if len(self._rows) == BLOCK:
                self._full.append(_block_of(self._rows, self.dimension))
                self._rows = []
        self._rest = None

    def search(self, question: Vector, most: int, hidden: AbstractSet[int] = frozenset()) -> list[Ranked]:
        """The `most` rows nearest to `question`, equals by their number; none of the numbers that are `hidden`."""
        if self._rows and self._rest is None:
            self._rest = _block_of(self._rows, self.dimension)
        blocks = [*self._full, *((self._rest,) if self._rest is not None else ())]
        return _nearest_in(blocks, question, most, hidden)


def _nearest_in(
    blocks: Iterable[Block], question: Vector, most: int, hidden: AbstractSet[int]
) -> list[Ranked]:
    """The `most` rows of all `blocks` that are nearest to `question`, equals by their number; none that is `hidden`."""
    asked, weights = squared_length(question), _by_weight(question)
    if not weights:  # nothing is nearer than anything else
        shown = (number for block in blocks for number in block.numbers if number not in hidden)
        return [Ranked(number, 0.0) for number in nsmallest(most, shown)]
    summed = [(block, *_products(block, weights)) for block in blocks]
    closed = [_closed(products, block, hidden) for block, products, _ in summed]
    # The block with the greatest product first: then few others have to be looked into.
    ordered = sorted(
        [(max(each[1]), *each, out) for each, out in zip(summed, closed, strict=True)], key=_unraised
    )
    kept: list[tuple[float, int]] = []
    for greatest, block, products, raised, out in ordered:
        least = (
            _least(kept, raised, asked, block) if len(kept) == most else _first(products, most, raised, block)
        )
        if greatest < least:
            continue
        for at in [at for at, product in enumerate(products) if product >= least and at not in out]:
            entry = (-score_of(products[at] - raised, asked * block.squares[at]), block.numbers[at])
            if len(kept) < most or entry < kept[-1]:
                insort(kept, entry)
                del kept[most:]
    return [Ranked(number, -low) for low, number in kept]


def _closed(products: array[int], block: Block, hidden: AbstractSet[int]) -> AbstractSet[int]:
    """The rows of a block that are hidden. Their products become the least there are, so that they bound nothing."""
    out = {at for at, number in enumerate(block.numbers) if number in hidden} if hidden else frozenset[int]()
    for at in out:
        products[at] = 0
    return out


def _unraised(summed: tuple[int, Block, array[int], int, AbstractSet[int]]) -> int:
    """The greatest product of a block as it is, negative: the greatest comes first."""
    return summed[3] - summed[0]


def _first(products: array[int], most: int, raised: int, block: Block) -> int:
    """The raised product below which no row of a block is among its best."""
    best = nlargest(most, products)
    if len(best) < most or best[-1] <= raised:
        return 0
    return (
        raised + int((best[-1] - raised) * sqrt(block.shortest / block.longest)) - 2
    )  # the shorter may be nearer


def _least(kept: list[tuple[float, int]], raised: int, asked: int, block: Block) -> int:
    """The raised product below which no row of a block is better than the worst that is kept."""
    worst = -kept[-1][0]
    bound = block.shortest if worst > 0 else block.longest
    return raised + int(worst * sqrt(asked * bound)) - 2  # -2: the root is rounded


def _by_weight(question: Vector) -> Mapping[int, list[int]]:
    """The places of each weight other than zero: columns of one weight are added before they are multiplied."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, weight in enumerate(question):
        if weight:
            places[weight].append(place)
    return places


def _products(block: Block, weights: Mapping[int, list[int]]) -> tuple[array[int], int]:
    """The product of the question with each row, all raised by the second number so that none is negative."""
    low = block.ones * 0xFFFF
    plus_even = plus_odd = minus_even = minus_odd = given = taken = 0
    for weight, places in weights.items():
        even = odd = 0
        for start in range(0, len(places), FIT):
            column = block.columns[places[start]]
            for place in places[start + 1 : start + FIT]:
                column += block.columns[place]
            even += column & low
            odd += (column >> 16) & low
        if weight > 0:
            plus_even += weight * even
            plus_odd += weight * odd
            given += weight * len(places)
        else:
            minus_even -= weight * even
            minus_odd -= weight * odd
            taken -= weight * len(places)
    # Components are stored raised by SCALE: at most twice that, so no lane of the difference falls below zero.
    most = 2 * SCALE * taken * block.ones
    half = (len(block.numbers) + 1) // 2
    products = array("I", bytes(8 * half))
    products[0::2] = array("I", (most + plus_even - minus_even).to_bytes(4 * half, "little"))
    products[1::2] = array("I", (most + plus_odd - minus_odd).to_bytes(4 * half, "little"))
    return products[: len(block.numbers)], SCALE * (given - taken) + 2 * SCALE * taken


def _block_of(rows: Sequence[Row], dimension: int) -> Block:
    """The rows as one block."""
    data, step = b"".join(row.packed for row in rows), 2 * dimension
    columns: list[int] = []
    for place in range(0, step, 2):
        lanes = bytearray(2 * len(rows))
        lanes[0::2], lanes[1::2] = data[place::step], data[place + 1 :: step]
        columns.append(int.from_bytes(lanes, "little"))
    numbers, squares = tuple(row.number for row in rows), tuple(row.squared for row in rows)
    ones = int.from_bytes(b"\1\0\0\0" * ((len(rows) + 1) // 2), "little")
    return Block(numbers, squares, min(squares), max(squares), tuple(columns), ones)
