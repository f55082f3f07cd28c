"""Search for items that are to be processed: one call a repository while nothing is new."""

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
from daiku.items.answers import parse_time
from daiku.items.forge.repository import Labelling, Listed, Repository
from daiku.items.forge.shapes import Item
from daiku.texts.text import NO_TEXT, text

logger = logging.getLogger(__name__)
_Number: TypeAlias = tuple[ItemKind, int]
"""GitLab counts issues and requests apart."""


class Labelled(Frozen):
    """Time of an item's label; valid until the item changes again after `updated`."""

    updated: str
    labelled_at: str


class _Content(Frozen):
    """Content of the file: the label that is looked for, and the items of each repository by number."""

    label: str = ""
    repositories: dict[str, dict[int, Labelled]] = Field(default_factory=dict[str, dict[int, Labelled]])


class LabelCache:
    """Cache of the times of `label`. The push access of a label's author is checked again when an item is claimed.
    Without a path nothing is cached; a file that cannot be read or written is ignored."""

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
    """Seconds for which an accepted and a refused label hold while the item's time of change stays the same."""

    trusted: float
    untrusted: float


@dataclass(frozen=True, slots=True)
class _Judged:
    """An item as it was judged when it was changed last."""

    updated: str
    until: float
    found: FoundItem


@dataclass(slots=True)
class _Seen:
    """The last listing of a repository: its note, its items by kind and number, and why it was refused."""

    note: str = ""
    judged: Mapping[_Number, _Judged] = field(default_factory=dict["_Number", "_Judged"])
    refusal: RefusalKind | None = None


class Finder:
    """Finds open items with the label, assigned to the bot if one is set."""

    def __init__(
        self,
        open_repository: Callable[[str], Repository | ForgeRefusal],
        cache: LabelCache,
        lifetimes: Lifetimes,
        clock: Callable[[], float],
    ) -> None:
        self._open_repository = open_repository
        self._cache = cache
        self._lifetimes = lifetimes
        self._clock = clock
        self._seen: dict[str, _Seen] = {}

    async def find(self, names: tuple[str, ...]) -> tuple[FoundItem, ...] | ForgeRefusal:
        """Return the items of all repositories, oldest label first. One that refuses is skipped with a line in the log;
        return a refusal if every one refused, or the forge asks for a pause."""
        found: list[FoundItem] = []
        refusals: list[ForgeRefusal] = []
        for name in names:
            seen = self._seen.setdefault(name, _Seen())
            repository = self._open_repository(name)
            wrong = repository if isinstance(repository, ForgeRefusal) else await self._look(repository, seen)
            if wrong is None:
                found += (judged.found for judged in seen.judged.values())
                seen.refusal = None
            else:
                refusals.append(wrong)
                self._warn(name, seen, wrong)
        limited = next((each for each in refusals if each.kind == "limited"), None)
        if limited is not None or (refusals and len(refusals) == len(names)):
            return limited or refusals[0]
        return tuple(sorted(found, key=lambda item: (parse_time(item.labelled_at), str(item.key))))

    def _warn(self, name: str, seen: _Seen, refusal: ForgeRefusal) -> None:
        """Log each new refusal of a repository once; one that passes is none."""
        kind = None if refusal.kind in PASSING else refusal.kind
        if kind is not None and seen.refusal != kind:
            logger.warning("%s", text("forge.not_searched", name=name, why=refusal.message))
        seen.refusal = kind

    async def _look(self, repository: Repository, seen: _Seen) -> ForgeRefusal | None:
        listed = await repository.list_items(seen.note)
        if not isinstance(listed, Listed):
            return listed
        name = repository.calls.repository
        cached = self._cache.load(name)
        judged: dict[_Number, _Judged] = {}
        for item in listed.items:
            if not _is_meant(repository, item):
                continue
            known = seen.judged.get((item.kind, item.number))
            verdict = await self._judge(repository, item, known, cached.get(item.number))
            if isinstance(verdict, ForgeRefusal):
                # The next look goes on behind those that were judged.
                self._cache.save(name, {**cached, **_as_labelled(judged)})
                seen.judged = {**seen.judged, **judged}
                return verdict
            judged[item.kind, item.number] = verdict
        self._cache.save(name, _as_labelled(judged))
        seen.note, seen.judged = listed.note, judged
        return None

    async def _judge(
        self, repository: Repository, item: Item, known: _Judged | None, cached: Labelled | None
    ) -> _Judged | ForgeRefusal:
        """Return the item, with a reason if the author of its label may not order work."""
        now = self._clock()
        if known is not None and known.updated == item.updated_at and known.until > now:
            return known
        label = repository.account.labels.todo
        if cached is not None and cached.updated == item.updated_at:
            labelling = Labelling(cached.labelled_at, trusted=True)
        else:
            fresh = await repository.last_labelling(item, label)
            if isinstance(fresh, ForgeRefusal):
                return fresh
            labelling = fresh
        why = NO_TEXT if labelling.trusted else text("forge.untrusted", label=label)
        key = repository.key_of(item)
        if why and not (known and known.found.refused and known.found.labelled_at == labelling.time):
            logger.warning("%s: %s", key, why)
        found = FoundItem(key=key, title=item.title, url=item.url, labelled_at=labelling.time, refused=why)
        lifetime = self._lifetimes.trusted if labelling.trusted else self._lifetimes.untrusted
        return _Judged(item.updated_at, now + lifetime, found)


def _is_meant(repository: Repository, item: Item) -> bool:
    bot = repository.account.bot
    labelled = repository.has_label(item, repository.account.labels.todo)
    return item.is_open and labelled and (not bot or item.is_assigned_to(bot))


def _as_labelled(judged: Mapping[_Number, _Judged]) -> dict[int, Labelled]:
    """Return the accepted labels for the cache. Refused ones are judged again by the next start."""
    return {
        number: Labelled(updated=each.updated, labelled_at=each.found.labelled_at)
        for (_, number), each in judged.items()
        if not each.found.refused
    }
