"""The playbooks of a repository and of its person together: what they say of a request, within bounds."""

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
"""Characters of a request that is looked for: its beginning and its end."""

GENERAL = 5
"""At most so many of the lessons that hold whatever is asked are told to a run, beside those that fit its request."""
GENERAL_KEPT = 2
"""So many of them are told even where more lessons fit the request than there are places."""
PART_FOR_GENERAL = 4
"""They take at most this part of the tokens: one over so many."""
PART_OF_WINDOW = 8
"""Lessons take no more than this part of what a model can be sent: one over so many."""


class KeepsBullets(Protocol):
    """One playbook, as it is looked into."""

    def revision(self) -> int:
        """Rises with each change; 0 where there never was one."""
        ...

    def load(self) -> Playbook:
        """All its bullets."""
        ...

    def versions(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The version of each of these bullets."""
        ...

    def general(self, sections: Collection[str], most: int, least: float) -> Sequence[Bullet]:
        """The active bullets of these sections that are no less sure than `least`, those that helped most first."""
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
        """The active bullets that fit, the best first; `resting`: also those that runs are not told; `related`: none that
        has nothing to do with the question."""
        ...


class Kept(NamedTuple):
    """The playbooks of one workspace. `repository` is None where no folder is open, or the person does not trust it; both
    are where there are none at all."""

    repository: KeepsBullets | None
    user: KeepsBullets | None


@dataclass(frozen=True, slots=True)
class Playbooks:
    """What runs of one workspace are told of its playbooks. Both `kept` and `finder` are called when they are first needed:
    nothing is searched in a playbook that is empty."""

    settings: PlaybookSettings
    kept: Callable[[], Kept]
    finder: Callable[[], FindsBullets]
    _alone: threading.Lock = field(default_factory=threading.Lock)
    """Held by the one thread that opens the playbooks or searches them, since a search updates the lessons in memory."""

    async def recall(
        self, question: str, *, personal: bool = True, window: int = 0, working: bool = False
    ) -> tuple[Lesson, ...]:
        """The lessons that fit `question`, the best first, and after them some that hold whatever is asked: at most `top_k`,
        whole ones, as many as the model can read within `token_budget` and a part of its `window` (0: unknown).
        `personal`: also those of the person's own playbook. `working`: the run may change files, for which how to build
        and to test holds too. Raises DaikuError."""
        most, asked = self.settings.token_budget, _in_short(question)
        if not most or not asked.strip():
            return ()
        told = await asyncio.to_thread(self._told, asked, personal=personal, working=working)
        return _chosen(*told, min(most, window // PART_OF_WINDOW) if window else most, self.settings.top_k)

    async def search(self, question: str, most: int = 0, *, personal: bool = True) -> tuple[FoundLesson, ...]:
        """What fits `question` best, resting bullets too: at most `most`, 0 for `top_k`. Raises DaikuError."""
        asked = _in_short(question)
        if not asked.strip():
            return ()
        return await asyncio.to_thread(self._find, asked, most or self.settings.top_k, personal=personal)

    def _find(self, asked: str, most: int, *, personal: bool) -> tuple[FoundLesson, ...]:
        stores = self._stores(personal=personal)
        best = self._best(stores, self._query(asked, most), resting=True, related=True)
        versions = _versions_in(stores, [hit.bullet.id for hit in best])
        return tuple(_found(hit, versions.get(hit.bullet.id, 1)) for hit in best)

    def _told(
        self, asked: str, *, personal: bool, working: bool
    ) -> tuple[Sequence[Lesson], Sequence[Lesson]]:
        """The lessons that fit, and further ones that hold whatever is asked."""
        stores = self._stores(personal=personal)
        query = self._query(asked, self.settings.top_k)
        fit = [hit.bullet for hit in self._best(stores, query, resting=False, related=True)]
        further = self._general(stores, working=working, known={each.id for each in fit})
        versions = _versions_in(stores, [each.id for each in (*fit, *further)])
        lessons = [
            Lesson(id=each.id, version=versions.get(each.id, 1), text=each.content)
            for each in (*fit, *further)
        ]
        return lessons[: len(fit)], lessons[len(fit) :]

    def _general(
        self, stores: Sequence[KeepsBullets], *, working: bool, known: AbstractSet[str]
    ) -> Sequence[Bullet]:
        """Those that hold whatever is asked, the ones that helped most first; without those that are `known`."""
        sections = FOR_ALL_WORK if working else FOR_EVERYTHING
        most, least = GENERAL + len(known), self.settings.min_confidence
        found = [
            each for store in stores for each in store.general(sections, most, least) if each.id not in known
        ]
        return sorted(found, key=lambda each: each.harmful - each.helpful)[:GENERAL]

    def _query(self, asked: str, most: int) -> SearchQuery:
        from daiku.domain.playbook import SearchQuery  # when used

        return SearchQuery(query_text=asked, top_k=most, min_confidence=self.settings.min_confidence)

    def load(self) -> Playbook:
        """All that they hold, as one playbook."""
        from daiku.domain.playbook import Playbook  # when used

        return Playbook(bullets=tuple(each for store in self._stores() for each in store.load().bullets))

    def hits(self, query: SearchQuery) -> Sequence[BulletHit]:
        """The active bullets of both playbooks that fit best, whether or not they have to do with it. Raises DaikuError."""
        return self._best(self._stores(), query, resting=False, related=False)

    def _best(
        self, stores: Sequence[KeepsBullets], query: SearchQuery, *, resting: bool, related: bool
    ) -> Sequence[BulletHit]:
        """Return the active bullets of `stores` that fit best; `related`: none that has nothing to do with the question.
        Raises DaikuError."""
        if not stores:
            return ()
        with self._alone:
            finder = self.finder()
            hits = [finder.search(query, store, resting=resting, related=related) for store in stores]
            best = _best_of(finder, query, [found for found in hits if found], resting=resting)
        return [hit for hit in best if hit.bullet.active]

    def versions(self, ids: Sequence[str]) -> Mapping[str, int]:
        """The version of each of these bullets."""
        return _versions_in(self._stores(), ids) if ids else {}

    def _stores(self, *, personal: bool = True) -> list[KeepsBullets]:
        """Those in which there is anything."""
        with self._alone:
            repository, user = self.kept()
        both = (repository, user if personal else None)
        return [store for store in both if store is not None and store.revision()]


def _versions_in(stores: Sequence[KeepsBullets], ids: Sequence[str]) -> Mapping[str, int]:
    return {id_: version for store in stores for id_, version in store.versions(ids).items()}


def playbooks_in(database: Database, roots: tuple[Path, ...], config: Config, *, trusted: bool) -> Playbooks:
    """The playbooks of these folders in a database; that of their repository only where the person trusts it."""

    @cache
    def opened() -> Kept:
        from daiku.playbook.repository import open_playbooks  # when used

        found = open_playbooks(database, roots if trusted else ())  # else its .git is not even read
        return Kept(found.repository, found.user)

    def kept() -> Kept:
        """What there is. Where nobody learnt anything yet no table is made, and no history of a repository is read."""
        learnt = database.has("playbooks") and database.first("SELECT 1 FROM playbooks LIMIT 1")
        return opened() if learnt else Kept(None, None)

    return Playbooks(config.playbook, kept, searching(config))


def searching(config: Config) -> Callable[[], PlaybookSearch]:
    """Gives the search that the settings ask for: made when it is first called, the same one each time after. Calling it
    raises UsageError."""

    @cache
    def made() -> PlaybookSearch:
        from daiku.playbook.search import search_of  # when used

        return search_of(config)

    return made


def _best_of(
    finder: FindsBullets, query: SearchQuery, found: Sequence[list[BulletHit]], *, resting: bool
) -> Sequence[BulletHit]:
    """The best of what was found in each playbook. Scores say how well a bullet fits among those beside it: what comes
    from two playbooks is looked through once more as one."""
    if len(found) < 2:
        return found[0] if found else ()
    from daiku.domain.playbook import Playbook  # when used

    together = Playbook(bullets=tuple(hit.bullet for hits in found for hit in hits))
    return finder.search(query, together, resting=resting)


def _found(hit: BulletHit, version: int) -> FoundLesson:
    bullet = hit.bullet
    return FoundLesson(
        Lesson(id=bullet.id, version=version, text=bullet.content),
        section=bullet.section,
        score=hit.combined_score,
        resting=hit.resting,
    )


def _chosen(fit: Sequence[Lesson], general: Sequence[Lesson], budget: int, most: int) -> tuple[Lesson, ...]:
    """At most so many of both within the budget; those that fit come first, and leave some room to the others."""
    kept = _within(general[: max(min(GENERAL_KEPT, most // 2), most - len(fit))], budget // PART_FOR_GENERAL)
    left = budget - (estimate(render_lessons(kept)) if kept else 0)
    return _within((*_within(fit[: most - len(kept)], left), *kept), budget)


def _within(lessons: Sequence[Lesson], budget: int) -> tuple[Lesson, ...]:
    """The first ones that fit, whole; one that is too long leaves its room to those after it."""
    chosen: tuple[Lesson, ...] = ()
    for each in lessons:
        more = (*chosen, each)
        if estimate(render_lessons(more)) <= budget:
            chosen = more
    return chosen


def _in_short(question: str) -> str:
    half = LONGEST_QUESTION // 2
    return question if len(question) <= LONGEST_QUESTION else f"{question[:half]}\n{question[-half:]}"
