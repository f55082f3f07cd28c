"""Search in a playbook by words, and by the vectors of an embedder where one is configured (R3.45)."""

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
from daiku.playbook.rows import StoredVector
from daiku.playbook.rules.ranking import Lessons, Question, Scored, search, text_of
from daiku.playbook.rules.relevance import QuestionWords
from daiku.playbook.store import PlaybookStore

if TYPE_CHECKING:
    from concurrent.futures import Future

    from daiku.settings.config import Config

WAITED_SECONDS = 3.0
"""How long a search waits for a service: less than a run waits for its lessons, which are then found by words."""
LONGEST_SECONDS = 120.0
"""After so long what a service was asked is given up, and asked again by the next search."""
MOST_KEPT = 500
"""Texts whose vectors a service is asked for once, while this process lives."""


class _Asked(NamedTuple):
    """What a service was asked, in a thread that nobody waits for at the end of the program."""

    texts: Sequence[str]
    vectors: Future[list[Vector]]


@dataclass(slots=True)
class ServiceVectors:
    """The vectors of an embedder that is a service. One that was late is asked on, but not waited for until it has answered:
    a server that is down costs the first search some seconds and no later one."""

    embedder: Embedder
    _kept: dict[str, Vector] = field(default_factory=dict[str, Vector], init=False)
    _asked: _Asked | None = field(default=None, init=False)
    _late: bool = field(default=False, init=False)

    def of(self, texts: Sequence[str]) -> Mapping[str, Vector] | None:
        """The vectors of these texts; None where the service does not answer in time."""
        self._look(0.0)
        if missing := [each for each in dict.fromkeys(texts) if each not in self._kept]:
            if self._asked is None:
                self._asked = _Asked(missing, _asked(self.embedder, missing))
            self._look(0.0 if self._late else WAITED_SECONDS)
        if any(each not in self._kept for each in texts):
            return None
        found = {each: self._kept[each] for each in texts}
        self._kept = dict(list(self._kept.items())[-MOST_KEPT:])
        return found

    def _look(self, seconds: float) -> None:
        """Take in what the service was asked, as far as it comes within so many seconds."""
        if self._asked is None:
            return
        texts, vectors = self._asked
        with suppress(TimeoutError):
            vectors.exception(seconds)
        if not vectors.done():
            if not self._late:
                logger.warning("lessons are searched by words only: %s does not answer", self.embedder.name)
            self._late = True
            return
        self._asked = None
        try:
            self._kept |= zip(texts, vectors.result(), strict=True)
            self._late = False
        except TimeoutError:
            logger.warning("%s was asked for vectors and did not answer", self.embedder.name)
        except LLMError as wrong:
            logger.warning("lessons are searched by words only: %s", wrong.failure.message)


def _asked(embedder: Embedder, texts: Sequence[str]) -> Future[list[Vector]]:
    """The vectors of a service, asked in a thread of its own: a loop may run in this one."""
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
        except Exception as wrong:  # noqa: BLE001  # the thread's boundary: whoever looks is told
            vectors.set_exception(wrong)

    vectors: Future[list[Vector]] = Future()
    Thread(target=work, name="daiku playbook", daemon=True).start()
    return vectors


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
            asked = QuestionWords(text)
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
                known.lessons.set_lesson(bullet)
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
    from daiku.models.embed import open_embedder_or_placeholder  # when used

    return PlaybookSearch(
        open_embedder_or_placeholder(config.memory.embedder, config.llm), alpha=config.playbook.alpha
    )


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
