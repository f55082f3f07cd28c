"""Search for items to process: one call per repository if nothing is new."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from pydantic import Field, ValidationError

from daiku.dataclass import dataclass, field
from daiku.domain.base import Frozen
from daiku.domain.items.forge import PASSING, ForgeRefusal, FoundItem, RefusalKind
from daiku.domain.items.item import ItemKind
from daiku.items.forge.repository import ForgeRepository, ItemListing, Labelling
from daiku.items.forge.shapes import ForgeItem
from daiku.items.source import parse_time
from daiku.texts.text import NO_TEXT, text

logger = logging.getLogger(__name__)
_Number: TypeAlias = tuple[ItemKind, int]
"""Kind and number of an item. GitLab numbers issues and requests separately."""


class Labelled(Frozen):
    """Time of an item's label; valid until the item changes after `updated`."""

    updated: str
    labelled_at: str


class _Content(Frozen):
    """Content of the cache file: the label, and the items of each repository by number."""

    label: str = ""
    repositories: dict[str, dict[int, Labelled]] = Field(default_factory=dict[str, dict[int, Labelled]])


class LabelCache:
    """Cache of the times of `label`.

    The push access of a label's author is checked again at the claim. Without a path nothing is cached; a
    file that cannot be read or written is ignored.
    """

    def __init__(self, path: Path | None, label: str) -> None:
        self._path = path
        self._label = label

    def load(self, repository: str) -> Mapping[int, Labelled]:
        """Return the items of the repository by number."""
        return self._read().repositories.get(repository, {})

    def save(self, repository: str, items: Mapping[int, Labelled]) -> None:
        """Replace the items of the repository if they changed."""
        content = self._read()
        if self._path is None or content.repositories.get(repository, {}) == items:
            return
        new = _Content(label=self._label, repositories={**content.repositories, repository: dict(items)})
        part = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            part.write_text(new.model_dump_json(), "utf-8")
            part.replace(self._path)
        except OSError:
            part.unlink(missing_ok=True)

    def _read(self) -> _Content:
        try:
            content = _Content.model_validate_json(self._path.read_bytes()) if self._path else _Content()
        except (OSError, ValidationError):
            return _Content()
        return content if content.label == self._label else _Content()


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Seconds for which an accepted and a refused label stay valid while the item is unchanged."""

    trusted: float
    untrusted: float


@dataclass(frozen=True, slots=True)
class _Judgment:
    """The judgment of an item at its last change."""

    updated: str
    until: float
    item: FoundItem


@dataclass(slots=True)
class _LastListing:
    """The last listing of a repository.

    Its note, its judged items by kind and number, and why it was refused.
    """

    note: str = ""
    judged: Mapping[_Number, _Judgment] = field(default_factory=dict["_Number", "_Judgment"])
    refusal: RefusalKind | None = None


class Finder:
    """Finds open items with the label, assigned to the bot if one is set."""

    def __init__(
        self,
        open_repository: Callable[[str], ForgeRepository | ForgeRefusal],
        cache: LabelCache,
        lifetimes: Lifetimes,
        clock: Callable[[], float],
    ) -> None:
        self._open_repository = open_repository
        self._cache = cache
        self._lifetimes = lifetimes
        self._clock = clock
        self._seen: dict[str, _LastListing] = {}

    async def find(self, names: tuple[str, ...]) -> tuple[FoundItem, ...] | ForgeRefusal:
        """Return the items of all repositories, oldest label first.

        A repository that refuses is skipped and logged. Return a refusal if all refused, or if the forge asks
        for a pause.
        """
        items: list[FoundItem] = []
        refusals: list[ForgeRefusal] = []
        for name in names:
            last = self._seen.setdefault(name, _LastListing())
            repository = self._open_repository(name)
            refusal = (
                repository if isinstance(repository, ForgeRefusal) else await self._search(repository, last)
            )
            if refusal is None:
                items += (judged.item for judged in last.judged.values())
                last.refusal = None
            else:
                refusals.append(refusal)
                self._warn(name, last, refusal)
        limited = next((r for r in refusals if r.kind == "limited"), None)
        if limited is not None or (refusals and len(refusals) == len(names)):
            return limited or refusals[0]
        return tuple(sorted(items, key=lambda item: (parse_time(item.labelled_at), str(item.key))))

    def _warn(self, name: str, last: _LastListing, refusal: ForgeRefusal) -> None:
        """Log each new permanent refusal of a repository once."""
        kind = None if refusal.kind in PASSING else refusal.kind
        if kind is not None and last.refusal != kind:
            logger.warning("%s", text("forge.not_searched", name=name, why=refusal.message))
        last.refusal = kind

    async def _search(self, repository: ForgeRepository, last: _LastListing) -> ForgeRefusal | None:
        listed = await repository.list_items(last.note)
        if not isinstance(listed, ItemListing):
            return listed
        name = repository.calls.repository
        cached = self._cache.load(name)
        judged: dict[_Number, _Judgment] = {}
        for item in listed.items:
            if not _is_candidate(repository, item):
                continue
            previous = last.judged.get((item.kind, item.number))
            verdict = await self._judge(repository, item, previous, cached.get(item.number))
            if isinstance(verdict, ForgeRefusal):
                # The next search continues after the judged ones.
                self._cache.save(name, {**cached, **_as_labelled(judged)})
                last.judged = {**last.judged, **judged}
                return verdict
            judged[item.kind, item.number] = verdict
        self._cache.save(name, _as_labelled(judged))
        last.note, last.judged = listed.note, judged
        return None

    async def _judge(
        self,
        repository: ForgeRepository,
        item: ForgeItem,
        previous: _Judgment | None,
        cached: Labelled | None,
    ) -> _Judgment | ForgeRefusal:
        """Return the item, with a reason if the label's author must not order work."""
        now = self._clock()
        if previous is not None and previous.updated == item.updated_at and previous.until > now:
            return previous
        label = repository.account.labels.todo
        if cached is not None and cached.updated == item.updated_at:
            labelling = Labelling(cached.labelled_at, trusted=True)
        else:
            fresh = await repository.find_last_labelling(item, label)
            if isinstance(fresh, ForgeRefusal):
                return fresh
            labelling = fresh
        refused = NO_TEXT if labelling.trusted else text("forge.untrusted", label=label)
        key = repository.build_key(item)
        if refused and not (
            previous and previous.item.refused and previous.item.labelled_at == labelling.time
        ):
            logger.warning("%s: %s", key, refused)
        found = FoundItem(
            key=key, title=item.title, url=item.url, labelled_at=labelling.time, refused=refused
        )
        lifetime = self._lifetimes.trusted if labelling.trusted else self._lifetimes.untrusted
        return _Judgment(item.updated_at, now + lifetime, found)


def _is_candidate(repository: ForgeRepository, item: ForgeItem) -> bool:
    bot = repository.account.bot
    labelled = repository.has_label(item, repository.account.labels.todo)
    return item.is_open and labelled and (not bot or item.is_assigned_to(bot))


def _as_labelled(judged: Mapping[_Number, _Judgment]) -> dict[int, Labelled]:
    """Return the accepted labels for the cache. Refused ones are judged again after a restart."""
    return {
        number: Labelled(updated=judgment.updated, labelled_at=judgment.item.labelled_at)
        for (_, number), judgment in judged.items()
        if not judgment.item.refused
    }
