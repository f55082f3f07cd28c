"""The databases that keep conversations, by turns: every test that asks for one holds on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from daiku.store.opening import open_place
from daiku.trace.journal import Journal
from daiku.trace.stores import Stores, open_stores

OpenJournal: TypeAlias = Callable[[], Journal]
OpenStores: TypeAlias = Callable[[], Stores]


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new, empty database is: a file, or the address of a server."""
    if request.param == "sqlite":
        return tmp_path / "home" / "daiku.db"
    new_database: Callable[[], str] = request.getfixturevalue("postgres")
    return new_database()


@pytest.fixture
def open_journal(database: Path | str) -> Iterator[OpenJournal]:
    """Opens a journal of the database as another process would: with a connection and locks of its own."""
    opened: list[Journal] = []

    def open_one() -> Journal:
        opened.append(Journal(open_place(database)))
        return opened[-1]

    yield open_one
    for journal in opened:
        journal.close()


@pytest.fixture
def journal(open_journal: OpenJournal) -> Journal:
    return open_journal()


@pytest.fixture
def open_all(database: Path | str) -> Iterator[OpenStores]:
    """Opens all stores of the database as another process would."""
    opened: list[Stores] = []

    def open_one() -> Stores:
        opened.append(open_stores(database, str))
        return opened[-1]

    yield open_one
    for stores in opened:
        stores.close()
