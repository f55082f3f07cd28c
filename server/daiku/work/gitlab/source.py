"""GitLab as a source of items, by python-gitlab: issues and merge requests of the projects in the settings."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from pydantic import SecretStr

from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, ItemText
from daiku.domain.items.intents import ForgeIntent, Outcome
from daiku.domain.items.item import ItemKey, SourceName
from daiku.settings.config import GitLabSettings, WorkLabels
from daiku.texts.text import text
from daiku.work.answers import refused
from daiku.work.gitlab.apply import Applier
from daiku.work.gitlab.calls import Calls, Sleep
from daiku.work.gitlab.find import Finder
from daiku.work.gitlab.news import news_of
from daiku.work.gitlab.people import People
from daiku.work.gitlab.read import read_item
from daiku.work.gitlab.shapes import User
from daiku.work.gitlab.wire import Wire
from daiku.work.source import Check, CloneAccess, Strip, nothing_hidden, unchecked


class GitLabSource:
    """The port `Source` over one GitLab. The token is a person's, a project's or a group's."""

    def __init__(
        self,
        settings: GitLabSettings,
        token: SecretStr,
        labels: WorkLabels,
        strip: Strip = nothing_hidden,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._labels = labels
        self._strip = strip
        self._sleep = sleep
        self._wire = Wire(settings.api_url, token, clock)
        self._me: User | None = None
        self._finder = Finder(labels.todo, settings.bot, self._calls, self._people, clock)

    @property
    def name(self) -> SourceName:
        return "gitlab"

    def takes(self, key: ItemKey) -> bool:
        return key.source == self.name

    async def find(self) -> tuple[FoundItem, ...] | ForgeRefusal:
        return await self._finder.find(tuple(dict.fromkeys(self._settings.projects)))

    async def read(self, key: ItemKey) -> ItemText | ForgeRefusal:
        calls = self._calls(key.repository)
        people = await self._people(calls)
        if isinstance(people, ForgeRefusal):
            return people
        return await read_item(calls, people, key, self._labels.todo, self._strip)

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        calls = self._calls(key.repository)
        people = await self._people(calls)
        if isinstance(people, ForgeRefusal):
            return people
        return await news_of(calls, people, key, after, head, self._labels, self._settings.bot, self._strip)

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = unchecked
    ) -> Outcome | ForgeRefusal:
        calls = self._calls(key.repository)
        people = await self._people(calls)
        if isinstance(people, ForgeRefusal):
            return people
        return await Applier(calls.checked(check), people, key, self._labels).apply(operation, intent, again)

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess | ForgeRefusal:
        try:
            asked, ours = urlsplit(clone_url), urlsplit(self._wire.url)
            # The port may be another one. In the clear the token goes only where it goes to the API like that.
            safe = asked.scheme == "https" or (asked.scheme, ours.scheme) == ("http", "http")
            same = safe and asked.hostname == ours.hostname and not (asked.username or asked.password)
        except ValueError:
            same = False
        if not same:
            return refused("bad", text("gitlab.elsewhere", item=str(key)))
        return CloneAccess(url=clone_url, user="oauth2", secret=self._wire.token)

    async def aclose(self) -> None:
        await self._wire.aclose()

    def _calls(self, repository: str) -> Calls:
        return Calls(self._wire, repository, self._sleep)

    async def _people(self, calls: Calls) -> People | ForgeRefusal:
        if self._me is None:
            me = await calls.get(User, "//user")
            if isinstance(me, ForgeRefusal):
                return me
            self._me = me
        return People(calls, self._me)
