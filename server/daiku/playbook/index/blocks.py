"""Blocks of bullets in an index: their vectors by component, of which a search reads those that its question has."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from daiku.core.retrieval.nearest import Block, Row, block_of, ones_of
from daiku.core.retrieval.vectors import Vector, pack
from daiku.dataclass import dataclass, field
from daiku.playbook.index import tables
from daiku.store.database import MOST_MARKS, Database, marks

BLOCK = 2000
"""Bullets of a block: a component of all their vectors just fits on a page of SQLite."""


class Member(NamedTuple):
    """A bullet of a block: its number, how many terms it has, its vector where it has one and is active."""

    number: int
    length: int
    squared: int
    packed: bytes | None


@dataclass(slots=True)
class Columns:
    """The components of the vectors of a block that have been read."""

    lanes: dict[int, int] = field(default_factory=dict)

    def __getitem__(self, place: int, /) -> int:
        return self.lanes[place]


@dataclass(slots=True)
class Kept:
    """A block as it was read: `writes` says when it was written."""

    writes: int
    lengths: array[int]
    block: Block
    columns: Columns


def write_block(
    db: Database, index: int, number: int, writes: int, members: Sequence[Member], dimension: int
) -> None:
    """Keep the vectors of the block `number`, and how long its bullets are."""
    if not members:
        return
    first, blank = number * BLOCK, pack((0,) * dimension)
    size = members[-1].number - first + 1
    rows = [Row(first + at, blank, 0) for at in range(size)]
    lengths, held = array("I", bytes(4 * size)), bytearray(size)
    for member in members:
        at = member.number - first
        lengths[at] = member.length
        if member.packed is not None:
            rows[at], held[at] = Row(member.number, member.packed, member.squared), 1
    squares = [member.squared for member in members if member.packed is not None]
    made = block_of(rows, dimension)
    db.write(
        tables.PUT_BLOCK,
        (
            *(index, number, writes, min(squares, default=0), max(squares, default=0)),
            *(_bytes(array("I", [row.squared for row in rows])), _bytes(lengths), bytes(held)),
        ),
    )
    db.write_all(
        tables.PUT_COLUMN,
        [
            (index, place, number, made.columns[place].to_bytes(2 * size, "little"))
            for place in range(dimension)
        ],
    )


def read_blocks(db: Database, index: int, known: dict[int, Kept]) -> dict[int, Kept]:
    """The blocks of an index by their number; of those that are `known` and have not changed nothing is read again."""
    found: dict[int, Kept] = {}
    for number, writes, shortest, longest, squares, lengths, held in db.query(tables.BLOCKS, (index,)):
        before = known.get(number)
        if before is not None and before.writes == writes:
            found[number] = before
            continue
        columns, first, size = Columns(), number * BLOCK, len(held)
        empty = frozenset(at for at, there in enumerate(held) if not there) if 0 in held else frozenset[int]()
        block = Block(
            range(first, first + size), _numbers(squares), shortest, longest, columns, ones_of(size), empty
        )
        found[number] = Kept(writes, _numbers(lengths), block, columns)
    return found


def read_columns(db: Database, index: int, blocks: dict[int, Kept], question: Vector) -> None:
    """Read of each block the components that the question has."""
    wanted = [place for place, weight in enumerate(question) if weight]
    missing = [place for place in wanted if any(place not in kept.columns.lanes for kept in blocks.values())]
    for start in range(0, len(missing), MOST_MARKS):
        part = missing[start : start + MOST_MARKS]
        rows: Iterable[Any] = db.query(tables.COLUMNS.format(marks(len(part))), (index, *part))
        for place, number, lanes in rows:
            if (kept := blocks.get(number)) is not None and place not in kept.columns.lanes:
                kept.columns.lanes[place] = int.from_bytes(lanes, "little")


def _bytes(numbers: array[int]) -> bytes:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def _numbers(kept: bytes) -> array[int]:
    numbers = array("I")
    numbers.frombytes(kept)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
