"""Interface of memory stores, and hybrid search in them by words and vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from daiku.memory.rules.nearest import Ranked
from daiku.memory.rules.terms import fuse_scores
from daiku.memory.rules.vectors import Vector

if TYPE_CHECKING:
    from daiku.models.embed import Embedder


class Scope(NamedTuple):
    """Owner and workspace of memories. Other scopes are never visible."""

    user: str = ""
    workspace: str = ""


class Embedded(NamedTuple):
    """A vector, and the name of its embedder."""

    embedder: str
    vector: Vector

    @property
    def key(self) -> str:
        """Embedder and dimension; only vectors with the same key are comparable."""
        return f"{self.embedder}:{len(self.vector)}"


class MemoryEntry(NamedTuple):
    """A memory: its id, its text, its session and origin, and the time it was stored."""

    id: str
    text: str
    session: str = ""
    origin: str = ""
    time: str = ""


class UnembeddedRow(NamedTuple):
    """A row without a vector of the current embedder."""

    number: int
    text: str


class MemoryStore(Protocol):
    """Memories in a database, ordered by row number. Methods raise DaikuError."""

    async def add(self, scope: Scope, entry: MemoryEntry, embedded: Embedded | None) -> str:
        """Store an entry unless its id exists; return the id."""
        ...

    async def nearest(self, scope: Scope, question: Embedded, most: int) -> list[Ranked]:
        """Return the rows nearest to the question by exact cosine, of the same embedder and dimension."""
        ...

    async def by_words(self, scope: Scope, question: str, most: int) -> list[Ranked]:
        """Return the rows that fit the words of the question, by BM25."""
        ...

    async def read(self, numbers: Sequence[int]) -> dict[int, MemoryEntry]:
        """Return the entries of these rows by number."""
        ...

    async def list(self, scope: Scope, most: int) -> list[MemoryEntry]:
        """Return the newest entries, newest first."""
        ...

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        """Delete an entry; return True if it existed."""
        ...

    async def forget_all(self, scope: Scope) -> int:
        """Delete all entries of a scope; return their number."""
        ...

    async def list_unembedded(self, scope: Scope, embedder: str, most: int) -> list[UnembeddedRow]:
        """Return rows without a vector of this embedder, oldest first."""
        ...

    async def set_vectors(self, vectors: Sequence[tuple[int, Embedded]]) -> None:
        """Set the vectors of rows."""
        ...

    async def aclose(self) -> None:
        """Close the database."""
        ...


WIDER = 4
"""Candidates of each list, as a multiple of the requested results."""


async def search_hybrid(
    store: MemoryStore,
    scope: Scope,
    question: str,
    embedded: Embedded | None,
    most: int,
    *,
    alpha: float = 0.5,
) -> list[Ranked]:
    """Return the best rows by words and, weighted `alpha`, vectors; by words alone without a vector."""
    wide = max(WIDER * most, 40)
    if embedded is None:
        return fuse_scores(await store.by_words(scope, question, wide), [], 0.0, most)
    words, vectors = await asyncio.gather(
        store.by_words(scope, question, wide), store.nearest(scope, embedded, wide)
    )
    return fuse_scores(words, vectors, alpha, most)


async def renew_vectors(
    store: MemoryStore, scope: Scope, embedder: Embedder, key: str, batch_size: int = 64
) -> None:
    """Compute vectors of `embedder` for all rows without one, until their `key` changes.

    Raises DaikuError.
    """
    while rows := await store.list_unembedded(scope, key, batch_size):
        vectors = await embedder.embed([row.text for row in rows])
        new_vectors = [Embedded(embedder.name, vector) for vector in vectors]
        await store.set_vectors([(row.number, each) for row, each in zip(rows, new_vectors, strict=True)])
        if any(each.key != key for each in new_vectors):
            return  # the dimension changed; the next search starts again
