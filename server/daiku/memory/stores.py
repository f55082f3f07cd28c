"""Selection of the memory store by a path or a URL."""

from __future__ import annotations

from pathlib import Path

from daiku.domain.errors import Failure, UsageError
from daiku.memory.postgres_store import PostgresMemories
from daiku.memory.sqlite_store import SqliteMemories
from daiku.memory.store import MemoryStore
from daiku.store.opening import SERVER
from daiku.texts.text import text


def open_store(place: str | Path | None) -> MemoryStore:
    """Return the store at a path or a URL (`postgresql://…`, `sqlite:///…`); None: in memory. Raises UsageError."""
    if place is None:
        return SqliteMemories(None)
    scheme, is_url, rest = str(place).partition("://")
    if isinstance(place, Path) or not is_url:
        return SqliteMemories(Path(place))
    if scheme in SERVER:
        return PostgresMemories(str(place))
    if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
        return SqliteMemories(Path(rest[1:]))
    raise UsageError(
        Failure(
            kind="usage", message=text("memory.no_database", scheme=scheme), hint=text("memory.databases")
        )
    )
