"""Tokens: one from the environment, or those of a GitHub App, each made for an hour and renewed before it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import jwt
from pydantic import SecretStr

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.items.answers import AnyShape, Shape, parse_one, parse_time
from daiku.items.forge.wire import Method, Wire
from daiku.items.source import NewSecret
from daiku.settings.config import GitHubSettings
from daiku.texts.text import text

EARLY_SECONDS = 300.0
"""A token is renewed this long before it ends: a push with it may take a while."""
JWT_SECONDS = 480
"""Lifetime of the App's own token in seconds; GitHub takes at most ten minutes, from `iat` on."""
CLOCK_SKEW = 60
"""Seconds by which `iat` lies in the past: GitHub refuses a time that is ahead of its clock."""
VERSION = "2022-11-28"


class Tokens(Protocol):
    """Where the token for a repository comes from, and whose it is."""

    async def token(self, repository: str) -> SecretStr | ForgeRefusal: ...

    async def login(self) -> str | ForgeRefusal | None:
        """Return who we are, if that is known without asking with the token."""
        ...

    async def may_push(self, repository: str) -> bool | None:
        """Return True if the token can push, if that is known without asking the repository."""
        ...


class _Installation(Shape):
    id: int


class _App(Shape):
    slug: str


class _Granted(Shape):
    token: SecretStr
    expires_at: str
    permissions: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class _Held:
    token: SecretStr
    until: float
    may_push: bool


class EnvironmentToken:
    """The token that a variable of the environment holds."""

    def __init__(self, name: str, environ: Mapping[str, str], new_secret: NewSecret) -> None:
        self._name = name
        self._token = SecretStr(environ.get(name, "").strip())
        if self._token:
            new_secret(self._token.get_secret_value())

    async def token(self, repository: str) -> SecretStr | ForgeRefusal:
        if self._token:
            return self._token
        return ForgeRefusal(kind="forbidden", message=text("github.no_token", name=self._name))

    async def login(self) -> str | ForgeRefusal | None:
        return None

    async def may_push(self, repository: str) -> bool | None:
        return None


class AppTokens:
    """The tokens of an App's installations, by the owner of the repository."""

    def __init__(
        self,
        settings: GitHubSettings,
        key: SecretStr,
        wire: Wire,
        new_secret: NewSecret,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._app_id = settings.app_id
        self._installation_id = settings.installation_id
        self._key = key
        self._wire = wire
        self._new_secret = new_secret
        self._clock = clock
        self._held: dict[str, _Held] = {}
        self._login = ""

    async def token(self, repository: str) -> SecretStr | ForgeRefusal:
        held = await self._hold(repository)
        return held if isinstance(held, ForgeRefusal) else held.token

    async def may_push(self, repository: str) -> bool | None:
        held = await self._hold(repository)
        return None if isinstance(held, ForgeRefusal) else held.may_push

    async def login(self) -> str | ForgeRefusal | None:
        if not self._login:
            app = await self._as_app(_App, "GET", "/app")
            if isinstance(app, ForgeRefusal):
                return app
            self._login = f"{app.slug}[bot]"
        return self._login

    async def _hold(self, repository: str) -> _Held | ForgeRefusal:
        owner = repository.partition("/")[0].casefold()
        held = self._held.get(owner)
        if held is not None and held.until - EARLY_SECONDS > self._clock():
            return held
        number = self._installation_id
        if not number:
            found = await self._as_app(_Installation, "GET", f"/repos/{repository}/installation")
            if isinstance(found, ForgeRefusal):
                return found
            number = found.id
        # What may have been made unseen is another token that ends within the hour: to ask again does no harm.
        made = await self._as_app(_Granted, "POST", f"/app/installations/{number}/access_tokens")
        if isinstance(made, ForgeRefusal):
            return made
        self._new_secret(made.token.get_secret_value())
        granted = _Held(
            made.token, parse_time(made.expires_at).timestamp(), made.permissions.get("contents") == "write"
        )
        self._held[owner] = granted
        return granted

    async def _as_app(self, shape: type[AnyShape], method: Method, path: str) -> AnyShape | ForgeRefusal:
        now = int(time.time())
        claims = {"iat": now - CLOCK_SKEW, "exp": now + JWT_SECONDS, "iss": str(self._app_id)}
        try:
            signed = jwt.encode(claims, self._key.get_secret_value(), algorithm="RS256")
        except (jwt.PyJWTError, ValueError, TypeError):
            return ForgeRefusal(kind="forbidden", message=text("github.bad_key"))
        url = self._wire.api_url + path
        answer = await self._wire.call(method, url, sign(signed), secret=signed)
        if isinstance(answer, ForgeRefusal):
            return answer
        return parse_one(shape, answer.data) or self._wire.unreadable()


def sign(token: str) -> Mapping[str, str]:
    """Return the headers of a request with a token of a user or an installation, or a JWT of an App."""
    return {
        "accept": "application/vnd.github+json",
        "authorization": f"Bearer {token}",
        "x-github-api-version": VERSION,
    }


def tokens_of(
    settings: GitHubSettings, environ: Mapping[str, str], wire: Wire, new_secret: NewSecret
) -> Tokens:
    """Those of the App where one is set, else the one of the environment."""
    if not settings.app_id:
        return EnvironmentToken(settings.token_env, environ, new_secret)
    key = environ.get(settings.app_key_env, "").strip()
    if key and "-----BEGIN" not in key:
        try:
            key = Path(key).expanduser().read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            key = ""
    if key:
        new_secret(key)
    return AppTokens(settings, SecretStr(key), wire, new_secret)
