"""Search in a stored playbook: it answers what the playbook as a value answers, whatever changed, and stores vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daiku.domain.playbook import Delta, Observation, SearchQuery
from daiku.memory.rules.vectors import Vector, to_integers
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
    kept.search(query, store)
    for step in done:
        if step[0] == "search":
            kept.search(query, store)
        carry_out(store, step)
    value = PlaybookSearch().search(query, store.load(), resting=resting)
    assert kept.search(query, store, resting=resting) == value
    assert PlaybookSearch().search(query, store, resting=resting) == value


def test_what_was_changed_since_the_last_search_is_found_as_it_is(store: PlaybookStore) -> None:
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
    search.search(query, store)
    store.apply(Delta(id="", type="restore", bullet_id=ids[5]))
    for asked in (query, SearchQuery(query_text="5 3"), SearchQuery(query_text="run", top_k=1)):
        assert search.search(asked, store) == PlaybookSearch().search(asked, store.load())
    hits = [hit.bullet.id for hit in search.search(query, store)]
    assert len(hits) == len(set(hits)) == 15
    assert ids[5] in hits


def test_a_search_reads_what_another_process_changed(open_playbook: OpenPlaybook) -> None:
    """R3.45, on every database."""
    store, other = open_playbook(), open_playbook()
    search, query = PlaybookSearch(), SearchQuery(query_text="run tests")
    assert search.search(query, store) == []
    ids = [add(other, f"run tests {number}") for number in range(20)]
    assert search.search(query, store) == PlaybookSearch().search(query, other.load())
    update(other, ids[3], "試験")
    remove(other, ids[4])
    other.observe([Observation(run="r", bullet=ids[5], verdict="harmful")])
    for resting in (True, False):
        value = PlaybookSearch().search(query, other.load(), resting=resting)
        assert search.search(query, store, resting=resting) == value
    assert search.search(SearchQuery(query_text="試験", top_k=1), store)[0].bullet.id == ids[3]


def test_an_older_playbook_in_the_place_of_this_one_is_read_anew(store: PlaybookStore) -> None:
    """R3.45: somebody restored a backup of the database while this process had read the newer one."""
    search, query = PlaybookSearch(), SearchQuery(query_text="run tests")
    first = add(store, "run tests 1")
    later = add(store, "run tests 2")
    assert len(search.search(query, store)) == 2
    store.database.write("DELETE FROM playbook_bullets WHERE id = ?", (later,))
    store.database.write("UPDATE playbooks SET revision = 1")
    assert [hit.bullet.id for hit in search.search(query, store)] == [first]


OLD_INDEX = """
CREATE TABLE playbook_indexes(
  id INTEGER PRIMARY KEY, scope TEXT NOT NULL, key TEXT NOT NULL, embedder TEXT NOT NULL,
  revision INTEGER NOT NULL, version INTEGER NOT NULL, dimension INTEGER NOT NULL, last INTEGER NOT NULL,
  texts INTEGER NOT NULL, terms INTEGER NOT NULL, fresh INTEGER NOT NULL, writes INTEGER NOT NULL,
  UNIQUE(scope, key, embedder)) STRICT;
CREATE TABLE playbook_indexed(
  idx INTEGER NOT NULL, number INTEGER NOT NULL, id TEXT NOT NULL, digest TEXT NOT NULL,
  section TEXT NOT NULL, confidence REAL NOT NULL, active INTEGER NOT NULL, length INTEGER NOT NULL,
  fresh INTEGER NOT NULL, said TEXT NOT NULL, filed TEXT NOT NULL, squared INTEGER NOT NULL, vector BLOB,
  PRIMARY KEY(idx, number)) STRICT;
CREATE VIRTUAL TABLE playbook_index_words USING fts5(terms, content='', tokenize='ascii');
INSERT INTO playbook_indexes VALUES(1, 'repository', 'here', 'hashed-words-1/384', 2, 1, 384, 1, 2, 6, 2, 1);
INSERT INTO playbook_indexed VALUES(1, 0, 'cm-00001', '', 'common_mistakes', 0.5, 1, 3, 1, 'run tests 0', '', 0, NULL);
INSERT INTO playbook_index_words(rowid, terms) VALUES(1, '1·run 1·tests 1·0');
"""
"""What an earlier version left in a database: an index of its own, behind the playbook."""


def test_a_database_of_an_earlier_version_is_opened_and_searched(tmp_path: Path) -> None:
    """Its index is not read, and a table that it lacks is made."""
    database = connect(tmp_path / "daiku.db", "")
    store = PlaybookStore(database, "repository", "here")
    for number in range(3):
        add(store, f"run tests {number}")
    database.write("DROP TABLE playbook_vectors")
    database.prepare(OLD_INDEX)
    database.close()
    database = connect(tmp_path / "daiku.db", "")
    opened, query = PlaybookStore(database, "repository", "here"), SearchQuery(query_text="run tests 2")
    for embedder in (None, Counted()):
        found = PlaybookSearch(embedder).search(query, opened)
        assert found[0].bullet.content == "run tests 2"
        assert len(found) == 3
    assert len(opened.vectors(Counted.name)) == 3
    database.close()


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


def test_a_service_is_asked_for_a_vector_once_by_all_processes(open_playbook: OpenPlaybook) -> None:
    """What has its text still has its vector in the next process; what was changed gets another."""
    one = open_playbook()
    ids = [add(one, f"run tests {number}") for number in range(6)]
    query = SearchQuery(query_text="run tests")
    first = PlaybookSearch(Counted()).search(query, one)
    next_one, meanings = open_playbook(), Counted()
    assert PlaybookSearch(meanings).search(query, next_one) == first
    assert meanings.sizes == [1], "only the question"
    update(next_one, ids[2], "run 333 tests")
    last, again = open_playbook(), Counted()
    found = PlaybookSearch(again).search(query, last)
    assert again.sizes == [2], "the question, and what was changed"
    assert found == PlaybookSearch(Counted()).search(query, last.load())


def test_an_embedding_of_an_earlier_text_is_not_used(open_playbook: OpenPlaybook) -> None:
    """R3.45: a process changed the text and ended before it searched."""
    one = open_playbook()
    ids = [add(one, f"run tests {number}") for number in range(6)]
    query = SearchQuery(query_text="333")
    PlaybookSearch(Counted()).search(query, one)
    update(one, ids[2], "run 333 tests")
    found = PlaybookSearch(Counted(), alpha=1.0).search(query, open_playbook())
    assert found == PlaybookSearch(Counted(), alpha=1.0).search(query, one.load())
    assert found[0].bullet.id == ids[2]


def test_a_model_with_vectors_of_another_size_makes_all_of_them_anew(store: PlaybookStore) -> None:
    """Vectors of two sizes are never compared."""
    query = SearchQuery(query_text="run tests")
    for number in range(6):
        add(store, f"run tests {number}")
    search, other = PlaybookSearch(Counted()), Counted(7)
    search.search(query, store)
    value = PlaybookSearch(Counted(7)).search(query, store.load())
    assert PlaybookSearch(other).search(query, store) == value
    assert other.sizes == [1, 6]
    assert PlaybookSearch(Counted(7)).search(query, store) == value
    assert {len(each.packed) for each in store.vectors(Counted.name)} == {14}


def test_two_embedders_have_vectors_of_their_own(store: PlaybookStore) -> None:
    query = SearchQuery(query_text="run tests")
    for number in range(6):
        add(store, f"run tests {number}")
    one, other = PlaybookSearch(Named("test/one")), PlaybookSearch(Named("test/other", 7))
    for search in (one, other, one, other):
        value = PlaybookSearch(Counted(5 if search is one else 7))
        assert search.search(query, store) == value.search(query, store.load())
    assert [len(store.vectors(name)) for name in ("test/one", "test/other")] == [6, 6]


def test_while_the_database_cannot_be_written_the_playbook_is_searched(tmp_path: Path) -> None:
    """A full disk or a file that another program holds keeps nobody from its lessons."""
    database = connect(tmp_path / "daiku.db", "")
    store = PlaybookStore(database, "repository", "here")
    for number in range(6):
        add(store, f"run tests {number}")
    query = SearchQuery(query_text="run tests")
    database.write("PRAGMA query_only = ON")
    for embedder in (None, Counted()):
        found = PlaybookSearch(embedder).search(query, store)
        assert found == PlaybookSearch(embedder).search(query, store.load())
        assert len(found) == 6
    assert store.vectors(Counted.name) == []
    database.close()


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
        return [to_integers([1.0 + said.count(str(at)) for at in range(self._size)]) for said in texts]

    async def aclose(self) -> None:
        """Nothing is open."""


class Named(Counted):
    """The same with a name of its own."""

    def __init__(self, name: str, size: int = 5) -> None:
        super().__init__(size)
        self.name = name
