"""Search in a playbook by words, and by vectors if an embedder is configured (R3.45)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError, LLMError
from daiku.domain.playbook import Bullet, BulletHit, Playbook, SearchQuery, confidence
from daiku.memory.rules.vectors import Vector, pack, squared_length
from daiku.models.embedder import Embedder, HashedWords
from daiku.playbook.rules.ranking import Lessons, Question, QuestionWords, Scored, get_search_text, search
from daiku.playbook.store import PlaybookStore
from daiku.playbook.tables import StoredVector

if TYPE_CHECKING:
    from concurrent.futures import Future

    from daiku.settings.config import Config

WAITED_SECONDS = 3.0
"""Time in seconds that a search waits for an embedding service, before it uses words alone."""
LONGEST_SECONDS = 120.0
"""Timeout in seconds of a request to the service."""
MOST_CACHED = 500
"""Number of cached vectors."""


class _VectorRequest(NamedTuple):
    """A request to the service in a daemon thread."""

    texts: Sequence[str]
    vectors: Future[list[Vector]]


@dataclass(slots=True)
class ServiceVectors:
    """Vectors of an embedding service.

    After a timeout the request goes on, and no search waits until the service has answered.
    """

    embedder: Embedder
    _cache: dict[str, Vector] = field(default_factory=dict[str, Vector], init=False)
    _request: _VectorRequest | None = field(default=None, init=False)
    _is_late: bool = field(default=False, init=False)

    def of(self, texts: Sequence[str]) -> Mapping[str, Vector] | None:
        """Return the vectors of these texts; None if the service does not answer in time."""
        self._collect(0.0)
        if missing := [each for each in dict.fromkeys(texts) if each not in self._cache]:
            if self._request is None:
                self._request = _VectorRequest(missing, _request(self.embedder, missing))
            self._collect(0.0 if self._is_late else WAITED_SECONDS)
        if any(each not in self._cache for each in texts):
            return None
        vectors = {each: self._cache[each] for each in texts}
        self._cache = dict(list(self._cache.items())[-MOST_CACHED:])
        return vectors

    def _collect(self, seconds: float) -> None:
        """Take the result of the pending request if it arrives within `seconds`."""
        if self._request is None:
            return
        texts, vectors = self._request
        with suppress(TimeoutError):
            vectors.exception(seconds)
        if not vectors.done():
            if not self._is_late:
                logger.warning("lessons are searched by words only: %s does not answer", self.embedder.name)
            self._is_late = True
            return
        self._request = None
        try:
            self._cache |= zip(texts, vectors.result(), strict=True)
            self._is_late = False
        except TimeoutError:
            logger.warning("%s was asked for vectors and did not answer", self.embedder.name)
        except LLMError as wrong:
            logger.warning("lessons are searched by words only: %s", wrong.failure.message)


def _request(embedder: Embedder, texts: Sequence[str]) -> Future[list[Vector]]:
    """Request vectors in a thread, since an event loop may run in this one."""
    from concurrent.futures import Future  # when used

    async def embedded() -> list[Vector]:
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await embedder.embed(texts)
        finally:
            await embedder.aclose()

    def work() -> None:
        try:
            vectors.set_result(asyncio.run(embedded()))
        except Exception as wrong:  # noqa: BLE001  # thread boundary: reported by the future
            vectors.set_exception(wrong)

    vectors: Future[list[Vector]] = Future()
    Thread(target=work, name="daiku playbook", daemon=True).start()
    return vectors


logger = logging.getLogger(__name__)

LONGEST_QUESTION = 4_000
"""Maximum length of a question in characters."""
AT_ONCE = 64
"""Number of bullets without a vector that are sent to the service in one search."""


class Loads(Protocol):
    """A playbook that can be loaded."""

    def load(self) -> Playbook:
        """Return all bullets in the order of their addition."""
        ...


@dataclass(slots=True)
class _StoredLessons:
    """The lessons of a stored playbook as of its `revision`."""

    lessons: Lessons = field(default_factory=Lessons)
    revision: int = 0


class PlaybookSearch:
    """Search for the best bullets by words (BM25) and by the vectors of `embedder` (R3.45, B3.2).

    Both scores are scaled to 0..1; `alpha` is the weight of the vectors. Without an embedder only words are
    used.
    """

    def __init__(self, embedder: Embedder | None = None, *, alpha: float = 0.5) -> None:
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha is between 0 and 1, not {alpha}")
        if isinstance(embedder, HashedWords):
            embedder = None  # these vectors compare words, which BM25 does better
        self._service = None if embedder is None else ServiceVectors(embedder)
        self._alpha = alpha
        self._last: tuple[Playbook, Lessons] | None = None
        self._stored = WeakKeyDictionary[PlaybookStore, _StoredLessons]()

    def search(
        self, query: SearchQuery, playbook: Playbook | Loads, *, resting: bool = False, related: bool = False
    ) -> list[BulletHit]:
        """Return the best active bullets, at most `top_k` (R3.46), none of an empty playbook (R3.41).

        Bullets below the minimum confidence are left out, or marked as resting with `resting`. `related`:
        only those that have something to do with the question. May wait for the embedding service.
        """
        store = playbook if isinstance(playbook, PlaybookStore) else None
        lessons = self._load_lessons(store) if store is not None else self._lessons_of(playbook)
        text = query.query_text[:LONGEST_QUESTION]
        vector = self._get_vector(text, lessons, store)
        hidden = _find_hidden(lessons.active, query, resting=resting)
        question = Question(text, vector, query.top_k, hidden, fill=self._service is None)
        scored = search(lessons, question, self._alpha)
        if related:
            question_words = QuestionWords(text)
            scored = [
                each
                for each in scored
                if self._is_alike(each)
                or question_words.shares_words(get_search_text(lessons.active[each.number]))
            ]
        return [_to_hit(each, lessons.active[each.number], query) for each in scored[: query.top_k]]

    def _lessons_of(self, playbook: Playbook | Loads) -> Lessons:
        value = playbook if isinstance(playbook, Playbook) else playbook.load()
        if self._last is None or self._last[0] is not value:
            self._last = value, Lessons(value.bullets)
        return self._last[1]

    def _load_lessons(self, store: PlaybookStore) -> Lessons:
        """Return the current lessons of a store; only changes since the last search are read."""
        cached, revision = self._stored.get(store), store.revision()
        is_new = cached is None or cached.revision > revision  # it was replaced by an older playbook
        if cached is None or is_new:
            cached = self._stored[store] = _StoredLessons()
        if cached.revision < revision:
            for bullet in store.changed_since(cached.revision):
                cached.lessons.set_lesson(bullet)
            cached.revision = revision
        if is_new and self._service is not None:
            digests = {each.id: _compute_digest(each) for each in cached.lessons.active.values()}
            for vector in store.vectors(self._service.embedder.name):
                if digests.get(vector.bullet) == vector.digest:
                    cached.lessons.add_vector(vector.bullet, vector.packed, vector.squared)
        return cached.lessons

    def _get_vector(self, question: str, lessons: Lessons, store: PlaybookStore | None) -> Vector | None:
        """Return the vector of a question, and add missing ones of lessons. None: no answer."""
        vector = self._request_vectors(question, lessons, store)
        if vector is not None and lessons.forget_vectors_of_other_size(len(vector)):
            vector = self._request_vectors(question, lessons, store)  # another model under the same name
        return vector

    def _request_vectors(self, question: str, lessons: Lessons, store: PlaybookStore | None) -> Vector | None:
        """Request the vectors of a question and of lessons without one."""
        if self._service is None:
            return None
        missing = lessons.without_vector(None if store is None else AT_ONCE)
        vectors = self._service.of((question, *map(get_search_text, missing)))
        if vectors is None:
            return None
        self._add_vectors(lessons, store, [(each, vectors[get_search_text(each)]) for each in missing])
        return vectors[question]

    def _add_vectors(
        self, lessons: Lessons, store: PlaybookStore | None, new_vectors: Sequence[tuple[Bullet, Vector]]
    ) -> None:
        """Add vectors to lessons, and store them for other processes."""
        assert self._service is not None
        vectors = [
            StoredVector(bullet.id, _compute_digest(bullet), squared_length(vector), pack(vector))
            for bullet, vector in new_vectors
        ]
        for each in vectors:
            lessons.add_vector(each.bullet, each.packed, each.squared)
        if store is None or not vectors:
            return
        try:
            store.store_vectors(self._service.embedder.name, vectors)
        except DaikuError as wrong:
            logger.warning("vectors of lessons are not stored: %s", wrong.failure.message)

    def _is_alike(self, scored: Scored) -> bool:
        """Return True if the embedder rates a lesson above unrelated texts."""
        least = 1.0 if self._service is None else self._service.embedder.unrelated
        return scored.likeness is not None and scored.likeness >= least


def build_search(config: Config) -> PlaybookSearch:
    """Create the search that the settings configure. Raises UsageError."""
    if not config.memory.embedder.strip():
        return PlaybookSearch(alpha=config.playbook.alpha)
    from daiku.models.embed import open_embedder_or_placeholder  # when used

    return PlaybookSearch(
        open_embedder_or_placeholder(config.memory.embedder, config.llm), alpha=config.playbook.alpha
    )


def _find_hidden(active: Mapping[int, Bullet], query: SearchQuery, *, resting: bool) -> set[int]:
    """Return the lessons of other sections, and those below the minimum confidence."""
    section, least = query.section_filter, 0.0 if resting else query.min_confidence
    return {
        number
        for number, each in active.items()
        if (section is not None and each.section != section) or confidence(each) < least
    }


def _compute_digest(bullet: Bullet) -> str:
    return hashlib.sha256(get_search_text(bullet).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _to_hit(scored: Scored, bullet: Bullet, query: SearchQuery) -> BulletHit:
    return BulletHit(
        bullet=bullet,
        vector_score=scored.vector,
        bm25_score=scored.words,
        combined_score=scored.combined,
        resting=confidence(bullet) < query.min_confidence,
    )
