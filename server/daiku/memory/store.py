"""What a store of memories does, whichever database is behind it; and search in it by words and vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from daiku.memory.rules.fuse import fused
from daiku.memory.rules.nearest import Ranked
from daiku.memory.rules.vectors import Vector

if TYPE_CHECKING:
    from daiku.models.embed import Embedder


class Scope(NamedTuple):
    """Whose memories, and of which workspace: nobody sees those of another."""

    user: str = ""
    workspace: str = ""


class Embedded(NamedTuple):
    """A vector, and the name of the embedder that made it."""

    embedder: str
    vector: Vector

    @property
    def key(self) -> str:
        """What vectors must have in common to be compared: the embedder and the dimension."""
        return f"{self.embedder}:{len(self.vector)}"


class Entry(NamedTuple):
    """A memory: its id, its text, the session and the origin that it came from, when it was kept."""

    id: str
    text: str
    session: str = ""
    origin: str = ""
    time: str = ""


class Waiting(NamedTuple):
    """A row that has no vector of the present embedder yet."""

    number: int
    text: str


class MemoryStore(Protocol):
    """Memories in a database, in the order of their row numbers. Methods raise DaikuError."""

    async def add(self, scope: Scope, entry: Entry, embedded: Embedded | None) -> str:
        """Keep an entry under its id, unless there is one with this id already; the id."""
        ...

    async def nearest(self, scope: Scope, question: Embedded, most: int) -> list[Ranked]:
        """The rows whose vectors are nearest to the question's, of its embedder and dimension only: exactly, by cosine."""
        ...

    async def by_words(self, scope: Scope, question: str, most: int) -> list[Ranked]:
        """The rows that fit the words of the question, by BM25."""
        ...

    async def read(self, numbers: Sequence[int]) -> dict[int, Entry]:
        """The entries of these rows, by number."""
        ...

    async def list(self, scope: Scope, most: int) -> list[Entry]:
        """The newest entries, the last first."""
        ...

    async def forget(self, scope: Scope, memory_id: str) -> bool:
        """Remove an entry; whether there was one."""
        ...

    async def forget_all(self, scope: Scope) -> int:
        """Remove all entries of a scope; how many there were."""
        ...

    async def waiting(self, scope: Scope, embedder: str, most: int) -> list[Waiting]:
        """Rows of the scope without a vector of this embedder, the oldest first."""
        ...

    async def embed(self, made: Sequence[tuple[int, Embedded]]) -> None:
        """Give rows the vectors that were made for them."""
        ...

    async def aclose(self) -> None:
        """Let go of the database."""
        ...


WIDER = 4
"""Of each list so many times more than what is asked for: what is good on both is not the best on either."""


async def hybrid(
    store: MemoryStore,
    scope: Scope,
    question: str,
    embedded: Embedded | None,
    most: int,
    *,
    alpha: float = 0.5,
) -> list[Ranked]:
    """Return the rows that fit best by words and, weighted `alpha`, vectors; by words without a vector."""
    wide = max(WIDER * most, 40)
    if embedded is None:
        return fused(await store.by_words(scope, question, wide), [], 0.0, most)
    words, vectors = await asyncio.gather(
        store.by_words(scope, question, wide), store.nearest(scope, embedded, wide)
    )
    return fused(words, vectors, alpha, most)


async def renew_vectors(
    store: MemoryStore, scope: Scope, embedder: Embedder, key: str, at_once: int = 64
) -> None:
    """Give vectors of `embedder` to all rows without one, until their `key` changes. Raises DaikuError."""
    while rows := await store.waiting(scope, key, at_once):
        vectors = await embedder.embed([row.text for row in rows])
        made = [Embedded(embedder.name, vector) for vector in vectors]
        await store.embed([(row.number, each) for row, each in zip(rows, made, strict=True)])
        if any(each.key != key for each in made):
            return  # its dimension has changed under us: the next search begins anew
