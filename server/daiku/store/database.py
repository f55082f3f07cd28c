"""The Database protocol, through which all tables are read and written."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from daiku.domain.errors import DaikuError

Values: TypeAlias = tuple[str | int | float | bytes | None, ...]
"""The values for the `?` of a statement, in their order."""
MOST_MARKS = 250
"""Values of one statement; the server knows 32,767 of them, an old SQLite 999."""


def marks(count: int) -> str:
    """Return the placeholders of so many values: `?, ?, ?`."""
    return ", ".join("?" * count)


class Database(Protocol):
    """One connection in autocommit mode, for all threads. Methods raise DaikuError if the database fails."""

    def prepare(self, schema: str) -> None:
        """Make the tables and indexes of `schema` that are missing; other processes may do the same at this moment."""
        ...

    def has(self, table: str) -> bool:
        """Whether the table is there: who only reads need not make it."""
        ...

    def has_column(self, table: str, column: str) -> bool:
        """Return whether the table has the column."""
        ...

    def query(self, sql: str, values: Values = ()) -> list[Any]:
        """All rows that a statement gives."""
        ...

    def first(self, sql: str, values: Values = ()) -> Any:
        """The first row that a statement gives; None where it gives none."""
        ...

    def write(self, sql: str, values: Values = ()) -> None:
        """Carry out a statement that gives no rows."""
        ...

    def write_all(self, sql: str, rows: Iterable[Values]) -> None:
        """Carry out a statement once for each of `rows`."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Write all that is inside, or nothing; a nested one belongs to the outer one. On a server others write
        meanwhile: change what was read by one `UPDATE … RETURNING`."""
        ...

    def durable(self) -> AbstractContextManager[None]:
        """Have what is written inside, and before, survive a power cut; other writes survive the end of the process.
        It goes around a transaction, and does nothing within one."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...


def add_column(db: Database, table: str, column: str, definition: str, fill: str = "") -> None:
    """Add a column that an earlier version's table lacks. `definition`: its type and default. `fill`: a statement that
    sets it in existing rows, in the same transaction."""
    if db.has_column(table, column):
        return
    try:
        with db.transaction():
            db.write(f"ALTER TABLE {table} ADD COLUMN {column} {definition}")
            if fill:
                db.write(fill)
    except DaikuError:
        if not db.has_column(table, column):  # else another process added it at this moment
            raise
