"""Search in a memory of 100,000 short texts, and what it costs to add one, against FTS5 and numpy by themselves."""

from __future__ import annotations

import asyncio
import importlib
import random
import sqlite3
import tempfile
from collections.abc import Callable
from itertools import accumulate, count, cycle
from pathlib import Path
from typing import Any

from daiku.memory.memory import Memory
from daiku.memory.rules.hashed import hash_vector
from daiku.memory.rules.terms import choose_terms, limit_terms, split_terms
from daiku.memory.rules.vectors import pack, squared_length
from daiku.memory.sqlite_store import SqliteMemories
from daiku.memory.store import Embedded, MemoryEntry, Scope, search_hybrid
from tests.bench.measure import Row, alternate

WORDS = 20_000
SCOPE = Scope("u", "w")
ADDED = 100


def retrieval(*, quick: bool) -> list[Row]:
    """CPU of a search by words and vectors, and of an addition."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_retrieval(Path(folder), 10_000 if quick else 100_000, 5 if quick else 11))


def short_texts(seed: int = 7) -> Callable[[], str]:
    """Gives short texts whose words are as frequent as those of a language; another `seed` gives others of the same
    words."""
    chance = random.Random(7)
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 10))) for _ in range(WORDS)
    ]
    weights = list(accumulate(1 / (place + 3) for place in range(WORDS)))
    if seed != 7:
        chance = random.Random(seed)
    return lambda: " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(6, 20)))


async def _retrieval(folder: Path, size: int, rounds: int) -> list[Row]:
    text = short_texts()
    store = SqliteMemories(folder / "memory.db")
    texts = [text() for _ in range(size)]
    vectors = [hash_vector(said) for said in texts]
    _fill(store._db, texts, vectors)
    questions = cycle([text() for _ in range(20)])
    by_numpy = _by_numpy(vectors)

    async def floor() -> None:
        asked = next(questions)
        _pruned(store._db, asked)
        if by_numpy is not None:
            by_numpy(asked)

    async def ours() -> None:
        asked = next(questions)
        await search_hybrid(store, SCOPE, asked, Embedded("h", hash_vector(asked)), 10)

    await ours()  # the vectors are read once
    for _ in range(20):  # and so are the counts of common terms, by both
        await ours()
    found = await alternate(floor, ours, rounds * 2)
    against = "pruned FTS5" + (" + numpy" if by_numpy is not None else "; no numpy here")
    rows = [
        found.row(
            f"hybrid search, {size:,}",
            1.5 if by_numpy is not None else None,
            scale=1e3,
            unit="ms CPU",
            against=against,
        )
    ]
    memory = Memory(store, user="u", workspace="w")
    rows += await _adding(folder, store, memory, text, rounds)
    await memory.aclose()
    return rows


async def _adding(
    folder: Path, store: SqliteMemories, memory: Memory, text: Callable[[], str], rounds: int
) -> list[Row]:
    bare = sqlite3.connect(folder / "bare.db", isolation_level=None)
    bare.executescript(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE VIRTUAL TABLE f USING fts5(t);"
        "CREATE TABLE m (number INTEGER PRIMARY KEY, id TEXT UNIQUE, text TEXT, vector BLOB)"
    )
    numbers = count()

    async def insert() -> None:
        for _ in range(ADDED):
            said, number = text(), next(numbers)
            bare.execute("BEGIN")
            bare.execute("INSERT INTO m VALUES (?, ?, ?, ?)", (number, f"mem_{number}", said, b"v" * 768))
            bare.execute("INSERT INTO f (rowid, t) VALUES (?, ?)", (number, said))
            bare.execute("COMMIT")

    async def add() -> None:
        for said, embedded in zip(texts, made, strict=True):
            store._add(SCOPE, MemoryEntry(f"mem_{next(numbers)}", said, time="t"), embedded)

    async def remember() -> None:
        for _ in range(ADDED):
            await memory.remember(text())

    texts = [text() for _ in range(ADDED)]
    made = [Embedded("h", hash_vector(said)) for said in texts]
    added = await alternate(insert, add, rounds)
    whole = await alternate(insert, remember, rounds)
    bare.close()
    told: dict[str, Any] = {"scale": 1e6 / ADDED, "unit": "µs CPU", "against": "bare insert, FTS5"}
    return [
        added.row("memory: add to the store", 2.0, **told),
        whole.row("memory: remember, vector and thread included", None, **told),
    ]


def _fill(db: Any, texts: list[str], vectors: list[Any]) -> None:
    with db.transaction():
        db.write_all(
            "INSERT INTO memories (id, user, workspace, session, origin, time, text, embedder, squared, vector)"
            " VALUES (?, 'u', 'w', '', '', '', ?, 'h:384', ?, ?)",
            [
                (f"m{at}", said, squared_length(vector), pack(vector))
                for at, (said, vector) in enumerate(zip(texts, vectors, strict=True))
            ],
        )
        db.write_all(
            "INSERT INTO memory_terms (rowid, terms) VALUES (?, ?)",
            [(at, " ".join(split_terms(said))) for at, said in enumerate(texts, 1)],
        )


_COUNTS: dict[str, int] = {}


def _pruned(db: Any, asked: str) -> None:
    """The search of FTS5 alone for the rarest terms, whose counts are known."""
    for term in choose_terms(split_terms(asked)):
        if term not in _COUNTS:
            found = db.first("SELECT doc FROM memory_counts WHERE term = ?", (term,))
            _COUNTS[term] = 0 if found is None else found[0]
    chosen = limit_terms({term: _COUNTS[term] for term in choose_terms(split_terms(asked))})
    match = " OR ".join(f'"{term}"' for term in chosen)
    db.query(
        "SELECT rowid, rank FROM memory_terms WHERE memory_terms MATCH ? ORDER BY rank LIMIT 40", (match,)
    )


def _by_numpy(vectors: list[Any]) -> Callable[[str], None] | None:
    """The search of numpy alone; None where it is not installed."""
    try:
        numpy: Any = importlib.import_module("numpy")
    except ImportError:
        return None
    matrix = numpy.array(vectors, dtype="float32")

    def search(asked: str) -> None:
        numpy.argpartition(-(matrix @ numpy.array(hash_vector(asked), dtype="float32")), 40)

    return search
