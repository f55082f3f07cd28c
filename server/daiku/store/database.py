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
    """The places for so many values in a statement: `?, ?, ?`."""
    return ", ".join("?" * count)


class Database(Protocol):
    """One connection in autocommit mode, for all threads of the process. Every method raises DaikuError
    where the database fails: a full disk, a damaged page, a file that another program holds."""

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
        """All that is written inside, or nothing of it; one within another falls and stands with it. On a server others
        write meanwhile: what is read and then changed is changed by one `UPDATE … RETURNING`."""
        ...

    def durable(self) -> AbstractContextManager[None]:
        """What is written inside survives a power cut, and so does all that was written before it. The rest survives
        the end of the process. Within a transaction it does nothing: it goes around one."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...


def add_column(db: Database, table: str, column: str, definition: str, fill: str = "") -> None:
    """Add a column to a table that an earlier version made without it. `definition`: its type and default. `fill`: a
    statement that sets it in the rows that are there, in the same transaction."""
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
