"""Memories in a SQLite file: words by FTS5, vectors compared in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.memory.rules.nearest import Nearest, Ranked, Row, take_best
from daiku.memory.rules.terms import VERSION, choose_terms, limit_terms, split_terms
from daiku.memory.rules.vectors import pack, squared_length
from daiku.memory.store import WIDER, Embedded, MemoryEntry, Scope, UnembeddedRow
from daiku.store.sqlite import IN_MEMORY, DatabaseFault, classify_fault, explain, open_erasing
from daiku.texts.text import text


@contextmanager
def convert_database_faults(opening: str = "") -> Generator[None]:
    """Convert database faults to failures of the memory; to UsageError if the file `opening` is being opened."""
    try:
        yield
    except DatabaseFault as wrong:
        fault, cause = wrong.fault, wrong
    except OSError as wrong:
        fault, cause = classify_fault(wrong), wrong
    else:
        return
    why, hint = explain(fault)
    if opening:
        message = text("store.unusable", path=opening, why=why)
        raise UsageError(Failure(kind="usage", message=message, hint=hint)) from cause
    raise DaikuError(Failure(kind="internal", message=text("memory.fault", why=why), hint=hint)) from cause


T = TypeVar("T")

SCHEMA = """
CREATE TABLE IF NOT EXISTS memories (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  user TEXT NOT NULL, workspace TEXT NOT NULL,
  session TEXT NOT NULL, origin TEXT NOT NULL, time TEXT NOT NULL, text TEXT NOT NULL,
  embedder TEXT NOT NULL, squared INTEGER NOT NULL, vector BLOB) STRICT;
CREATE INDEX IF NOT EXISTS memories_by_embedder ON memories (user, workspace, embedder, number);
CREATE VIRTUAL TABLE IF NOT EXISTS memory_terms USING fts5(terms, content='', tokenize='ascii');
CREATE VIRTUAL TABLE IF NOT EXISTS memory_counts USING fts5vocab(memory_terms, 'row');
CREATE TABLE IF NOT EXISTS memory_state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
DROP TABLE IF EXISTS memory_floats;
"""
COMMON, MOST_COMMON = 200, 20_000
"""Number of texts from which a term is common, and number of cached common terms."""
MOST_INDEXES = 8
"""Number of scopes whose vectors are cached."""


class _Index:
    """The vectors of one scope and embedder, up to the row number `last`."""

    def __init__(self, dimension: int) -> None:
        self.nearest = Nearest(dimension)
        self.last = 0


class SqliteMemories:
    """A MemoryStore in a SQLite file (None: in memory).

    Statements run in a thread, so a lock blocks no loop.
    """

    def __init__(self, path: Path | None) -> None:
        with convert_database_faults(str(path or IN_MEMORY)):
            self._db = open_erasing(path, SCHEMA)
            self._update_terms()
        self._thread = ThreadPoolExecutor(1, "daiku memory")
        self._indexes: dict[tuple[Scope, str], _Index] = {}
        self._removed = self._get_removals()
        self._common: dict[str, int] = {}
        self._closed = False

    async def add(self, scope: Scope, entry: MemoryEntry, embedded: Embedded | None) -> str:
        return await self._run_in_thread(lambda: self._add(scope, entry, embedded))

    async def nearest(self, scope: Scope, question: Embedded, most: int) -> list[Ranked]:
        if not any(question.vector):
            return []
        return await self._run_in_thread(
            lambda: self._get_index(scope, question).nearest.search(question.vector, most)
        )

    async def by_words(self, scope: Scope, question: str, most: int) -> list[Ranked]:
        return await self._run_in_thread(lambda: self._by_words(scope, question, most))

    async def read(self, numbers: Sequence[int]) -> dict[int, MemoryEntry]:
        return await self._run_in_thread(lambda: self._read(numbers))

    async def list(self, scope: Scope, most: int) -> list[MemoryEntry]:
        sql = f"SELECT {_ENTRY} FROM memories WHERE user = ? AND workspace = ? ORDER BY number DESC LIMIT ?"  # noqa: S608  # constants
        rows = await self._run_in_thread(lambda: self._db.query(sql, (*scope, most)))
        return [MemoryEntry(*row) for row in rows]

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        return await self._run_in_thread(lambda: self._remove(scope, "AND id = ?", (memory_id,)) > 0)

    async def forget_all(self, scope: Scope) -> int:
        return await self._run_in_thread(lambda: self._remove(scope, "", ()))

    async def list_unembedded(self, scope: Scope, embedder: str, most: int) -> list[UnembeddedRow]:
        sql = (
            "SELECT number, text FROM memories WHERE user = ? AND workspace = ? AND (embedder < ? OR embedder > ?)"
            " ORDER BY number LIMIT ?"
        )
        rows = await self._run_in_thread(lambda: self._db.query(sql, (*scope, embedder, embedder, most)))
        return [UnembeddedRow(*row) for row in rows]

    async def set_vectors(self, vectors: Sequence[tuple[int, Embedded]]) -> None:
        await self._run_in_thread(lambda: self._set_vectors(vectors))

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            await self._run_in_thread(self._db.close)
            self._thread.shutdown(wait=False)

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        def convert_faults() -> T:
            with convert_database_faults():
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, convert_faults)

    # -- rows -----------------------------------------------------------------------------

    def _add(self, scope: Scope, entry: MemoryEntry, embedded: Embedded | None) -> str:
        vector_columns = ("", 0, None) if embedded is None else _to_columns(embedded)
        with self._db.transaction():
            inserted = self._db.query(
                "INSERT INTO memories (id, user, workspace, session, origin, time, text, embedder, squared, vector)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING RETURNING number",
                (entry.id, *scope, entry.session, entry.origin, entry.time, entry.text, *vector_columns),
            )
            if not inserted:
                return entry.id
            self._db.write(
                "INSERT INTO memory_terms (rowid, terms) VALUES (?, ?)",
                (inserted[0][0], " ".join(split_terms(entry.text))),
            )
        return entry.id

    def _read(self, numbers: Sequence[int]) -> dict[int, MemoryEntry]:
        marks = ", ".join("?" * len(numbers))
        rows = self._db.query(
            f"SELECT number, {_ENTRY} FROM memories WHERE number IN ({marks})",  # noqa: S608  # constants
            tuple(numbers),
        )
        return {number: MemoryEntry(*rest) for number, *rest in rows}

    def _remove(self, scope: Scope, where: str, values: tuple[str, ...]) -> int:
        with self._db.transaction():
            rows = self._db.query(
                f"SELECT number, text FROM memories WHERE user = ? AND workspace = ? {where}",  # noqa: S608  # constants
                (*scope, *values),
            )
            numbers = [(number,) for number, _ in rows]
            # A contentless FTS table needs the terms to delete.
            self._db.write_all(
                "INSERT INTO memory_terms (memory_terms, rowid, terms) VALUES ('delete', ?, ?)",
                [(number, " ".join(split_terms(text))) for number, text in rows],
            )
            self._db.write_all("DELETE FROM memories WHERE number = ?", numbers)
            self._count_removal()
        if rows:  # remove the deleted text from FTS segments and the write-ahead log
            self._db.write("INSERT INTO memory_terms (memory_terms) VALUES ('optimize')")
            self._db.query("PRAGMA wal_checkpoint(TRUNCATE)")
        return len(rows)

    def _set_vectors(self, vectors: Sequence[tuple[int, Embedded]]) -> None:
        with self._db.transaction():
            self._db.write_all(
                "UPDATE memories SET embedder = ?, squared = ?, vector = ? WHERE number = ?",
                [(*_to_columns(embedded), number) for number, embedded in vectors],
            )
            self._count_removal()

    def _count_removal(self) -> None:
        """Notify other processes that rows were deleted or have new vectors."""
        self._db.write(
            "INSERT INTO memory_state VALUES ('removed', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1"
        )

    def _get_removals(self) -> int:
        row = self._db.first("SELECT value FROM memory_state WHERE name = 'removed'")
        return 0 if row is None else row[0]

    # -- vectors --------------------------------------------------------------------------

    def _get_index(self, scope: Scope, question: Embedded) -> _Index:
        """Return the vectors of a scope, with those that other processes have added."""
        if (removed := self._get_removals()) != self._removed:
            self._indexes.clear()
            self._removed = removed
        key = (scope, question.key)
        index = self._indexes.pop(key, None) or _Index(len(question.vector))
        rows = self._db.query(
            "SELECT number, vector, squared FROM memories"
            " WHERE user = ? AND workspace = ? AND embedder = ? AND number > ? AND squared > 0 ORDER BY number",
            (*scope, question.key, index.last),
        )
        if rows:
            index.nearest.add(Row(*row) for row in rows)
            index.last = rows[-1][0]
        self._indexes[key] = index
        while len(self._indexes) > MOST_INDEXES:
            del self._indexes[next(iter(self._indexes))]
        return index

    # -- words ----------------------------------------------------------------------------

    def _by_words(self, scope: Scope, question: str, most: int) -> list[Ranked]:
        counts = {term: self._count(term) for term in choose_terms(split_terms(question))}
        chosen = limit_terms(counts)
        limit = WIDER * most
        while chosen:
            rows = self._db.query(
                "SELECT rowid, rank FROM memory_terms WHERE memory_terms MATCH ? ORDER BY rank LIMIT ?",
                (" OR ".join(f'"{term}"' for term in chosen), limit),
            )
            own = self._filter_by_scope(scope, [number for number, _ in rows])
            ranked = [Ranked(number, -rank) for number, rank in rows if number in own]
            if len(ranked) >= most or len(rows) < limit:
                return take_best(ranked, most)
            limit *= 8  # most rows belong to other scopes
        return []

    def _count(self, term: str) -> int:
        """Return the number of texts with a term. Common terms are cached, since counting is slow."""
        if (cached := self._common.get(term)) is not None:
            return cached
        row = self._db.first("SELECT doc FROM memory_counts WHERE term = ?", (term,))
        count = 0 if row is None else row[0]
        if count >= COMMON and len(self._common) < MOST_COMMON:
            self._common[term] = count
        return count

    def _filter_by_scope(self, scope: Scope, numbers: Sequence[int]) -> set[int]:
        # `+` prevents a scan of the scope's index.
        marks = ", ".join("?" * len(numbers))
        rows = self._db.query(
            f"SELECT number FROM memories WHERE number IN ({marks}) AND +user = ? AND +workspace = ?",  # noqa: S608  # constants
            (*numbers, *scope),
        )
        return {row[0] for row in rows}

    def _update_terms(self) -> None:
        """Recompute the terms if another version of `terms` computed them."""
        version = self._db.first("SELECT value FROM memory_state WHERE name = 'terms'")
        if version is not None and version[0] == VERSION:
            return
        with self._db.transaction():
            if version is not None:
                self._db.write("INSERT INTO memory_terms (memory_terms) VALUES ('delete-all')")
                rows = self._db.query("SELECT number, text FROM memories")
                self._db.write_all(
                    "INSERT INTO memory_terms (rowid, terms) VALUES (?, ?)",
                    [(number, " ".join(split_terms(text))) for number, text in rows],
                )
            self._db.write("INSERT OR REPLACE INTO memory_state VALUES ('terms', ?)", (VERSION,))


_ENTRY = "id, text, session, origin, time"


def _to_columns(embedded: Embedded) -> tuple[str, int, bytes]:
    return embedded.key, squared_length(embedded.vector), pack(embedded.vector)
