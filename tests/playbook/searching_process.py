"""What another process does with the index of a playbook: it searches until it is killed.

python -m tests.playbook.searching_process PLACE
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from daiku.core.retrieval.vectors import Vector, whole_vector
from daiku.domain.playbook import Delta, Observation, SearchQuery
from daiku.playbook.index import blocks, snapshot, taking
from daiku.playbook.search import PlaybookSearch
from daiku.playbook.store import PlaybookStore
from daiku.store.database import Database
from daiku.store.opening import open_tables, opened_place
from daiku.texts.text import Text, text
from tests.playbook.changed import add, remove, update
from tests.playbook.otherprocess import killed_at

QUERY = SearchQuery(query_text="run the tests of the parser 試験", top_k=20, min_confidence=0.0)


class Three:
    """An embedder with three dimensions: few statements write a block of its vectors."""

    name = "test/three"
    unrelated = 0.3

    @property
    def describe(self) -> Text:
        return text("memory.matches_words")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [whole_vector([float(1 + said.count(each)) for each in ("a", "e", "n")]) for said in texts]

    async def aclose(self) -> None:
        """Nothing is open."""


def small_blocks() -> None:
    """Few bullets fill a block, so that a short test has several."""
    for module in (blocks, snapshot, taking):
        setattr(module, "BLOCK", 4)  # noqa: B010  # a constant of every other process
    setattr(taking, "MOST_FRESH", 2)  # noqa: B010


def work(store: PlaybookStore) -> None:
    """Changes of every kind, and after each few a search, which brings the index up to date."""
    ids = [add(store, f"run test {number} of the parser") for number in range(5)]
    PlaybookSearch(Three()).search(QUERY, store)
    update(store, ids[0], "試験は夜に走る")
    remove(store, ids[1])
    store.observe([Observation(run="r", bullet=ids[2], verdict="harmful")])
    PlaybookSearch(Three()).search(QUERY, store)
    for number in range(3):
        add(store, f"another lesson {number}")
    store.apply(Delta(id="", type="restore", bullet_id=ids[1]))
    PlaybookSearch(Three()).search(QUERY, store)


def die(database: Database) -> None:
    """Work in a playbook of its own for each statement that a child is killed at; the last one lives."""
    for number in count(1):
        child = os.fork()
        if not child:
            killed_at(database, number)
            work(PlaybookStore(database, "repository", f"key{number}"))
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return


if __name__ == "__main__":
    where = sys.argv[1]
    small_blocks()
    die(open_tables(opened_place(where if "://" in where else Path(where)), ""))
