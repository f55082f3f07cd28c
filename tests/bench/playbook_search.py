"""Search in playbooks of 1,000 and 10,000 lessons: a process's first, the next one, and an addition that is searchable."""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from heapq import nlargest
from itertools import count, cycle
from pathlib import Path
from typing import Any

from daiku.domain.playbook import Delta, SearchQuery
from daiku.memory.rules.terms import split_terms
from daiku.playbook.search import PlaybookSearch
from daiku.playbook.store import PlaybookStore
from daiku.store.sqlite import connect
from tests.bench.measure import Row, alternate
from tests.bench.retrieval import short_texts

FEW, SIZES = 100, (1_000, 10_000)
ADDED = 10
"""Additions between two searches: what a run teaches is less."""


def searches(*, quick: bool) -> list[Row]:
    """CPU of the first search of a process, of the next one, and of an addition with its words in memory."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_searches(Path(folder), 5 if quick else 11))


async def _searches(folder: Path, rounds: int) -> list[Row]:
    said = short_texts()
    rows = list[Row]()
    stores = {size: _filled(folder / f"{size}.db", said, size) for size in (FEW, *SIZES)}
    for size in SIZES:
        rows.append(await _starting(stores[size], size, rounds))
        rows.append(await _searching(stores[size], size, rounds * 2))
    rows += await _adding(folder, stores, said, rounds * 5)
    return rows


def _filled(path: Path, said: Callable[[], str], size: int) -> PlaybookStore:
    """A playbook with so many lessons."""
    database = connect(path, "")
    store = PlaybookStore(database, "repository", "here")
    store.apply(Delta(id="", type="add", content=said()))
    names = [row[1] for row in database.query("PRAGMA table_info(playbook_bullets)")]
    kept = dict(zip(names, database.first("SELECT * FROM playbook_bullets"), strict=True))
    marks = ", ".join("?" * len(names))
    with database.transaction():
        database.write_all(
            f"INSERT INTO playbook_bullets VALUES({marks})",  # constants
            [
                tuple({**kept, "id": f"x-{at:05}", "added": at, "content": said(), "revision": at}.values())
                for at in range(2, size + 1)
            ],
        )
        database.write("UPDATE playbooks SET revision = ?", (size,))
    return store


class _Plain:
    """BM25 as a textbook has it, over what is between spaces."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._postings, self._lengths = defaultdict[str, dict[int, int]](dict), list[int]()
        for number, text in enumerate(texts):
            words = text.casefold().split()
            self._lengths.append(len(words))
            for word, times in Counter(words).items():
                self._postings[word][number] = times
        self._usual = sum(self._lengths) / len(self._lengths)

    def search(self, question: str) -> list[int]:
        scores = defaultdict[int, float](float)
        for word in set(question.casefold().split()):
            found = self._postings.get(word, {})
            weight = math.log(1 + (len(self._lengths) - len(found) + 0.5) / (len(found) + 0.5))
            for number, times in found.items():
                long = self._lengths[number] / self._usual
                scores[number] += weight * 2.2 * times / (times + 1.2 * (0.25 + 0.75 * long))
        return nlargest(10, scores, key=scores.__getitem__)


_TEXTS = "SELECT content FROM playbook_bullets WHERE playbook = ? ORDER BY added"


def _plain(store: PlaybookStore) -> _Plain:
    return _Plain(row[0] for row in store.database.query(_TEXTS, (1,)))


async def _starting(store: PlaybookStore, size: int, rounds: int) -> Row:
    """The first search of a process, which has read nothing yet."""
    question = short_texts(12)

    async def floor() -> None:
        _plain(store).search(question())

    async def ours() -> None:
        PlaybookSearch().search(SearchQuery(query_text=question()), store)

    found = await alternate(floor, ours, rounds)
    what = f"playbook: first search, {size:,}"
    return found.row(what, FIRST, scale=1e3, unit="ms CPU", against="texts read, plain BM25")


async def _searching(store: PlaybookStore, size: int, rounds: int) -> Row:
    """The next search, ten times: a single one is too short to be measured."""
    plain, search, chance = _plain(store), PlaybookSearch(), short_texts(11)
    questions = cycle([chance() for _ in range(20)])
    search.search(SearchQuery(query_text=next(questions)), store)

    async def floor() -> None:
        for _ in range(10):
            plain.search(next(questions))

    async def ours() -> None:
        for _ in range(10):
            search.search(SearchQuery(query_text=next(questions)), store)

    found = await alternate(floor, ours, rounds)
    what = f"playbook: next search, {size:,}"
    return found.row(what, NEXT, scale=1e3 / 10, unit="ms CPU", against="plain BM25")


async def _adding(
    folder: Path, stores: dict[int, PlaybookStore], said: Callable[[], str], rounds: int
) -> list[Row]:
    """Additions, and the search's look at what changed after each few of them."""
    adding = {size: _Adding(store, folder / f"by-hand-{size}.db", said) for size, store in stores.items()}
    told: dict[str, Any] = {"scale": 1e6 / ADDED, "unit": "µs CPU"}
    rows = list[Row]()
    for size, each in adding.items():
        found = await alternate(each.by_hand, each.ours, rounds)
        rows.append(
            found.row(f"playbook: add, searchable, {size:,}", 2.0, against="bare insert with FTS5", **told)
        )
    few, many = adding[FEW], adding[SIZES[-1]]
    found = await alternate(few.ours, many.ours, rounds)
    rows.append(
        found.row(f"playbook: add, searchable, {SIZES[-1]:,}", 1.2, against=f"the same with {FEW}", **told)
    )
    return rows


class _Adding:
    """Additions to a playbook, and the same rows in tables made by hand."""

    def __init__(self, store: PlaybookStore, bare: Path, said: Callable[[], str]) -> None:
        self._store, self._said, self._numbers = store, said, count(10_000_000)
        self._search = PlaybookSearch()
        self._search._load_lessons(store)
        self._bare = connect(bare, _BARE)
        rows = store.database.query("SELECT added, id, content FROM playbook_bullets")
        with self._bare.transaction():
            self._bare.write_all(_BULLET, rows)
            self._bare.write_all(_WORDS, [(row[0], " ".join(split_terms(row[2]))) for row in rows])

    async def by_hand(self) -> None:
        """A lesson, the log of the change, the words: one transaction each."""
        for _ in range(ADDED):
            text, number = self._said(), next(self._numbers)
            logged = Delta(id=f"r{number}", type="add", content=text).model_dump_json()
            with self._bare.transaction():
                self._bare.write(_BULLET, (number, f"x-{number}", text))
                self._bare.write("INSERT INTO log VALUES(?, ?)", (number, logged))
                self._bare.write(_WORDS, (number, " ".join(split_terms(text))))

    async def ours(self) -> None:
        for _ in range(ADDED):
            self._store.apply(Delta(id="", type="add", content=self._said()))
        self._search._load_lessons(self._store)


FIRST, NEXT = 5.0, 3.0
_BULLET = "INSERT INTO bullets VALUES(?, ?, ?)"
_WORDS = "INSERT INTO words(rowid, terms) VALUES(?, ?)"
_BARE = """
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(terms, content='', tokenize='ascii');
CREATE TABLE IF NOT EXISTS bullets (number INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT);
CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY, data TEXT);
"""
