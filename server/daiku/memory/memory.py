"""Memory of the public API: what is worth keeping over sessions, per person and workspace, found again by likeness."""

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
from daiku.memory.rules.nearest import Ranked
from daiku.memory.store import Embedded, Entry, MemoryStore, Scope, hybrid, renew_vectors
from daiku.memory.stores import open_store
from daiku.models.embed import Embedder, HashedWords, open_embedder
from daiku.models.tokens import estimate
from daiku.run.rules.outside import Recollection
from daiku.settings import from_mapping
from daiku.texts.rules.visible import strip_invisible
from daiku.texts.text import text

WINDOW = 6
"""Things said that a session's window holds."""
MOST_SESSIONS = 256
SHORT = 40
"""A question of fewer characters is searched together with what was said before it: “and the other one?”."""
BEFORE = 2


class Windows:
    """What was said last in the sessions used last (R1.16), to understand short questions; not stored."""

    def __init__(self) -> None:
        self._said: dict[str, deque[str]] = {}

    def add(self, session: str, said: str) -> None:
        """Put what was said at the end of its session's window."""
        window = self._said.pop(session, None) or deque[str](maxlen=WINDOW)
        window.append(said)
        self._said[session] = window  # the last of all: used last
        while len(self._said) > MOST_SESSIONS:
            del self._said[next(iter(self._said))]

    def of(self, session: str) -> tuple[str, ...]:
        """What the window of a session holds, the oldest first."""
        return tuple(self._said.get(session, ()))

    def in_context(self, session: str, question: str) -> str:
        """The question, with what was said before it where it is too short to stand alone."""
        before = self.of(session)[-BEFORE:] if session and len(question) < SHORT else ()
        return "\n".join([*before, question])


logger = logging.getLogger(__name__)

LONGEST = 16_000
"""Characters of one thing to remember."""
LONGEST_QUESTION = 4_000
ALPHA = 0.5
"""The weight of the vectors in a search by both."""
RENEWED_AT_ONCE = 64
"""Rows that get new vectors in one step."""
RENEW_SECONDS = 0.5
"""How long a search waits for rows to get vectors of the present embedder; the rest is done meanwhile."""


class Memory:
    """What a person wants kept over sessions (R1.2, R1.10, R1.93): remembered, found again, forgotten.

    `store`: None is in memory only, else a path (SQLite) or a database URL. `embedder`: how texts are compared; None by
    their words, without a download; a name such as "openai/text-embedding-3-small" by a provider's model, which is sent
    the texts. `user` and `workspace`: whose it is; nobody finds what belongs to others. `top_k` and `token_budget`
    bound what `recall` gives. Secrets are taken out before anything is kept. Raises UsageError; methods raise
    DaikuError where the database fails.
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
        self.embedder = _embedder(embedder)
        self._store = open_store(store) if store is None or isinstance(store, str | Path) else store
        self._scope = Scope(user, workspace)
        self._top_k, self._budget = top_k, token_budget
        self._redact = redact or Redactor(())
        self._windows = Windows()
        self._renewal: asyncio.Task[None] | None = None

    async def remember(self, text: str, *, session: str = "", origin: str = "") -> str:
        """Keep `text` without secrets; return its id, empty if nothing is left. Raises UsageError: too long."""
        kept = self._clean(text)
        if not kept:
            return ""
        if len(kept) > LONGEST:
            raise _too_long(len(kept))
        entry = Entry(_id_of(self._scope, kept), kept, session, origin, _now())
        try:
            embedded = await self._embedded(kept)
        except LLMError as wrong:  # kept all the same: it gets its vector when the service answers again
            logger.warning("a memory has no vector yet: %s", wrong.failure.message)
            embedded = None
        return await self._store.add(self._scope, entry, embedded)

    async def recall(self, question: str, *, session: str = "") -> tuple[Recollection, ...]:
        """Return what fits `question`, the best first, within the bounds. `session` explains short questions."""
        asked = self._windows.in_context(session, question)[-LONGEST_QUESTION:]
        if session:
            self._windows.add(session, question[:LONGEST_QUESTION])
        if not asked.strip() or not self._budget:
            return ()
        try:
            embedded = await self._embedded(asked)
        except LLMError as wrong:
            logger.warning("memories are searched by words only: %s", wrong.failure.message)
            return await self._within_budget(
                await hybrid(self._store, self._scope, asked, None, self._top_k, alpha=ALPHA)
            )
        await self._renew(embedded.key)
        found = await self._store.nearest(self._scope, embedded, self._top_k)
        return await self._within_budget([each for each in found if each.score >= self.embedder.unrelated])

    async def search(self, question: str, most: int = 10) -> tuple[Recollection, ...]:
        """What fits `question` best by words and vectors together, however little it fits."""
        asked = question[:LONGEST_QUESTION]
        if not asked.strip():
            return ()
        try:
            embedded = await self._embedded(asked)
        except LLMError:
            embedded = None
        else:
            await self._renew(embedded.key)
        return await self._read(await hybrid(self._store, self._scope, asked, embedded, most, alpha=ALPHA))

    async def forget(self, memory_id: str) -> bool:
        """Remove what has this id, also from the index and the log of the database; whether there was such a thing."""
        return await self._store.forget(self._scope, memory_id)

    async def forget_all(self) -> int:
        """Remove all that is remembered of this person in this workspace; how much it was."""
        return await self._store.forget_all(self._scope)

    async def list(self, most: int = 100) -> tuple[Entry, ...]:
        """What is remembered, the newest first."""
        return tuple(await self._store.list(self._scope, most))

    def recent(self, session: str) -> tuple[str, ...]:
        """What was asked last in a session, the oldest first (R1.16)."""
        return self._windows.of(session)

    async def aclose(self) -> None:
        """Let go of the database and of the embedder's connection."""
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

    def _clean(self, said: str) -> str:
        """The text as it is kept: nothing that nobody sees, nothing that is secret, nothing that UTF-8 cannot say."""
        plain = said.encode("utf-8", "replace").decode("utf-8")
        return self._redact(strip_invisible(plain)).strip()

    async def _embedded(self, said: str) -> Embedded:
        (vector,) = await self.embedder.embed([said])
        return Embedded(self.embedder.name, vector)

    async def _within_budget(self, found: Sequence[Ranked]) -> tuple[Recollection, ...]:
        kept: list[Recollection] = []
        room = self._budget
        for each in await self._read(found):
            room -= estimate(each.text)
            if room < 0:
                break
            kept.append(each)
        return tuple(kept)

    async def _read(self, found: Sequence[Ranked]) -> tuple[Recollection, ...]:
        entries = await self._store.read([each.number for each in found]) if found else {}
        return tuple(
            Recollection(entry.id, entry.text, round(each.score, 4))
            for each in found
            if (entry := entries.get(each.number)) is not None
        )

    async def _renew(self, key: str) -> None:
        """Renew vectors of another embedder: some now, the rest in the background. Until then, words find rows."""
        task = self._renewal
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            if not await self._store.waiting(self._scope, key, 1):
                return
            self._renewal = task = asyncio.create_task(self._renew_all(key))
        await asyncio.wait({task}, timeout=RENEW_SECONDS)

    async def _renew_all(self, key: str) -> None:
        try:
            await renew_vectors(self._store, self._scope, self.embedder, key, RENEWED_AT_ONCE)
        except DaikuError as wrong:
            logger.warning("memories have no new vectors yet: %s", wrong.failure.message)


def _embedder(given: str | Embedder | None) -> Embedder:
    """The embedder; of one that is named, key and address come from the provider's usual environment variables."""
    if given is None or isinstance(given, str):
        return open_embedder(given, from_mapping({}, os.environ).llm) if given else HashedWords()
    return given


def _id_of(scope: Scope, kept: str) -> str:
    """The id of a text in a scope: what is remembered twice is there once."""
    said = "\0".join((*scope, kept)).encode()
    return f"mem_{hashlib.blake2b(said, digest_size=8).hexdigest()}"


def _too_long(length: int) -> UsageError:
    message = text("memory.too_long", length=f"{length:,}", most=f"{LONGEST:,}")
    return UsageError(Failure(kind="usage", message=message, hint=text("memory.shorten")))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
