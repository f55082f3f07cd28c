"""Opening of the configured memory and of the index of a workspace's references (R1.62)."""

from __future__ import annotations

import getpass
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from daiku.domain.base import long_id
from daiku.domain.errors import LLMError
from daiku.domain.work.documents import Passage, ReferencesFound
from daiku.memory.memory import Memory, open_store
from daiku.memory.store import Embedded, MemoryEntry, MemoryStore, Scope, renew_vectors, search_hybrid
from daiku.models.embed import Embedder, open_embedder, open_embedder_or_placeholder
from daiku.settings.config import Config

logger = logging.getLogger(__name__)

MOST = 5_000
"""Maximum number of passages per workspace."""
BY_WORDS = "words"


class ReferenceIndex:
    """Search in a workspace's references; opens the store and the embedder for each search.

    Raises DaikuError.
    """

    def __init__(
        self, open_store: Callable[[], MemoryStore], open_embedder: Callable[[], Embedder], workspace: str
    ) -> None:
        self._open_store, self._open_embedder = open_store, open_embedder
        self._scope = Scope("", f"references of {workspace}")

    async def search(
        self, passages: Sequence[Passage], questions: Sequence[str], most: int
    ) -> ReferencesFound:
        """Return the passages nearest to a question, by vectors, or by words if the embedder fails."""
        store, embedder = self._open_store(), self._open_embedder()
        try:
            await self._sync(store, passages[:MOST])
            method = await self._embed(store, embedder)
            best: dict[str, Passage] = {}
            for question in questions:
                for each in await self._find_nearest(
                    store, embedder if method != BY_WORDS else None, question, most
                ):
                    previous = best.get(each.source)
                    if previous is None or previous.score < each.score:
                        best[each.source] = each
        finally:
            await embedder.aclose()
            await store.aclose()
        ordered = sorted(best.values(), key=lambda each: (-each.score, each.source))
        return ReferencesFound(passages=tuple(ordered[:most]), by=method)

    async def _sync(self, store: MemoryStore, passages: Sequence[Passage]) -> None:
        """Store these passages, and delete all others."""
        requested = {(each.source, each.text) for each in passages}
        stored = {(entry.origin, entry.text): entry.id for entry in await store.list(self._scope, MOST)}
        for key, entry_id in stored.items():
            if key not in requested:
                await store.forget(self._scope, entry_id)
        for source, content in (key for key in requested if key not in stored):
            await store.add(self._scope, MemoryEntry(long_id("ref"), content, origin=source), None)

    async def _embed(self, store: MemoryStore, embedder: Embedder) -> str:
        """Add missing vectors of this embedder; return the search method."""
        try:
            (probe,) = await embedder.embed(["probe"])
            key = Embedded(embedder.name, probe).key
            await renew_vectors(store, self._scope, embedder, key)
        except LLMError as wrong:
            logger.warning("references are searched by words: %s", wrong.failure.message)
            return BY_WORDS
        return embedder.name

    async def _find_nearest(
        self, store: MemoryStore, embedder: Embedder | None, question: str, most: int
    ) -> list[Passage]:
        if embedder is None:
            ranked = await search_hybrid(store, self._scope, question, None, most)
        else:
            (vector,) = await embedder.embed([question])
            nearest = await store.nearest(self._scope, Embedded(embedder.name, vector), most)
            ranked = [each for each in nearest if each.score >= embedder.unrelated]
        entries = await store.read([each.number for each in ranked]) if ranked else {}
        return [
            Passage(source=entry.origin, text=entry.text, score=round(min(each.score, 1.0), 4))
            for each in ranked
            if (entry := entries.get(each.number)) is not None
        ]


def open_memory(config: Config, workspace: str, home: Path, redact: Callable[[str], str]) -> Memory:
    """Open the memory of this user and workspace as `memory` and `storage` configure it.

    Raises UsageError.
    """
    settings = config.memory
    return Memory(
        config.storage.memory(home),
        embedder=open_embedder_or_placeholder(settings.embedder, config.llm),
        user=settings.user or get_login_name(),
        workspace=workspace,
        top_k=settings.top_k,
        token_budget=settings.token_budget,
        redact=redact,
    )


def open_references(config: Config, workspace: str, home: Path) -> ReferenceIndex:
    """Return the index of a workspace's references, in the memory's database and by its embedder."""
    return ReferenceIndex(
        partial(open_store, config.storage.memory(home)),
        partial(open_embedder, config.memory.embedder, config.llm),
        workspace,
    )


def get_login_name() -> str:
    """Return the name of the logged-in user; empty if it is unknown."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user without a name
        return ""
