"""Search in a playbook by words and vectors together (R3.45): the same answers for a value and for a store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol
from weakref import WeakKeyDictionary

from daiku.core.playbook.ranking import Question, Scored, search, text_of
from daiku.core.playbook.relevance import STRANGERS, Asked, is_related, least_alike
from daiku.core.retrieval.hashed import hashed_vector
from daiku.core.retrieval.vectors import Vector
from daiku.domain.errors import DaikuError
from daiku.domain.playbook import Bullet, BulletHit, Playbook, SearchQuery, confidence
from daiku.llm.embedder import Embedder, HashedWords
from daiku.playbook.index.source import Embedded, Source
from daiku.playbook.index.stored import StoredSource
from daiku.playbook.index.value import ValueSource
from daiku.playbook.index.vectors import ServiceVectors
from daiku.playbook.store import PlaybookStore

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


class PlaybookSearch:
    """R3.45, B3.2: the bullets that fit a question best, by words (BM25) and by vectors, each stretched to 0..1, `alpha`
    the weight of the vectors. `embedder`: how vectors are made; None by words and their pieces, without a download."""

    def __init__(self, embedder: Embedder | None = None, *, alpha: float = 0.5) -> None:
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha is between 0 and 1, not {alpha}")
        self._embedder = embedder or HashedWords()
        self._alpha = alpha
        self._vectors = ServiceVectors(self._embedder)
        self._strangers: Sequence[Vector] = ()
        self._last: ValueSource | None = None
        self._stored = WeakKeyDictionary[PlaybookStore, StoredSource]()

    def search(
        self, query: SearchQuery, playbook: Playbook | Loads, *, resting: bool = False, related: bool = False
    ) -> list[BulletHit]:
        """The active bullets that fit best, at most `top_k` (R3.46), none for an empty playbook (R3.41). Bullets below
        the least confidence are left out; `resting`: they are found too, marked as resting, to be shown to a person.
        `related`: only those that have to do with the question at all, which may be none. Where the embedder is a service this
        waits for it, for a while."""
        source = self._source(playbook)
        while True:
            try:
                made = self._embedded(query.query_text, source.lacking(), related=related)
                if (
                    source.take(made)
                    and (found := self._found(source, query, made, resting=resting, related=related))
                    is not None
                ):
                    return [_hit(each, bullet, query) for each, bullet in found]
            except DaikuError as wrong:
                source = self._instead(playbook, source, wrong)

    def _source(self, playbook: Playbook | Loads) -> Source:
        if isinstance(playbook, PlaybookStore):
            known = self._stored.get(playbook)
            if known is None:
                most = None if isinstance(self._embedder, HashedWords) else AT_ONCE
                known = self._stored[playbook] = StoredSource(playbook, self._embedder.name, most)
            return known
        value = playbook if isinstance(playbook, Playbook) else playbook.load()
        if self._last is None or self._last.playbook is not value:
            self._last = ValueSource(value)
        return self._last

    def _instead(self, playbook: Playbook | Loads, source: Source, wrong: DaikuError) -> Source:
        """Where an index cannot be written, the playbook itself is looked through. Raises `wrong` where there is no
        index to do without."""
        if isinstance(playbook, Playbook) or not isinstance(source, StoredSource):
            raise wrong
        logger.warning("lessons are searched without their index: %s", wrong.failure.message)
        return ValueSource(playbook.load())

    def _found(
        self, source: Source, query: SearchQuery, made: Embedded | None, *, resting: bool, related: bool
    ) -> list[tuple[Scored, Bullet]] | None:
        """What is found; None where the playbook changed meanwhile."""
        searched = source.searched()
        question = Question(
            query.query_text[:LONGEST_QUESTION],
            None if made is None else made.question,
            query.top_k,
            source.hidden(query, resting=resting),
        )
        listed = search(searched, question, self._alpha)
        asked, most = Asked(question.text) if related else None, query.top_k
        least = self._least_alike(made) if related else None
        found: list[tuple[Scored, Bullet]] = []
        for start in range(0, len(listed), most):
            bullets = source.bullets([each.number for each in listed[start : start + most]])
            there = [
                (each, bullets[each.number])
                for each in listed[start : start + most]
                if each.number in bullets
            ]
            found += [
                (each, bullet)
                for each, bullet in there
                if asked is None or is_related(asked, text_of(bullet), each.likeness, least)
            ]
            if asked is None or len(found) >= most:
                break
        return found[:most] if source.holds() else None

    def _least_alike(self, made: Embedded | None) -> float | None:
        """From which cosine on a text has to do with the question; None where a cosine says nothing of that."""
        if made is None or isinstance(self._embedder, HashedWords):
            return None
        return least_alike(made.question, self._strangers, self._embedder.unrelated)

    def _embedded(self, question: str, texts: Sequence[str], *, related: bool) -> Embedded | None:
        """The vectors of the question and of other texts; None where the service does not answer. `related`: strangers'
        are made too, once, for what is found has to be more alike than these."""
        asked = question[:LONGEST_QUESTION]
        if isinstance(self._embedder, HashedWords):
            return Embedded(hashed_vector(asked), [hashed_vector(each) for each in texts])
        beside = STRANGERS if related and not self._strangers else ()
        known = self._vectors.of((asked, *texts, *beside))
        if known is None:
            return None
        self._strangers = [known[each] for each in beside] or self._strangers
        return Embedded(known[asked], [known[each] for each in texts])


def search_of(config: Config) -> PlaybookSearch:
    """Search as `playbook` and `memory.embedder` of the settings say. Raises UsageError."""
    if not config.memory.embedder.strip():
        return PlaybookSearch(alpha=config.playbook.alpha)
    from daiku.llm.embed import embedder_of  # when used

    return PlaybookSearch(embedder_of(config.memory.embedder, config.llm), alpha=config.playbook.alpha)


def _hit(found: Scored, bullet: Bullet, query: SearchQuery) -> BulletHit:
    return BulletHit(
        bullet=bullet,
        vector_score=found.vector,
        bm25_score=found.words,
        combined_score=found.combined,
        resting=confidence(bullet) < query.min_confidence,
    )
