"""GitLab as a source of items: issues and merge requests of the projects in the settings."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from urllib.parse import quote, urlsplit

from pydantic import SecretStr

from daiku.domain.items.forge import ForgeRefusal
from daiku.domain.items.item import ItemKey
from daiku.items.forge.calls import ApiAccess, RepositoryCalls, Sleep
from daiku.items.forge.finding import Lifetimes
from daiku.items.forge.shapes import User
from daiku.items.forge.source import ForgeSource
from daiku.items.forge.wire import Wire
from daiku.items.gitlab.repository import GitLabRepository
from daiku.items.source import CloneAccess, Strip, build_refusal, strip_nothing
from daiku.settings.config import GitLabSettings, WorkLabels
from daiku.texts.text import text

_VERSION = re.compile(r"/api/v4/*$")


class GitLabSource(ForgeSource):
    """The `ItemSource` port for one GitLab, with a token of a user, a project or a group."""

    source = "gitlab"
    lifetimes = Lifetimes(trusted=600.0, untrusted=120.0)
    """GitLab updates an item's time at most once a minute, so a label set again is noticed a little later."""
    names = re.compile(r"[\w.+-]{1,255}(?:/[\w.+-]{1,255}){1,20}")

    def __init__(
        self,
        settings: GitLabSettings,
        token: SecretStr,
        labels: WorkLabels,
        strip: Strip = strip_nothing,
        sleep: Sleep = asyncio.sleep,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._token = token
        wire = Wire("GitLab", _VERSION.sub("", settings.api_url.rstrip("/")) + "/api/v4", clock=clock)
        super().__init__(wire, settings.projects, settings.bot, labels, strip, sleep=sleep, clock=clock)

    async def access(self, key: ItemKey, clone_url: str) -> CloneAccess | ForgeRefusal:
        try:
            clone, api = urlsplit(clone_url), urlsplit(self._wire.api_url)
            # The port may differ. Plain HTTP is allowed only if the API uses it too.
            safe = clone.scheme == "https" or (clone.scheme, api.scheme) == ("http", "http")
            same = safe and clone.hostname == api.hostname and not (clone.username or clone.password)
        except ValueError:
            same = False
        if not same:
            return build_refusal("bad", text("forge.elsewhere", item=str(key)))
        return CloneAccess(url=clone_url, user="oauth2", secret=self._token)

    def api_access(self, repository: str) -> ApiAccess:
        root = f"/projects/{quote(repository, safe='')}"
        return ApiAccess(
            self._wire, self._find_token, lambda secret: {"PRIVATE-TOKEN": secret}, repository, root
        )

    def open_repository(self, calls: RepositoryCalls) -> GitLabRepository:
        return GitLabRepository(calls, self._account)

    async def ask_who(self, calls: RepositoryCalls) -> User | ForgeRefusal:
        return await calls.get(User, "//user")

    async def _find_token(self, _repository: str) -> SecretStr | ForgeRefusal:
        return self._token
