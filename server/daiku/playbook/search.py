"""Search in a playbook by words, and by the vectors of an embedder where one is configured (R3.45)."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from daiku.core.playbook.ranking import Lessons, Question, Scored, search, text_of
from daiku.core.playbook.relevance import Asked
from daiku.core.retrieval.vectors import Vector, pack, squared_length
from daiku.dataclass import dataclass, field
from daiku.domain.errors import DaikuError
from daiku.domain.playbook import Bullet, BulletHit, Playbook, SearchQuery, confidence
from daiku.llm.embedder import Embedder, HashedWords
from daiku.playbook.rows import StoredVector
from daiku.playbook.store import PlaybookStore
from daiku.playbook.vectors import ServiceVectors

if TYPE_CHECKING:
    from daiku.settings.config import Config

logger = logging.getLogger(__name__)

LONGEST_QUESTION = 4_000
"""Characters of a question that are looked for."""
AT_ONCE = 64
"""Bullets for which a service is asked in one search; the others are found by their words until they have vectors."""


class Loads(Protocol):
    """A store of a playbook."""

    def load(self) -> Playbook:
        """All its bullets, in the order of their adding."""
        ...


@dataclass(slots=True)
class _StoredLessons:
    """The lessons of a stored playbook as of its `revision`."""

    lessons: Lessons = field(default_factory=Lessons)
    revision: int = 0


class PlaybookSearch:
    """R3.45, B3.2: finds the bullets that fit a question best, by words (BM25) and by the vectors of `embedder`.

    Both scores are stretched to 0..1; `alpha` is the weight of the vectors. Without an embedder words decide alone."""

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
        """Return the active bullets that fit best, at most `top_k` (R3.46), none for an empty playbook (R3.41).

        Bullets below the least confidence are left out; `resting`: they are found too, marked as resting, to be shown to a
        person. `related`: only those that have to do with the question at all, which may be none. Where the embedder is a
        service this waits for it, for a while."""
        store = playbook if isinstance(playbook, PlaybookStore) else None
        lessons = self._read(store) if store is not None else self._lessons_of(playbook)
        text = query.query_text[:LONGEST_QUESTION]
        vector = self._vector_of(text, lessons, store)
        hidden = _hidden(lessons.active, query, resting=resting)
        question = Question(text, vector, query.top_k, hidden, fill=self._service is None)
        found = search(lessons, question, self._alpha)
        if related:
            asked = Asked(text)
            found = [
                each
                for each in found
                if self._is_alike(each) or asked.shares_words(text_of(lessons.active[each.number]))
            ]
        return [_hit(each, lessons.active[each.number], query) for each in found[: query.top_k]]

    def _lessons_of(self, playbook: Playbook | Loads) -> Lessons:
        value = playbook if isinstance(playbook, Playbook) else playbook.load()
        if self._last is None or self._last[0] is not value:
            self._last = value, Lessons(value.bullets)
        return self._last[1]

    def _read(self, store: PlaybookStore) -> Lessons:
        """Return the lessons of a store as they are now: what changed since the last search is read again."""
        known, revision = self._stored.get(store), store.revision()
        is_new = known is None or known.revision > revision  # an older playbook was put in its place
        if known is None or is_new:
            known = self._stored[store] = _StoredLessons()
        if known.revision < revision:
            for bullet in store.changed_since(known.revision):
                known.lessons.put(bullet)
            known.revision = revision
        if is_new and self._service is not None:
            digests = {each.id: _digest(each) for each in known.lessons.active.values()}
            for vector in store.vectors(self._service.embedder.name):
                if digests.get(vector.bullet) == vector.digest:
                    known.lessons.add_vector(vector.bullet, vector.packed, vector.squared)
        return known.lessons

    def _vector_of(self, question: str, lessons: Lessons, store: PlaybookStore | None) -> Vector | None:
        """Return the vector of a question, and add those that lessons lack. None: the service does not answer."""
        vector = self._ask(question, lessons, store)
        if vector is not None and lessons.forget_vectors_of_other_size(len(vector)):
            vector = self._ask(question, lessons, store)  # another model under the same name
        return vector

    def _ask(self, question: str, lessons: Lessons, store: PlaybookStore | None) -> Vector | None:
        """Ask the service for the vectors of a question and of lessons without one."""
        if self._service is None:
            return None
        lacking = lessons.without_vector(None if store is None else AT_ONCE)
        known = self._service.of((question, *map(text_of, lacking)))
        if known is None:
            return None
        self._add_vectors(lessons, store, [(each, known[text_of(each)]) for each in lacking])
        return known[question]

    def _add_vectors(
        self, lessons: Lessons, store: PlaybookStore | None, made: Sequence[tuple[Bullet, Vector]]
    ) -> None:
        """Add vectors to lessons, and store them so that no process asks for them again."""
        assert self._service is not None
        vectors = [
            StoredVector(bullet.id, _digest(bullet), squared_length(vector), pack(vector))
            for bullet, vector in made
        ]
        for each in vectors:
            lessons.add_vector(each.bullet, each.packed, each.squared)
        if store is None or not vectors:
            return
        try:
            store.store_vectors(self._service.embedder.name, vectors)
        except DaikuError as wrong:
            logger.warning("vectors of lessons are not stored: %s", wrong.failure.message)

    def _is_alike(self, found: Scored) -> bool:
        """Return True if the embedder finds a lesson and the question more alike than unrelated texts."""
        least = 1.0 if self._service is None else self._service.embedder.unrelated
        return found.likeness is not None and found.likeness >= least


def search_of(config: Config) -> PlaybookSearch:
    """Search as `playbook` and `memory.embedder` of the settings say. Raises UsageError."""
    if not config.memory.embedder.strip():
        return PlaybookSearch(alpha=config.playbook.alpha)
    from daiku.llm.embed import embedder_of  # when used

    return PlaybookSearch(embedder_of(config.memory.embedder, config.llm), alpha=config.playbook.alpha)


def _hidden(active: Mapping[int, Bullet], query: SearchQuery, *, resting: bool) -> set[int]:
    """Return the lessons that a query does not ask for: of other sections, or below its least confidence."""
    section, least = query.section_filter, 0.0 if resting else query.min_confidence
    return {
        number
        for number, each in active.items()
        if (section is not None and each.section != section) or confidence(each) < least
    }


def _digest(bullet: Bullet) -> str:
    return hashlib.sha256(text_of(bullet).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _hit(found: Scored, bullet: Bullet, query: SearchQuery) -> BulletHit:
    return BulletHit(
        bullet=bullet,
        vector_score=found.vector,
        bm25_score=found.words,
        combined_score=found.combined,
        resting=confidence(bullet) < query.min_confidence,
    )
