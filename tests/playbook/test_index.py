"""The index of a playbook in a database: it answers what the playbook as a value answers, whatever was ended when."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.core.retrieval.hashed import hashed_vector
from daiku.core.retrieval.vectors import Vector, whole_vector
from daiku.domain.playbook import Delta, Observation, SearchQuery
from daiku.llm.embedder import HashedWords
from daiku.playbook.index import blocks, snapshot, taking
from daiku.playbook.index.source import Embedded
from daiku.playbook.index.stored import StoredSource
from daiku.playbook.search import PlaybookSearch
from daiku.playbook.store import PlaybookStore
from daiku.store.sqlite import connect
from daiku.texts.text import Text, text
from tests.playbook.changed import add, remove, update
from tests.playbook.conftest import OpenPlaybook

WORDS = ["tests", "pytest", "run", "make", "parse_json", "HttpClient", "設定", "試験", "lint", "ci", "!"]
SECTIONS = ["tool_usage", "environment"]
CHANGES = ["update", "remove", "restore", "merge"]
Step: TypeAlias = tuple[str, int, str, str]

contents = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
steps: st.SearchStrategy[list[Step]] = st.lists(
    st.tuples(
        st.sampled_from([*["add"] * 4, *CHANGES, "undo", "helpful", "harmful", "search"]),
        st.integers(0, 30),
        contents,
        st.sampled_from(SECTIONS),
    ),
    max_size=25,
)
queries = st.builds(
    SearchQuery,
    query_text=st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join),
    top_k=st.integers(1, 12),
    section_filter=st.sampled_from([None, *SECTIONS]),
    min_confidence=st.sampled_from([0.0, 0.3, 0.5, 0.9]),
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few bullets fill a block, so that a short test has several."""
    for module in (blocks, snapshot, taking):
        monkeypatch.setattr(module, "BLOCK", 8)
    monkeypatch.setattr(taking, "MOST_FRESH", 3)


def carry_out(store: PlaybookStore, step: Step) -> None:
    """One change; what does not fit how things are is refused, and changes nothing."""
    kind, which, content, section = step
    known = [bullet.id for bullet in store.load().bullets]
    if kind == "add":
        store.apply(Delta(id="", type="add", section=section, content=content))
    elif kind == "undo" and (made := store.deltas("applied")):
        store.undo(made[which % len(made)].id)
    elif known and kind in ("helpful", "harmful"):
        seen = Observation(run=f"run_{which}", bullet=known[which % len(known)], verdict=kind)
        store.observe([seen])
    elif known and kind in CHANGES:
        told = {"content": content} if kind == "update" else {"bullet_ids": known[which % len(known) :][:2]}
        store.apply(
            Delta.model_validate({"id": "", "type": kind, "bullet_id": known[which % len(known)], **told})
        )


@given(st.lists(contents, min_size=6, max_size=20), steps, queries, st.booleans())
def test_a_store_and_its_value_give_the_same_answers(
    first: list[str], done: list[Step], query: SearchQuery, resting: bool
) -> None:
    """R3.45: the same hits, the same scores, in the same order, however the playbook came to be as it is."""
    store = PlaybookStore(connect(None, ""), "repository", "k")
    kept = PlaybookSearch()
    for at, content in enumerate(first):
        add(store, content, SECTIONS[at % 2])
    kept.search(query, store)  # most are filed now
    for step in done:
        if step[0] == "search":
            kept.search(query, store)
        carry_out(store, step)
    value = PlaybookSearch().search(query, store.load(), resting=resting)
    assert kept.search(query, store, resting=resting) == value
    assert PlaybookSearch().search(query, store, resting=resting) == value


def test_what_is_filed_and_changed_then_is_found_as_it_is(store: PlaybookStore) -> None:
    """R3.45: a text that was changed, one that was put aside and one that is back, among many that stay as they are."""
    ids = [
        add(store, f"run lesson {number} of many words{' and more' * (number % 5)}") for number in range(17)
    ]
    search, query = PlaybookSearch(), SearchQuery(query_text="run lesson of words", top_k=20)
    search.search(query, store)
    update(store, ids[3], "run")
    remove(store, ids[5])
    assert search.search(query, store) == PlaybookSearch().search(query, store.load())
    remove(store, ids[6])
    remove(store, ids[7])
    search.search(query, store)  # these are filed as inactive
    store.apply(Delta(id="", type="restore", bullet_id=ids[5]))
    for asked in (query, SearchQuery(query_text="5 3"), SearchQuery(query_text="run", top_k=1)):
        assert search.search(asked, store) == PlaybookSearch().search(asked, store.load())
    hits = [hit.bullet.id for hit in search.search(query, store)]
    assert len(hits) == len(set(hits)) == 15
    assert ids[5] in hits


def test_a_search_brings_the_index_up_to_date_and_writes_nothing_when_it_is(store: PlaybookStore) -> None:
    """R3.45, on every database."""
    search, query = PlaybookSearch(), SearchQuery(query_text="run tests")
    assert search.search(query, store) == []
    ids = [add(store, f"run tests {number}") for number in range(20)]
    assert search.search(query, store) == PlaybookSearch().search(query, store.load())
    update(store, ids[3], "試験")
    remove(store, ids[4])
    store.observe([Observation(run="r", bullet=ids[5], verdict="harmful")])
    for resting in (True, False):
        value = PlaybookSearch().search(query, store.load(), resting=resting)
        assert search.search(query, store, resting=resting) == value
        assert PlaybookSearch().search(query, store, resting=resting) == value
    assert search.search(SearchQuery(query_text="試験", top_k=1), store)[0].bullet.id == ids[3]
    before = store.database.query("SELECT writes FROM playbook_indexes")
    search.search(query, store)
    assert store.database.query("SELECT writes FROM playbook_indexes") == before == [(2,)]


def test_an_index_of_other_terms_or_of_a_later_revision_is_made_anew(
    store: PlaybookStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was indexed by an earlier version of the terms, or before an older playbook was put in its place."""
    query = SearchQuery(query_text="run tests")
    for number in range(10):
        add(store, f"run tests {number}")
    found = PlaybookSearch().search(query, store)
    for damage in ("version = 0", "revision = revision + 100"):
        store.database.write(f"UPDATE playbook_indexes SET {damage}")
        store.database.write("UPDATE playbook_indexed SET said = 'other'")
        assert PlaybookSearch().search(query, store) == found


def test_a_service_is_asked_for_some_vectors_at_a_time(
    store: PlaybookStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until they have vectors bullets are found by their words."""
    monkeypatch.setattr("daiku.playbook.search.AT_ONCE", 4)
    meanings, query = Counted(), SearchQuery(query_text="7: run tests")
    for number in range(10):
        add(store, f"run tests {number}")
    search = PlaybookSearch(meanings)
    for _ in range(4):
        assert search.search(query, store)[0].bullet.content == "run tests 7"
    assert meanings.sizes == [5, 4, 2]
    assert search.search(query, store) == PlaybookSearch(Counted()).search(query, store.load())


def test_a_model_with_vectors_of_another_size_makes_all_of_them_anew(store: PlaybookStore) -> None:
    """Vectors of two sizes are never compared."""
    query = SearchQuery(query_text="run tests")
    for number in range(6):
        add(store, f"run tests {number}")
    PlaybookSearch(Counted()).search(query, store)
    search, value = PlaybookSearch(Counted(7)), PlaybookSearch(Counted(7))
    assert search.search(query, store) == value.search(query, store.load())


def test_two_embedders_have_indexes_of_their_own(store: PlaybookStore) -> None:
    query = SearchQuery(query_text="run tests")
    for number in range(6):
        add(store, f"run tests {number}")
    one, other = PlaybookSearch(), PlaybookSearch(Counted())
    for search in (one, other, one, other):
        value = PlaybookSearch() if search is one else PlaybookSearch(Counted())
        assert search.search(query, store) == value.search(query, store.load())
    assert store.database.query("SELECT writes FROM playbook_indexes") == [(1,), (1,)]


def test_while_the_database_cannot_be_written_the_playbook_is_searched_as_a_value(tmp_path: Path) -> None:
    """A full disk or a file that another program holds keeps nobody from its lessons."""
    database = connect(tmp_path / "daiku.db", "")
    store = PlaybookStore(database, "repository", "here")
    for number in range(6):
        add(store, f"run tests {number}")
    query = SearchQuery(query_text="run tests")
    database.write("PRAGMA query_only = ON")
    found = PlaybookSearch().search(query, store)
    assert found == PlaybookSearch().search(query, store.load())
    assert len(found) == 6


class Counted:
    """An embedder that counts the texts it is asked for."""

    name = "test/counted"
    unrelated = 0.3

    def __init__(self, size: int = 5) -> None:
        self._size = size
        self.sizes: list[int] = []

    @property
    def describe(self) -> Text:
        return text("memory.matches_words")

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.sizes.append(len(texts))
        return [whole_vector([1.0 + said.count(str(at)) for at in range(self._size)]) for said in texts]

    async def aclose(self) -> None:
        """Nothing is open."""


def test_two_that_take_in_the_same_changes_do_it_one_after_the_other(open_playbook: OpenPlaybook) -> None:
    """Who looked before another wrote looks again, and takes nothing in twice."""
    one, other = open_playbook(), open_playbook()
    ids = [add(one, f"run tests {number}") for number in range(6)]
    query = SearchQuery(query_text="run tests")
    slow = StoredSource(one, HashedWords().name, None)
    texts = slow.lacking()
    assert len(texts) == 6
    update(other, ids[0], "something else")
    found = PlaybookSearch().search(query, other)
    vectors = [hashed_vector(text) for text in texts]
    assert not slow.take(Embedded(hashed_vector("x"), vectors))
    assert slow.lacking() == []
    assert PlaybookSearch().search(query, one) == found == PlaybookSearch().search(query, one.load())


def test_an_index_that_is_changed_while_it_is_searched_is_searched_again(
    open_playbook: OpenPlaybook, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = open_playbook(), open_playbook()
    for number in range(6):
        add(one, f"run tests {number}")
    query, looked = SearchQuery(query_text="run tests"), StoredSource.hidden
    search = PlaybookSearch()
    search.search(query, one)

    def meanwhile(source: StoredSource, asked: SearchQuery, *, resting: bool) -> AbstractSet[int]:
        monkeypatch.setattr(StoredSource, "hidden", looked)
        add(other, "run tests again")
        PlaybookSearch().search(query, other)
        return looked(source, asked, resting=resting)

    monkeypatch.setattr(StoredSource, "hidden", meanwhile)
    assert len(search.search(query, one)) == 7
