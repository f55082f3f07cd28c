"""Memory of the public API: entries across sessions, per user and workspace, found by similarity."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from daiku.domain.errors import DaikuError, Failure, LLMError, UsageError
from daiku.guard.rules.redact import Redactor
from daiku.memory.postgres_store import PostgresMemories
from daiku.memory.rules.nearest import Ranked
from daiku.memory.sqlite_store import SqliteMemories
from daiku.memory.store import Embedded, MemoryEntry, MemoryStore, Scope, renew_vectors, search_hybrid
from daiku.models.embed import Embedder, HashedWords, open_embedder
from daiku.models.tokens import estimate
from daiku.run.rules.outside import Recollection
from daiku.settings import from_mapping
from daiku.store.opening import SERVER
from daiku.texts.rules.visible import strip_invisible
from daiku.texts.text import text


def open_store(place: str | Path | None) -> MemoryStore:
    """Return the store at a path or a URL (`postgresql://…`, `sqlite:///…`); None: in memory. Raises UsageError."""
    if place is None:
        return SqliteMemories(None)
    scheme, is_url, rest = str(place).partition("://")
    if isinstance(place, Path) or not is_url:
        return SqliteMemories(Path(place))
    if scheme in SERVER:
        return PostgresMemories(str(place))
    if scheme == "sqlite" and len(rest) > 1 and rest.startswith("/"):
        return SqliteMemories(Path(rest[1:]))
    raise UsageError(
        Failure(
            kind="usage", message=text("memory.no_database", scheme=scheme), hint=text("memory.databases")
        )
    )


WINDOW = 6
"""Number of messages in a session's window."""
MOST_SESSIONS = 256
SHORT = 40
"""Length in characters below which a question is searched together with earlier ones: “and the other one?”.
"""
BEFORE = 2


class SessionWindows:
    """Last messages of the most recent sessions (R1.16), to understand short questions. Not stored."""

    def __init__(self) -> None:
        self._messages: dict[str, deque[str]] = {}

    def add(self, session: str, message: str) -> None:
        """Append a message to its session's window."""
        window = self._messages.pop(session, None) or deque[str](maxlen=WINDOW)
        window.append(message)
        self._messages[session] = window  # most recently used
        while len(self._messages) > MOST_SESSIONS:
            del self._messages[next(iter(self._messages))]

    def messages_of(self, session: str) -> tuple[str, ...]:
        """Return the messages in a session's window, oldest first."""
        return tuple(self._messages.get(session, ()))

    def add_context(self, session: str, question: str) -> str:
        """Return the question, with the previous messages if it is short."""
        before = self.messages_of(session)[-BEFORE:] if session and len(question) < SHORT else ()
        return "\n".join([*before, question])


logger = logging.getLogger(__name__)

LONGEST = 16_000
"""Maximum length of a memory in characters."""
LONGEST_QUESTION = 4_000
ALPHA = 0.5
"""Weight of the vectors in a hybrid search."""
RENEWED_ROWS = 64
"""Rows per batch when vectors are recomputed."""
RENEW_SECONDS = 0.5
"""Time in seconds that a search waits for recomputed vectors; the rest continues in the background."""


class Memory:
    """Entries that a user wants to keep across sessions (R1.2, R1.10, R1.93).

    `store`: None is in memory only, else a path (SQLite) or a database URL. `embedder`: None compares texts
    by their words, without a download; a name such as "openai/text-embedding-3-small" selects a provider's
    model, which receives the texts. `user` and `workspace`: the owner; entries of others are never found.
    `top_k` and `token_budget` limit the results of `recall`. Secrets are removed before an entry is stored.
    Raises UsageError; methods raise DaikuError if the database fails.
    """

    def __init__(
        self,
        store: str | Path | MemoryStore | None = None,
        *,
        embedder: str | Embedder | None = None,
        user: str = "",
        workspace: str = "",
        top_k: int = 5,
        token_budget: int = 1000,
        redact: Callable[[str], str] | None = None,
    ) -> None:
        if top_k < 1:
            raise ValueError(f"top_k is at least 1, not {top_k}")
        if token_budget < 0:
            raise ValueError(f"token_budget is at least 0, not {token_budget}")
        self.embedder = _to_embedder(embedder)
        self._store = open_store(store) if store is None or isinstance(store, str | Path) else store
        self._scope = Scope(user, workspace)
        self._top_k, self._budget = top_k, token_budget
        self._redact = redact or Redactor(())
        self._windows = SessionWindows()
        self._renewal: asyncio.Task[None] | None = None

    async def remember(self, text: str, *, session: str = "", origin: str = "") -> str:
        """Store `text` without secrets; return its id, empty if nothing is left.

        Raises UsageError if it is too long.
        """
        redacted = self._redact_text(text)
        if not redacted:
            return ""
        if len(redacted) > LONGEST:
            raise _refuse_long(len(redacted))
        entry = MemoryEntry(_compute_id(self._scope, redacted), redacted, session, origin, _format_now())
        try:
            embedded = await self._embed(redacted)
        except LLMError as wrong:  # stored anyway; the vector follows when the service answers
            logger.warning("a memory has no vector yet: %s", wrong.failure.message)
            embedded = None
        return await self._store.add(self._scope, entry, embedded)

    async def recall(self, question: str, *, session: str = "") -> tuple[Recollection, ...]:
        """Return what fits `question`, best first, within the limits.

        `session`: context of short questions.
        """
        query = self._windows.add_context(session, question)[-LONGEST_QUESTION:]
        if session:
            self._windows.add(session, question[:LONGEST_QUESTION])
        if not query.strip() or not self._budget:
            return ()
        try:
            embedded = await self._embed(query)
        except LLMError as wrong:
            logger.warning("memories are searched by words only: %s", wrong.failure.message)
            return await self._limit_to_budget(
                await search_hybrid(self._store, self._scope, query, None, self._top_k, alpha=ALPHA)
            )
        await self._renew(embedded.key)
        ranked = await self._store.nearest(self._scope, embedded, self._top_k)
        return await self._limit_to_budget([each for each in ranked if each.score >= self.embedder.unrelated])

    async def search(self, question: str, most: int = 10) -> tuple[Recollection, ...]:
        """Return the best results by words and vectors, however low their scores."""
        query = question[:LONGEST_QUESTION]
        if not query.strip():
            return ()
        try:
            embedded = await self._embed(query)
        except LLMError:
            embedded = None
        else:
            await self._renew(embedded.key)
        return await self._read(
            await search_hybrid(self._store, self._scope, query, embedded, most, alpha=ALPHA)
        )

    async def forget(self, memory_id: str) -> bool:
        """Delete an entry, also from the index and the database's log. Return True if it existed."""
        return await self._store.forget(self._scope, memory_id)

    async def forget_all(self) -> int:
        """Delete all entries of this user in this workspace; return their number."""
        return await self._store.forget_all(self._scope)

    async def list(self, most: int = 100) -> tuple[MemoryEntry, ...]:
        """Return the entries, newest first."""
        return tuple(await self._store.list(self._scope, most))

    def recent(self, session: str) -> tuple[str, ...]:
        """Return the last questions of a session, oldest first (R1.16)."""
        return self._windows.messages_of(session)

    async def aclose(self) -> None:
        """Close the database and the embedder's connection."""
        if self._renewal is not None and not self._renewal.done():
            self._renewal.cancel()
            await asyncio.wait({self._renewal})
        await self.embedder.aclose()
        await self._store.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _redact_text(self, raw: str) -> str:
        """Remove secrets, invisible characters, and lone surrogates."""
        plain = raw.encode("utf-8", "replace").decode("utf-8")
        return self._redact(strip_invisible(plain)).strip()

    async def _embed(self, content: str) -> Embedded:
        (vector,) = await self.embedder.embed([content])
        return Embedded(self.embedder.name, vector)

    async def _limit_to_budget(self, ranked: Sequence[Ranked]) -> tuple[Recollection, ...]:
        recollections: list[Recollection] = []
        room = self._budget
        for each in await self._read(ranked):
            room -= estimate(each.text)
            if room < 0:
                break
            recollections.append(each)
        return tuple(recollections)

    async def _read(self, ranked: Sequence[Ranked]) -> tuple[Recollection, ...]:
        entries = await self._store.read([each.number for each in ranked]) if ranked else {}
        return tuple(
            Recollection(entry.id, entry.text, round(each.score, 4))
            for each in ranked
            if (entry := entries.get(each.number)) is not None
        )

    async def _renew(self, key: str) -> None:
        """Recompute vectors of another embedder, the rest in the background.

        Until then words find the rows.
        """
        task = self._renewal
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            if not await self._store.list_unembedded(self._scope, key, 1):
                return
            self._renewal = task = asyncio.create_task(self._renew_all(key))
        await asyncio.wait({task}, timeout=RENEW_SECONDS)

    async def _renew_all(self, key: str) -> None:
        try:
            await renew_vectors(self._store, self._scope, self.embedder, key, RENEWED_ROWS)
        except DaikuError as wrong:
            logger.warning("memories have no new vectors yet: %s", wrong.failure.message)


def _to_embedder(embedder: str | Embedder | None) -> Embedder:
    """Return the embedder. A named one is configured by its provider's environment variables."""
    if embedder is None or isinstance(embedder, str):
        return open_embedder(embedder, from_mapping({}, os.environ).llm) if embedder else HashedWords()
    return embedder


def _compute_id(scope: Scope, content: str) -> str:
    """Return the id of a text in a scope. The same text has the same id."""
    key = "\0".join((*scope, content)).encode()
    return f"mem_{hashlib.blake2b(key, digest_size=8).hexdigest()}"


def _refuse_long(length: int) -> UsageError:
    message = text("memory.too_long", length=f"{length:,}", most=f"{LONGEST:,}")
    return UsageError(Failure(kind="usage", message=message, hint=text("memory.shorten")))


def _format_now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
