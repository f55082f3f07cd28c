"""What trials have cost stands in the database before and after each of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from daiku.playbook.gate.spending import begin, cut_off
from daiku.store.database import Database
from daiku.store.opening import open_tables, opened_place


@pytest.fixture
def tables(database: Path | str) -> Iterator[Database]:
    opened = open_tables(opened_place(database), "")
    yield opened
    opened.close()


def test_what_was_cut_off_is_known_with_what_it_cost(tables: Database) -> None:
    """X.12: whatever ends the process, what was spent is on record."""
    assert cut_off(tables) == ()
    first = begin(tables)
    first.trial()
    first.spent(0.0123)
    first.trial()
    (found,) = cut_off(tables)
    assert (found.trials, found.spent, found.unknown) == (1, 0.0123, True)
    second = begin(tables)
    (found,) = cut_off(tables)
    assert (found.trials, found.unknown) == (0, False)
    second.end()
    assert cut_off(tables) == ()
