"""What a run would be told with a change that waits, and what without it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from daiku.core.playbook.gate.with_change import with_delta
from daiku.core.playbook.refused import Refused
from daiku.dataclass import dataclass
from daiku.domain.held import Lesson
from daiku.domain.playbook import Bullet, Delta, Playbook, PlaybookScope, confidence
from daiku.playbook.playbooks import FindsBullets, Kept, Playbooks
from daiku.playbook.store import PlaybookStore
from daiku.settings.config import PlaybookSettings


@dataclass(frozen=True, slots=True)
class AsIf:
    """A playbook as a value, looked into like a kept one."""

    playbook: Playbook
    known: Mapping[str, int]
    """The versions of the bullets that are kept."""

    def revision(self) -> int:
        return len(self.playbook.bullets)

    def load(self) -> Playbook:
        return self.playbook

    def versions(self, ids: Sequence[str]) -> Mapping[str, int]:
        here = {each.id for each in self.playbook.bullets}
        return {name: self.known.get(name, 1) for name in ids if name in here}

    def general(self, sections: Collection[str], most: int, least: float) -> Sequence[Bullet]:
        fit = (
            each
            for each in self.playbook.bullets
            if each.active and each.section in sections and confidence(each) >= least
        )
        return sorted(fit, key=lambda each: each.harmful - each.helpful)[:most]


@dataclass(frozen=True, slots=True)
class Told:
    """The lessons that a run would be told, in both cases."""

    with_it: tuple[Lesson, ...]
    without: tuple[Lesson, ...]

    @property
    def differs(self) -> bool:
        """Whether the change makes any difference to the run; a trial of one that does not would cost and show nothing."""
        return [each.text for each in self.with_it] != [each.text for each in self.without]


@dataclass(frozen=True, slots=True)
class Arms:
    """The playbooks with a change and without it."""

    with_it: Playbooks
    without: Playbooks

    async def told(self, question: str) -> Told:
        """What a run is told that is asked this, and that may change files as all those on record did. Raises DaikuError."""
        return Told(
            await self.with_it.recall(question, working=True),
            await self.without.recall(question, working=True),
        )


def arms_of(
    stores: Mapping[PlaybookScope, PlaybookStore],
    delta: Delta,
    settings: PlaybookSettings,
    finder: Callable[[], FindsBullets],
) -> Arms | Refused:
    """Both for a change of one of `stores`, as they are now; why it cannot be made where it cannot. Both are looked through
    as values: what differs is the change alone."""
    now: dict[PlaybookScope, Playbook] = {scope: store.load() for scope, store in stores.items()}
    changed = with_delta(now[delta.scope], delta)
    if isinstance(changed, Refused):
        return changed
    versions = {
        scope: dict(store.versions([each.id for each in now[scope].bullets]))
        for scope, store in stores.items()
    }

    def playbooks(books: Mapping[PlaybookScope, Playbook]) -> Playbooks:
        views = {scope: AsIf(book, versions[scope]) for scope, book in books.items()}
        kept, found = Kept(views.get("repository"), views.get("user")), finder()
        return Playbooks(settings, lambda: kept, lambda: found)

    return Arms(playbooks({**now, delta.scope: changed}), playbooks(now))
