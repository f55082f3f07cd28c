"""The references of a workspace in the store of memories: found by vectors, or by words where there are none (R1.62)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from daiku.domain.base import long_id
from daiku.domain.errors import LLMError
from daiku.domain.work.documents import Passage, ReferencesFound
from daiku.memory.store import Embedded, Entry, MemoryStore, Scope, hybrid, renew_vectors
from daiku.models.embed import Embedder

logger = logging.getLogger(__name__)

MOST = 5_000
"""Passages of a workspace that are kept."""
BY_WORDS = "words"


class ReferenceIndex:
    """Search in a workspace's references; opens store and embedder for each search. Raises DaikuError."""

    def __init__(
        self, open_store: Callable[[], MemoryStore], open_embedder: Callable[[], Embedder], workspace: str
    ) -> None:
        self._open_store, self._open_embedder = open_store, open_embedder
        self._scope = Scope("", f"references of {workspace}")

    async def search(self, here: Sequence[Passage], questions: Sequence[str], most: int) -> ReferencesFound:
        """Return the passages of `here` nearest to a question, by vectors, or by words if the embedder fails."""
        store, embedder = self._open_store(), self._open_embedder()
        try:
            await self._keep(store, here[:MOST])
            by = await self._embed(store, embedder)
            best: dict[str, Passage] = {}
            for question in questions:
                for each in await self._near(store, embedder if by != BY_WORDS else None, question, most):
                    known = best.get(each.source)
                    if known is None or known.score < each.score:
                        best[each.source] = each
        finally:
            await embedder.aclose()
            await store.aclose()
        found = sorted(best.values(), key=lambda each: (-each.score, each.source))
        return ReferencesFound(passages=tuple(found[:most]), by=by)

    async def _keep(self, store: MemoryStore, here: Sequence[Passage]) -> None:
        """Let the store hold these passages and no others."""
        wanted = {(each.source, each.text) for each in here}
        there = {(entry.origin, entry.text): entry.id for entry in await store.list(self._scope, MOST)}
        for key, entry_id in there.items():
            if key not in wanted:
                await store.forget(self._scope, entry_id)
        for source, content in (key for key in wanted if key not in there):
            await store.add(self._scope, Entry(long_id("ref"), content, origin=source), None)

    async def _embed(self, store: MemoryStore, embedder: Embedder) -> str:
        """Give a vector to every passage that has none of this embedder; how the search is done then."""
        try:
            (probe,) = await embedder.embed(["probe"])
            key = Embedded(embedder.name, probe).key
            await renew_vectors(store, self._scope, embedder, key)
        except LLMError as wrong:
            logger.warning("references are searched by words: %s", wrong.failure.message)
            return BY_WORDS
        return embedder.name

    async def _near(
        self, store: MemoryStore, embedder: Embedder | None, question: str, most: int
    ) -> list[Passage]:
        if embedder is None:
            ranked = await hybrid(store, self._scope, question, None, most)
        else:
            (vector,) = await embedder.embed([question])
            found = await store.nearest(self._scope, Embedded(embedder.name, vector), most)
            ranked = [each for each in found if each.score >= embedder.unrelated]
        entries = await store.read([each.number for each in ranked]) if ranked else {}
        return [
            Passage(source=entry.origin, text=entry.text, score=round(min(each.score, 1.0), 4))
            for each in ranked
            if (entry := entries.get(each.number)) is not None
        ]
