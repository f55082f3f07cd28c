"""GitHub as a source of items, by its REST and GraphQL interfaces."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from daiku.domain.items.forge import ForgeRefusal, FoundItem, ItemNews, ItemText
from daiku.domain.items.intents import ForgeIntent, Outcome
from daiku.domain.items.item import ItemKey, SourceName
from daiku.settings.config import GitHubSettings, WorkLabels
from daiku.texts.text import text
from daiku.work.github.app_auth import tokens_of
from daiku.work.github.calls import Calls, repository_path
from daiku.work.github.finding import Finder
from daiku.work.github.label_cache import LabelCache
from daiku.work.github.news import news_of
from daiku.work.github.reading import Account, read_item
from daiku.work.github.wire import SECONDS, Wire
from daiku.work.github.writing import Writer
from daiku.work.source import Check, CloneAccess, NewSecret, Strip, unchecked


class GitHubSource:
    """The labelled issues and pull requests of the repositories that the settings name."""

    def __init__(
        self,
        settings: GitHubSettings,
        labels: WorkLabels,
        environ: Mapping[str, str],
        new_secret: NewSecret,
        strip: Strip,
        client: httpx2.AsyncClient | None = None,
        cache: Path | None = None,
    ) -> None:
        self._settings = settings
        self._labels = labels
        self._strip = strip
        self._wire = Wire(
            settings.api_url, client or httpx2.AsyncClient(timeout=SECONDS, follow_redirects=False)
        )
        self._tokens = tokens_of(settings, environ, self._wire, new_secret)
        self._finder = Finder(self._calls, labels.todo, settings.bot, LabelCache(cache, labels.todo))
        self._us = ""

    @property
    def name(self) -> SourceName:
        return "github"

    def takes(self, key: ItemKey) -> bool:
        return key.source == self.name

    async def find(self) -> tuple[FoundItem, ...] | ForgeRefusal:
        named = tuple(r for r in self._settings.repositories if repository_path(r))
        return await self._finder.find(named)

    async def read(self, key: ItemKey) -> ItemText | ForgeRefusal:
        place = await self._place(key)
        if isinstance(place, ForgeRefusal):
            return place
        calls, account = place
        return await read_item(calls, key, self._labels.todo, account)

    async def news(self, key: ItemKey, after: str, head: str) -> ItemNews | ForgeRefusal:
        place = await self._place(key)
        if isinstance(place, ForgeRefusal):
            return place
        calls, account = place
        return await news_of(calls, key, after, head, self._labels, account)

    async def apply(
        self, key: ItemKey, operation: str, intent: ForgeIntent, again: bool, check: Check = unchecked
    ) -> Outcome | ForgeRefusal:
        place = await self._place(key)
        if isinstance(place, ForgeRefusal):
            return place
        calls, account = place
        checked = calls.checked(check)
        return await Writer(checked, key, self._labels, account.us).apply(operation, intent, again)

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess | ForgeRefusal:
        if not _is_of(self._settings.api_url, clone_url):
            return ForgeRefusal(kind="forbidden", message=text("github.other_host"))
        secret = await self._tokens.token(key.repository)
        if isinstance(secret, ForgeRefusal):
            return secret
        return CloneAccess(url=clone_url, user="x-access-token", secret=secret)

    async def aclose(self) -> None:
        await self._wire.aclose()

    def _calls(self, repository: str) -> Calls:
        return Calls(self._wire, self._tokens, repository)

    async def _place(self, key: ItemKey) -> tuple[Calls, Account] | ForgeRefusal:
        """The calls for the item's repository, which must be one of those that the settings name, and who we are there."""
        named = {repository.casefold() for repository in self._settings.repositories}
        if repository_path(key.repository) is None or key.repository.casefold() not in named:
            return ForgeRefusal(kind="forbidden", message=text("github.not_named"))
        calls = self._calls(key.repository)
        if not self._us:
            us = await calls.login()
            if isinstance(us, ForgeRefusal):
                return us
            self._us = us
        return calls, Account(self._settings.bot, self._us, self._strip)


def _is_of(api_url: str, clone_url: str) -> bool:
    """Whether `clone_url` lies where the API does: a token is given to nobody else. Only a forge on this machine is
    spoken to without TLS, and may have git on a port of its own."""
    api, clone = urlsplit(api_url), urlsplit(clone_url)
    if clone.username or clone.password or not clone.hostname or not api.hostname:
        return False
    if clone.hostname != api.hostname.removeprefix("api.") and clone.hostname != api.hostname:
        return False
    try:
        here = ip_address(clone.hostname).is_loopback
    except ValueError:
        here = clone.hostname == "localhost"
    if here:
        return clone.scheme == "https" or (clone.scheme, api.scheme) == ("http", "http")
    return clone.scheme == "https" and (clone.port or 443) == (api.port or 443)
