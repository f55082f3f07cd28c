"""The databases that keep playbooks, by turns: every test that asks for one holds on each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

from daiku.domain.playbook import PlaybookScope
from daiku.playbook.store import PlaybookStore
from daiku.store.opening import open_place, open_tables

OpenPlaybook: TypeAlias = Callable[..., PlaybookStore]
"""Opens a playbook (scope, key) of the database as another process would: with a connection of its own."""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a new, empty database is: a file, or the address of a server."""
    if request.param == "sqlite":
        return tmp_path / "home" / "daiku.db"
    new_database: Callable[[], str] = request.getfixturevalue("postgres")
    return new_database()


@pytest.fixture
def open_playbook(database: Path | str) -> Iterator[OpenPlaybook]:
    opened: list[Callable[[], None]] = []

    def open_one(scope: PlaybookScope = "repository", key: str = "here") -> PlaybookStore:
        tables = open_tables(open_place(database), "")
        opened.append(tables.close)
        return PlaybookStore(tables, scope, key)

    yield open_one
    for close in opened:
        close()


@pytest.fixture
def store(open_playbook: OpenPlaybook) -> PlaybookStore:
    return open_playbook()
