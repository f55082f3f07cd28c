"""GitHub as a source of items, through its REST and GraphQL APIs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from math import inf
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import ItemKey
from daiku.items.forge.calls import ApiAccess, RepositoryCalls
from daiku.items.forge.finding import Lifetimes
from daiku.items.forge.shapes import User
from daiku.items.forge.source import ForgeSource
from daiku.items.forge.wire import Wire
from daiku.items.github.app_auth import create_tokens, sign
from daiku.items.github.repository import GitHubRepository, find_login
from daiku.items.source import CloneAccess, NewSecret, Strip, build_refusal
from daiku.settings.config import GitHubSettings, WorkLabels
from daiku.texts.text import text


class GitHubSource(ForgeSource):
    """The `ItemSource` port for one GitHub, with a token of the environment or of an App."""

    source = "github"
    lifetimes = Lifetimes(trusted=inf, untrusted=inf)
    names = re.compile(r"(?!\.)[A-Za-z0-9_.-]{1,100}/(?!\.\.?$)[A-Za-z0-9_.-]{1,100}")

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
        wire = Wire("GitHub", settings.api_url, client)
        self._tokens = create_tokens(settings, environ, wire, new_secret)
        super().__init__(wire, settings.repositories, settings.bot, labels, strip, cache=cache)

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess | ForgeRefusal:
        if not _is_same_host(self._wire.api_url, clone_url):
            return build_refusal("forbidden", text("forge.elsewhere", item=str(key)))
        secret = await self._tokens.token(key.repository)
        if isinstance(secret, ForgeRefusal):
            return secret
        return CloneAccess(url=clone_url, user="x-access-token", secret=secret)

    def api_access(self, repository: str) -> ApiAccess:
        return ApiAccess(self._wire, self._tokens.token, sign, repository, f"/repos/{repository}")

    def open_repository(self, calls: RepositoryCalls) -> GitHubRepository:
        return GitHubRepository(calls, self._account, self._tokens)

    async def ask_who(self, calls: RepositoryCalls) -> User | ForgeRefusal:
        login = await self._tokens.login()
        if login is None:
            return await find_login(calls)
        return login if isinstance(login, ForgeRefusal) else User(login=login)


def _is_same_host(api_url: str, clone_url: str) -> bool:
    """Return True if `clone_url` is on the API's host: other hosts must not get the token.

    Only a forge on this machine may use plain HTTP, or another port for git.
    """
    api, clone = urlsplit(api_url), urlsplit(clone_url)
    if clone.username or clone.password or not clone.hostname or not api.hostname:
        return False
    if clone.hostname != api.hostname.removeprefix("api.") and clone.hostname != api.hostname:
        return False
    try:
        is_local = ip_address(clone.hostname).is_loopback
    except ValueError:
        is_local = clone.hostname == "localhost"
    if is_local:
        return clone.scheme == "https" or (clone.scheme, api.scheme) == ("http", "http")
    return clone.scheme == "https" and (clone.port or 443) == (api.port or 443)
