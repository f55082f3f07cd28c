"""A forge as a source of items: the shared part of GitHub and GitLab."""

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
from daiku.items.forge.calls import ApiAccess, RepositoryCalls, Sleep
from daiku.items.forge.finding import Finder, LabelCache, Lifetimes
from daiku.items.forge.news import read_item, read_news
from daiku.items.forge.repository import Account, ForgeRepository
from daiku.items.forge.shapes import User
from daiku.items.forge.wire import Wire
from daiku.items.forge.writing import Writer
from daiku.items.source import Check, Strip, no_check
from daiku.settings.config import WorkLabels
from daiku.texts.text import text


class ForgeSource(ABC):
    """The labeled issues and requests of the repositories in the settings."""

    source: ClassVar[SourceName]
    lifetimes: ClassVar[Lifetimes]
    names: ClassVar[re.Pattern[str]]
    """Pattern of a repository's name."""

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
        repository = await self._open_for(key)
        return repository if isinstance(repository, ForgeRefusal) else await read_item(repository, key)

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        repository = await self._open_for(key)
        return (
            repository
            if isinstance(repository, ForgeRefusal)
            else await read_news(repository, key, after, head)
        )

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = no_check
    ) -> Outcome | ForgeRefusal:
        repository = await self._open_for(key, check)
        if isinstance(repository, ForgeRefusal):
            return repository
        return await Writer(repository, key).apply(operation, intent, again)

    async def aclose(self) -> None:
        await self._wire.aclose()

    @abstractmethod
    def api_access(self, repository: str) -> ApiAccess:
        """Return how requests about `repository` are made."""

    @abstractmethod
    def open_repository(self, calls: RepositoryCalls) -> ForgeRepository: ...

    @abstractmethod
    async def ask_who(self, calls: RepositoryCalls) -> User | ForgeRefusal:
        """Return the token's account."""

    def _repository(self, name: str, check: Check = no_check) -> ForgeRepository | ForgeRefusal:
        if self.names.fullmatch(name) is None:
            return build_refusal("bad", text("forge.no_name", name=name))
        return self.open_repository(RepositoryCalls(self.api_access(name), self._sleep, check))

    async def _open_for(self, key: ItemKey, check: Check = no_check) -> ForgeRepository | ForgeRefusal:
        """Return the item's repository, which must be in the settings, with Daiku's account there."""
        if key.repository.casefold() not in {name.casefold() for name in self._repositories}:
            return build_refusal("forbidden", text("forge.not_named", name=key.repository))
        repository = self._repository(key.repository, check)
        if isinstance(repository, ForgeRefusal):
            return repository
        return await repository.identify() or repository

    async def _find_me(self, calls: RepositoryCalls) -> User | ForgeRefusal:
        if self._me is None:
            me = await self.ask_who(calls)
            if isinstance(me, ForgeRefusal):
                return me
            self._me = me
        return self._me
