"""A playbook whose database is held, full, damaged or gone: a sentence, and nothing of the change is there."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from daiku.domain.errors import DaikuError
from daiku.domain.playbook import Delta, Observation, SearchQuery
from daiku.playbook.search import PlaybookSearch
from daiku.playbook.store import PlaybookStore
from daiku.store import sqlite
from daiku.store.opening import open_tables
from tests.playbook.changed import add, update


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "home" / "daiku.db"


@pytest.fixture
def store(file: Path, monkeypatch: pytest.MonkeyPatch) -> PlaybookStore:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    return PlaybookStore(open_tables(file, ""), "repository", "here")


def test_a_playbook_that_another_program_holds_is_read_and_a_change_is_refused_with_a_sentence(
    store: PlaybookStore, file: Path
) -> None:
    """C3.8: a store that fails is an error with a sentence, and what was there stays."""
    at = add(store, "A lesson.")
    before = store.load()
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for change in (
        lambda: store.apply(Delta(id="", type="add", content="Another.")),
        lambda: store.propose(Delta(id="", type="add", content="Another.")),
        lambda: store.undo("r1"),
        lambda: store.observe([Observation(run="r", bullet=at, verdict="helpful")]),
    ):
        with pytest.raises(DaikuError) as caught:
            change()
        assert caught.value.failure.message
        assert caught.value.failure.hint
    assert store.load() == before
    other.execute("ROLLBACK")
    other.close()
    update(store, at, "It goes on.")


def test_on_a_full_disk_a_change_is_made_whole_or_not_at_all(store: PlaybookStore) -> None:
    """C3.8: the disk fills up at any page of a change."""
    at = add(store, "A lesson.")
    database = store._database
    pages = database.first("PRAGMA page_count")[0]
    database.first(f"PRAGMA max_page_count = {pages + 3}")
    made = 1

    def fill() -> None:
        nonlocal made
        while made < 1_000:
            add(store, f"{made} {'x' * 1_000}")
            made += 1

    with pytest.raises(DaikuError, match="full"):
        fill()
    assert made > 1
    assert len(store.load().bullets) == len(store.deltas()) == made
    with pytest.raises(DaikuError, match="full"):
        update(store, at, "x" * 4_000)
    assert store.load().bullets[0].content == "A lesson."
    database.first("PRAGMA max_page_count = 100000")
    assert add(store, "There is room again.") == f"cm-{made + 1:05d}"


@pytest.mark.slow
def test_where_no_file_can_grow_any_more_what_was_added_is_there_whole(file: Path) -> None:
    """C3.8: a limit that the system itself holds; the index is as good afterwards as the table."""
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tests.playbook.otherprocess", "fill", str(file), "400000"]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=True)
    made, told = json.loads(done.stdout)
    assert made > 1
    assert "disk" in told
    whole = PlaybookStore(open_tables(file, ""), "repository", "here")
    assert len(whole.load().bullets) == len(whole.deltas()) == made
    assert whole.database.first("PRAGMA integrity_check")[0] == "ok"
    assert add(whole, "There is room again.") == f"cm-{made + 1:05d}"
    hits = PlaybookSearch().search(SearchQuery(query_text="room"), whole)
    assert hits[0].bullet.content == "There is room again."
    whole.database.close()


def test_a_damaged_file_is_an_error_with_a_sentence(store: PlaybookStore, file: Path) -> None:
    for number in range(200):
        add(store, f"{number} {'x' * 500}")
    store._database.close()
    whole = file.read_bytes()
    file.write_bytes(whole[:8_192] + b"\xff" * (len(whole) - 8_192))
    damaged = PlaybookStore(open_tables(file, ""), "repository", "here")
    with pytest.raises(DaikuError):
        damaged.load()
    damaged._database.close()
