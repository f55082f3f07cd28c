"""The Database protocol, through which all tables are read and written."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeAlias

from daiku.domain.errors import DaikuError

Values: TypeAlias = tuple[str | int | float | bytes | None, ...]
"""Values of a statement's `?` placeholders."""
MOST_MARKS = 250
"""Maximum number of placeholders in one statement; the server allows 32,767, an old SQLite 999."""


def build_placeholders(count: int) -> str:
    """Return `count` placeholders: `?, ?, ?`."""
    return ", ".join("?" * count)


class Database(Protocol):
    """One connection in autocommit mode, for all threads. Methods raise DaikuError if the database fails."""

    def prepare(self, schema: str) -> None:
        """Create missing tables and indexes of `schema`; safe in several processes at once."""
        ...

    def has(self, table: str) -> bool:
        """Return True if the table exists, so that readers need not create it."""
        ...

    def has_column(self, table: str, column: str) -> bool:
        """Return True if the table has the column."""
        ...

    def query(self, sql: str, values: Values = ()) -> list[Any]:
        """Execute a statement and return its rows."""
        ...

    def first(self, sql: str, values: Values = ()) -> Any:
        """Execute a statement and return its first row; None without rows."""
        ...

    def write(self, sql: str, values: Values = ()) -> None:
        """Execute a statement without rows."""
        ...

    def write_all(self, sql: str, rows: Iterable[Values]) -> None:
        """Execute a statement once for each of `rows`."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """Commit all writes inside, or roll them back; a nested transaction belongs to the outer one.

        On a server others write meanwhile: read and change in one `UPDATE … RETURNING`.
        """
        ...

    def durable(self) -> AbstractContextManager[None]:
        """Make writes inside, and before, survive a power failure; others survive only a process crash.

        Wraps a transaction; has no effect within one.
        """
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


def add_column(db: Database, table: str, column: str, definition: str, fill: str = "") -> None:
    """Add a column that an earlier version's table lacks.

    `definition`: its type and default. `fill`: a statement that sets it in existing rows, in the same
    transaction.
    """
    if db.has_column(table, column):
        return
    try:
        with db.transaction():
            db.write(f"ALTER TABLE {table} ADD COLUMN {column} {definition}")
            if fill:
                db.write(fill)
    except DaikuError:
        if not db.has_column(table, column):  # another process added it concurrently
            raise
