"""Processes that search are killed at any statement, or search beside others: the index equals the table."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from daiku.playbook.search import PlaybookSearch
from daiku.playbook.store import PlaybookStore
from tests.playbook.conftest import OpenPlaybook
from tests.playbook.searching_process import QUERY, Three

pytestmark = pytest.mark.slow


def test_an_index_equals_its_table_whatever_statement_a_process_was_killed_at(
    open_playbook: OpenPlaybook, database: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kill -9` before each statement of changes and searches; what searches next finds what the table holds."""
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tests.playbook.searching_process", str(database)]
    subprocess.run(command, env=given, check=True)
    small_blocks_of_this_process(monkeypatch)
    store = open_playbook()
    keys = [row[0] for row in store.database.query("SELECT key FROM playbooks ORDER BY id")]
    assert len(keys) > 100, "hardly any statement was struck"
    for key in keys:
        killed = PlaybookStore(store.database, "repository", key)
        search = PlaybookSearch(Three())
        assert search.search(QUERY, killed) == search.search(QUERY, killed.load()), key
        assert indexed(killed) == held(killed), key


def small_blocks_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of the process that was killed, for this test only."""
    for module in ("blocks", "snapshot", "taking"):
        monkeypatch.setattr(f"daiku.playbook.index.{module}.BLOCK", 4)
    monkeypatch.setattr("daiku.playbook.index.taking.MOST_FRESH", 2)


def indexed(store: PlaybookStore) -> list[tuple[str, str]]:
    """The active bullets of the index, with their sections."""
    return store.database.query(
        "SELECT i.id, i.section FROM playbook_indexed i JOIN playbook_indexes x ON x.id = i.idx"
        " WHERE x.key = ? AND i.active = 1 ORDER BY i.number",
        (store.key,),
    )


def held(store: PlaybookStore) -> list[tuple[str, str]]:
    """The active bullets of the playbook."""
    return [(each.id, each.section) for each in store.load().bullets if each.active]
