"""Lessons for a request from the playbooks of the repository and the user, within a token budget."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from daiku.dataclass import dataclass, field
from daiku.domain.held import Lesson
from daiku.models.tokens import estimate
from daiku.playbook.rules.sections import FOR_ALL_WORK, FOR_EVERYTHING
from daiku.run.rules.outside import FoundLesson
from daiku.run.rules.state.lessons import render_lessons

if TYPE_CHECKING:
    from pathlib import Path

    from daiku.domain.playbook import Bullet, BulletHit, Playbook, SearchQuery
    from daiku.playbook.search import PlaybookSearch
    from daiku.settings.config import Config, PlaybookSettings
    from daiku.store.database import Database

LONGEST_QUESTION = 4_000
"""Maximum length of a searched request in characters: its beginning and its end."""

GENERAL = 5
"""Maximum number of general lessons for a run, besides those that fit its request."""
GENERAL_KEPT = 2
"""Number of general lessons even if more lessons fit the request than there is room."""
PART_FOR_GENERAL = 4
"""Divisor of the token budget: maximum share of general lessons."""
PART_OF_WINDOW = 8
"""Divisor of the context window: maximum share of lessons."""


class KeepsBullets(Protocol):
    """One playbook, for reading."""

    def revision(self) -> int:
        """Return the revision, which increases with each change; 0 without any."""
        ...

    def load(self) -> Playbook: ...

    def versions(self, ids: Sequence[str]) -> Mapping[str, int]: ...

    def general(self, sections: Collection[str], most: int, least: float) -> Sequence[Bullet]:
        """Return active bullets of these sections with a confidence of at least `least`, most helpful first."""
        ...


class FindsBullets(Protocol):
    """Search in a playbook."""

    def search(
        self,
        query: SearchQuery,
        playbook: Playbook | KeepsBullets,
        *,
        resting: bool = False,
        related: bool = False,
    ) -> list[BulletHit]:
        """Return the active bullets that fit, best first.

        `resting`: include those with a low confidence. `related`: only those that share something with the
        question.
        """
        ...


class PlaybookPair(NamedTuple):
    """The playbooks of a workspace.

    `repository` is None without a folder or trust; both are None if there are none.
    """

    repository: KeepsBullets | None
    user: KeepsBullets | None


@dataclass(frozen=True, slots=True)
class Playbooks:
    """The lessons for runs of one workspace.

    `get_stores` and `get_finder` are called when first needed: an empty playbook is not searched.
    """

    settings: PlaybookSettings
    get_stores: Callable[[], PlaybookPair]
    get_finder: Callable[[], FindsBullets]
    _alone: threading.Lock = field(default_factory=threading.Lock)
    """Lock for opening and searching, since a search updates the lessons in memory."""

    async def recall(
        self, question: str, *, personal: bool = True, window: int = 0, working: bool = False
    ) -> tuple[Lesson, ...]:
        """Return the lessons that fit `question`, best first, followed by general ones.

        At most `top_k` complete lessons within `token_budget` and a share of the model's `window` (0:
        unknown). `personal`: include the user's playbook. `working`: the run may change files, so include
        lessons about building and testing. Raises DaikuError.
        """
        budget, query_text = self.settings.token_budget, _shorten(question)
        if not budget or not query_text.strip():
            return ()
        lessons = await asyncio.to_thread(self._find_lessons, query_text, personal=personal, working=working)
        return _choose(
            *lessons, min(budget, window // PART_OF_WINDOW) if window else budget, self.settings.top_k
        )

    async def search(self, question: str, most: int = 0, *, personal: bool = True) -> tuple[FoundLesson, ...]:
        """Return what fits `question` best, resting bullets too: at most `most`, 0 for `top_k`.

        Raises DaikuError.
        """
        query_text = _shorten(question)
        if not query_text.strip():
            return ()
        return await asyncio.to_thread(self._find, query_text, most or self.settings.top_k, personal=personal)

    def _find(self, query_text: str, most: int, *, personal: bool) -> tuple[FoundLesson, ...]:
        stores = self._stores(personal=personal)
        best = self._find_best(stores, self._build_query(query_text, most), resting=True, related=True)
        versions = _get_versions(stores, [hit.bullet.id for hit in best])
        return tuple(_to_found_lesson(hit, versions.get(hit.bullet.id, 1)) for hit in best)

    def _find_lessons(
        self, query_text: str, *, personal: bool, working: bool
    ) -> tuple[Sequence[Lesson], Sequence[Lesson]]:
        """Return the lessons that fit, and further general ones."""
        stores = self._stores(personal=personal)
        query = self._build_query(query_text, self.settings.top_k)
        fit = [hit.bullet for hit in self._find_best(stores, query, resting=False, related=True)]
        general = self._find_general(stores, working=working, known={each.id for each in fit})
        versions = _get_versions(stores, [each.id for each in (*fit, *general)])
        lessons = [
            Lesson(id=each.id, version=versions.get(each.id, 1), text=each.content)
            for each in (*fit, *general)
        ]
        return lessons[: len(fit)], lessons[len(fit) :]

    def _find_general(
        self, stores: Sequence[KeepsBullets], *, working: bool, known: AbstractSet[str]
    ) -> Sequence[Bullet]:
        """Return general lessons, the most helpful first, without those that are `known`."""
        sections = FOR_ALL_WORK if working else FOR_EVERYTHING
        most, least = GENERAL + len(known), self.settings.min_confidence
        general = [
            each for store in stores for each in store.general(sections, most, least) if each.id not in known
        ]
        return sorted(general, key=lambda each: each.harmful - each.helpful)[:GENERAL]

    def _build_query(self, query_text: str, most: int) -> SearchQuery:
        from daiku.domain.playbook import SearchQuery  # when used

        return SearchQuery(query_text=query_text, top_k=most, min_confidence=self.settings.min_confidence)

    def load(self) -> Playbook:
        """Return the bullets of both as one playbook."""
        from daiku.domain.playbook import Playbook  # when used

        return Playbook(bullets=tuple(each for store in self._stores() for each in store.load().bullets))

    def hits(self, query: SearchQuery) -> Sequence[BulletHit]:
        """Return the best active bullets of both playbooks, related or not. Raises DaikuError."""
        return self._find_best(self._stores(), query, resting=False, related=False)

    def _find_best(
        self, stores: Sequence[KeepsBullets], query: SearchQuery, *, resting: bool, related: bool
    ) -> Sequence[BulletHit]:
        """Return the best active bullets of `stores`; `related`: only related ones. Raises DaikuError."""
        if not stores:
            return ()
        with self._alone:
            finder = self.get_finder()
            hits = [finder.search(query, store, resting=resting, related=related) for store in stores]
            best = _merge_hits(finder, query, [found for found in hits if found], resting=resting)
        return [hit for hit in best if hit.bullet.active]

    def versions(self, ids: Sequence[str]) -> Mapping[str, int]:
        """Return the versions of these bullets."""
        return _get_versions(self._stores(), ids) if ids else {}

    def _stores(self, *, personal: bool = True) -> list[KeepsBullets]:
        """Return the playbooks that are not empty."""
        with self._alone:
            repository, user = self.get_stores()
        both = (repository, user if personal else None)
        return [store for store in both if store is not None and store.revision()]


def _get_versions(stores: Sequence[KeepsBullets], ids: Sequence[str]) -> Mapping[str, int]:
    return {id_: version for store in stores for id_, version in store.versions(ids).items()}


def build_playbooks(
    database: Database, roots: tuple[Path, ...], config: Config, *, trusted: bool
) -> Playbooks:
    """Return the playbooks of these folders in a database; the repository's only with trust."""

    @cache
    def open_stores() -> PlaybookPair:
        from daiku.playbook.repository import open_playbooks  # when used

        stores = open_playbooks(database, roots if trusted else ())  # without trust its .git is not read
        return PlaybookPair(stores.repository, stores.user)

    def get_stores() -> PlaybookPair:
        """Return the playbooks. If there are none, create no table, and do not read the history."""
        has_any = database.has("playbooks") and database.first("SELECT 1 FROM playbooks LIMIT 1")
        return open_stores() if has_any else PlaybookPair(None, None)

    return Playbooks(config.playbook, get_stores, search_factory(config))


def search_factory(config: Config) -> Callable[[], PlaybookSearch]:
    """Return a function that creates the configured search once. Calling it raises UsageError."""

    @cache
    def get_search() -> PlaybookSearch:
        from daiku.playbook.search import build_search  # when used

        return build_search(config)

    return get_search


def _merge_hits(
    finder: FindsBullets, query: SearchQuery, found: Sequence[list[BulletHit]], *, resting: bool
) -> Sequence[BulletHit]:
    """Merge the hits of each playbook by searching them as one: scores are relative to one playbook."""
    if len(found) < 2:
        return found[0] if found else ()
    from daiku.domain.playbook import Playbook  # when used

    together = Playbook(bullets=tuple(hit.bullet for hits in found for hit in hits))
    return finder.search(query, together, resting=resting)


def _to_found_lesson(hit: BulletHit, version: int) -> FoundLesson:
    bullet = hit.bullet
    return FoundLesson(
        Lesson(id=bullet.id, version=version, text=bullet.content),
        section=bullet.section,
        score=hit.combined_score,
        resting=hit.resting,
    )


def _choose(fit: Sequence[Lesson], general: Sequence[Lesson], budget: int, most: int) -> tuple[Lesson, ...]:
    """Return at most `most` lessons within the budget: those that fit, then general ones."""
    chosen_general = _fit_budget(
        general[: max(min(GENERAL_KEPT, most // 2), most - len(fit))], budget // PART_FOR_GENERAL
    )
    rest = budget - (estimate(render_lessons(chosen_general)) if chosen_general else 0)
    return _fit_budget((*_fit_budget(fit[: most - len(chosen_general)], rest), *chosen_general), budget)


def _fit_budget(lessons: Sequence[Lesson], budget: int) -> tuple[Lesson, ...]:
    """Return the first complete lessons within the budget; one that is too long is skipped."""
    chosen: tuple[Lesson, ...] = ()
    for each in lessons:
        more = (*chosen, each)
        if estimate(render_lessons(more)) <= budget:
            chosen = more
    return chosen


def _shorten(question: str) -> str:
    half = LONGEST_QUESTION // 2
    return question if len(question) <= LONGEST_QUESTION else f"{question[:half]}\n{question[-half:]}"
