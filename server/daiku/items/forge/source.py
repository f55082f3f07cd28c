"""A forge as a source of items: what GitHub and GitLab do alike for the worker."""

from __future__ import annotations

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, ItemText
from daiku.domain.items.intents import ForgeIntent, Outcome
from daiku.domain.items.item import ItemKey, SourceName
from daiku.items.answers import build_refusal
from daiku.items.forge.calls import Calls, Entrance, Sleep
from daiku.items.forge.finding import Finder, LabelCache, Lifetimes
from daiku.items.forge.news import news_of
from daiku.items.forge.reading import read_item
from daiku.items.forge.repository import Account, Repository
from daiku.items.forge.shapes import User
from daiku.items.forge.wire import Wire
from daiku.items.forge.writing import Writer
from daiku.items.source import Check, Strip, unchecked
from daiku.settings.config import WorkLabels
from daiku.texts.text import text


class ForgeSource(ABC):
    """The labelled issues and requests of the repositories that the settings name."""

    source: ClassVar[SourceName]
    lifetimes: ClassVar[Lifetimes]
    names: ClassVar[re.Pattern[str]]
    """What can be the name of a repository."""

    def __init__(
        self,
        wire: Wire,
        repositories: tuple[str, ...],
        bot: str,
        labels: WorkLabels,
        strip: Strip,
        *,
        cache: Path | None = None,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._wire = wire
        self._repositories = tuple(dict.fromkeys(repositories))
        self._sleep = sleep
        self._me: User | None = None
        self._account = Account(bot, labels, strip, self._find_me)
        cached = LabelCache(cache, labels.todo)
        self._finder = Finder(self._repository, cached, self.lifetimes, clock)

    @property
    def name(self) -> SourceName:
        return self.source

    def takes(self, key: ItemKey) -> bool:
        return key.source == self.name

    async def find(self) -> tuple[FoundItem, ...] | ForgeRefusal:
        return await self._finder.find(self._repositories)

    async def read(self, key: ItemKey) -> ItemText | ForgeRefusal:
        place = await self._place(key)
        return place if isinstance(place, ForgeRefusal) else await read_item(place, key)

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        place = await self._place(key)
        return place if isinstance(place, ForgeRefusal) else await news_of(place, key, after, head)

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = unchecked
    ) -> Outcome | ForgeRefusal:
        place = await self._place(key, check)
        if isinstance(place, ForgeRefusal):
            return place
        return await Writer(place, key).apply(operation, intent, again)

    async def aclose(self) -> None:
        await self._wire.aclose()

    @abstractmethod
    def entrance(self, repository: str) -> Entrance:
        """Return how requests about `repository` are made."""

    @abstractmethod
    def open_repository(self, calls: Calls) -> Repository: ...

    @abstractmethod
    async def ask_who(self, calls: Calls) -> User | ForgeRefusal:
        """Ask whose token it is."""

    def _repository(self, name: str, check: Check = unchecked) -> Repository | ForgeRefusal:
        if self.names.fullmatch(name) is None:
            return build_refusal("bad", text("forge.no_name", name=name))
        return self.open_repository(Calls(self.entrance(name), self._sleep, check))

    async def _place(self, key: ItemKey, check: Check = unchecked) -> Repository | ForgeRefusal:
        """Return the item's repository, which must be one that the settings name, and find out who we are there."""
        if key.repository.casefold() not in {name.casefold() for name in self._repositories}:
            return build_refusal("forbidden", text("forge.not_named", name=key.repository))
        repository = self._repository(key.repository, check)
        if isinstance(repository, ForgeRefusal):
            return repository
        return await repository.identify() or repository

    async def _find_me(self, calls: Calls) -> User | ForgeRefusal:
        if self._me is None:
            me = await self.ask_who(calls)
            if isinstance(me, ForgeRefusal):
                return me
            self._me = me
        return self._me
