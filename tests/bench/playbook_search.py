"""Search in a playbook of 100,000 bullets, a new process's first search, and what an addition costs with its index."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from itertools import count, cycle
from pathlib import Path
from typing import Any

from daiku.core.retrieval.fuse import asked_terms, terms_worth
from daiku.core.retrieval.hashed import DIMENSION, hashed_vector
from daiku.core.retrieval.nearest import Nearest
from daiku.core.retrieval.nearest import Row as Packed
from daiku.core.retrieval.terms import terms
from daiku.core.retrieval.vectors import pack, squared_length
from daiku.domain.playbook import Delta, SearchQuery
from daiku.llm.embedder import HashedWords
from daiku.playbook.index.source import Embedded
from daiku.playbook.index.stored import StoredSource
from daiku.playbook.search import PlaybookSearch
from daiku.playbook.store import PlaybookStore
from daiku.store.database import Database
from daiku.store.sqlite import connect
from tests.bench.measure import Row, alternate
from tests.bench.retrieval import short_texts

FEW, SOME = 100, 10_000
ADDED = 10
"""Additions between two searches: what a run teaches is less."""


def searches(*, quick: bool) -> list[Row]:
    """CPU of a search, of the first one of a process, and of an addition with its place in the index."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_searches(Path(folder), 10_000 if quick else 100_000, 5 if quick else 11))


async def _searches(folder: Path, size: int, rounds: int) -> list[Row]:
    said = short_texts()
    many, texts = _filled(folder / "many.db", said, size)
    rows = [await _searching(folder, many, texts, rounds)]
    some = many if size == SOME else _filled(folder / "some.db", said, SOME)[0]
    few, _ = _filled(folder / "few.db", said, FEW)
    rows.append(await _starting(some, rounds))
    rows += await _adding(folder, few, many, said, rounds)
    return rows


def _filled(path: Path, said: Callable[[], str], size: int) -> tuple[PlaybookStore, list[str]]:
    """A playbook with so many bullets, and its index."""
    database = connect(path, "")
    store = PlaybookStore(database, "repository", "here")
    texts = [said() for _ in range(size)]
    store.apply(Delta(id="", type="add", content=texts[0]))
    names = [row[1] for row in database.query("PRAGMA table_info(playbook_bullets)")]
    kept = dict(zip(names, database.first("SELECT * FROM playbook_bullets"), strict=True))
    marks = ", ".join("?" * len(names))
    with database.transaction():
        database.write_all(
            f"INSERT INTO playbook_bullets VALUES({marks})",  # constants
            [
                tuple({**kept, "id": f"x-{at:05}", "added": at, "content": text, "revision": at}.values())
                for at, text in enumerate(texts[1:], 2)
            ],
        )
        database.write("UPDATE playbooks SET revision = ?", (size,))
    PlaybookSearch().search(SearchQuery(query_text=texts[0]), store)
    return store, texts


async def _searching(folder: Path, store: PlaybookStore, texts: list[str], rounds: int) -> Row:
    """Against the rarest words in FTS5 and all vectors, one after the other."""
    bare = connect(folder / "bare.db", _BARE)
    bare.write_all(_WORDS, [(at, " ".join(terms(t))) for at, t in enumerate(texts)])
    nearest = Nearest(DIMENSION)
    vectors = [hashed_vector(text) for text in texts]
    nearest.add(Packed(at, pack(vector), squared_length(vector)) for at, vector in enumerate(vectors))
    questions, counts = cycle([short_texts(11)() for _ in range(20)]), dict[str, int]()
    search = PlaybookSearch()

    async def floor() -> None:
        asked = next(questions)
        _pruned(bare, asked, counts)
        nearest.search(hashed_vector(asked), 40)

    async def ours() -> None:
        search.search(SearchQuery(query_text=next(questions)), store)

    for _ in range(20):  # vectors, and the counts of common terms, are read once, by both
        await ours()
        await floor()
    found = await alternate(floor, ours, rounds * 2)
    what = f"playbook search, {len(texts):,}"
    return found.row(what, 1.5, scale=1e3, unit="ms CPU", against="pruned FTS5 + vector scan")


async def _starting(store: PlaybookStore, rounds: int) -> Row:
    """The first search of a process, which has read nothing yet; 15 ms are the goal, so they are the floor."""
    chance = short_texts(12)

    async def goal() -> None:
        """15 ms, whatever the machine does."""

    async def ours() -> None:
        PlaybookSearch().search(SearchQuery(query_text=chance()), store)

    found = await alternate(goal, ours, rounds)
    taken = sorted(found.ours)[len(found.ours) // 2]
    return Row(f"playbook: first search, {SOME:,}", GOAL_MS, taken * 1e3, 1.0, "ms CPU", against="its goal")


async def _adding(
    folder: Path, few: PlaybookStore, many: PlaybookStore, said: Callable[[], str], rounds: int
) -> list[Row]:
    """Additions and the search's look at its index after each few of them."""
    to_few, to_many = (
        _Adding(store, folder / f"by-hand-{at}.db", said) for at, store in enumerate((few, many))
    )
    told: dict[str, Any] = {"scale": 1e6 / ADDED, "unit": "µs CPU"}
    rows = list[Row]()
    for adding, size in ((to_few, f"{FEW}"), (to_many, "many")):
        found = await alternate(adding.by_hand, adding.ours, rounds * 5)
        against = "bare insert with FTS5 and vector"
        rows.append(found.row(f"playbook: add with index, {size}", 2.0, against=against, **told))
    found = await alternate(to_few.ours, to_many.ours, rounds * 5)
    rows.append(found.row("playbook: add with index, many", 1.2, against=f"the same with {FEW}", **told))
    return rows


class _Adding:
    """Additions to a playbook, and the same rows in tables made by hand."""

    def __init__(self, store: PlaybookStore, bare: Path, said: Callable[[], str]) -> None:
        self._store, self._said = store, said
        self._source, self._numbers = StoredSource(store, HashedWords().name, None), count(10_000_000)
        self._index()
        self._bare = connect(bare, _BARE)
        rows = store.database.query("SELECT added, id, content FROM playbook_bullets")
        with self._bare.transaction():
            self._bare.write_all(_BULLET, [(*row, b"v" * 768) for row in rows])
            self._bare.write_all(_WORDS, [(row[0], " ".join(terms(row[2]))) for row in rows])

    async def by_hand(self) -> None:
        """A bullet with its vector, the log of the change, the words: one transaction each."""
        for _ in range(ADDED):
            text, number = self._said(), next(self._numbers)
            logged = Delta(id=f"r{number}", type="add", content=text).model_dump_json()
            packed = pack(hashed_vector(text))
            with self._bare.transaction():
                self._bare.write(_BULLET, (number, f"x-{number}", text, packed))
                self._bare.write("INSERT INTO log VALUES(?, ?)", (number, logged))
                self._bare.write(_WORDS, (number, " ".join(terms(text))))

    def _index(self) -> None:
        """Bring the index up to date, as each search does first."""
        texts = self._source.lacking()
        self._source.take(Embedded(hashed_vector(""), [hashed_vector(text) for text in texts]))

    async def ours(self) -> None:
        for _ in range(ADDED):
            self._store.apply(Delta(id="", type="add", content=self._said()))
        self._index()


GOAL_MS = 15.0
_BULLET = "INSERT INTO bullets VALUES(?, ?, ?, ?)"
_WORDS = "INSERT INTO words(rowid, terms) VALUES(?, ?)"
_BARE = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(terms, content='', tokenize='ascii');
CREATE VIRTUAL TABLE IF NOT EXISTS counts USING fts5vocab(words, 'row');
CREATE TABLE IF NOT EXISTS bullets (number INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT, vector BLOB);
CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY, data TEXT);
"""


def _pruned(bare: Database, asked: str, counts: dict[str, int]) -> None:
    """The search of FTS5 alone for the rarest terms, whose counts are known."""
    wanted = asked_terms(terms(asked))
    for term in wanted:
        if term not in counts:
            found = bare.first("SELECT doc FROM counts WHERE term = ?", (term,))
            counts[term] = 0 if found is None else found[0]
    match = " OR ".join(f'"{term}"' for term in terms_worth({term: counts[term] for term in wanted}))
    bare.query("SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT 40", (match,))
