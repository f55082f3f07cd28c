"""Tokens for GitHub: one from the environment, or those of an App, valid for an hour and renewed early."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import jwt
from pydantic import SecretStr

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.items.forge.wire import Method, Wire
from daiku.items.source import AnyShape, NewSecret, Shape, parse_one, parse_time
from daiku.settings.config import GitHubSettings
from daiku.texts.text import text

EARLY_SECONDS = 300.0
"""Seconds before its end at which a token is renewed, as a push may take a while."""
JWT_SECONDS = 480
"""Lifetime of the App's JWT in seconds; GitHub accepts at most ten minutes from `iat`."""
CLOCK_SKEW = 60
"""Seconds by which `iat` is in the past: GitHub refuses a time ahead of its clock."""
VERSION = "2022-11-28"


class Tokens(Protocol):
    """A provider of repository tokens and of their account."""

    async def token(self, repository: str) -> SecretStr | ForgeRefusal: ...

    async def login(self) -> str | ForgeRefusal | None:
        """Return the token's login, if it is known without a call with the token."""
        ...

    async def may_push(self, repository: str) -> bool | None:
        """Return True if the token can push; None if that is unknown without a call."""
        ...


class _Installation(Shape):
    id: int


class _App(Shape):
    slug: str


class _GrantedToken(Shape):
    token: SecretStr
    expires_at: str
    permissions: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class _CachedToken:
    token: SecretStr
    until: float
    may_push: bool


class EnvironmentToken:
    """The token in an environment variable."""

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
    """The tokens of an App's installations, by the repository's owner."""

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
        self._cache: dict[str, _CachedToken] = {}
        self._login = ""

    async def token(self, repository: str) -> SecretStr | ForgeRefusal:
        cached = await self._get_token(repository)
        return cached if isinstance(cached, ForgeRefusal) else cached.token

    async def may_push(self, repository: str) -> bool | None:
        cached = await self._get_token(repository)
        return None if isinstance(cached, ForgeRefusal) else cached.may_push

    async def login(self) -> str | ForgeRefusal | None:
        if not self._login:
            app = await self._as_app(_App, "GET", "/app")
            if isinstance(app, ForgeRefusal):
                return app
            self._login = f"{app.slug}[bot]"
        return self._login

    async def _get_token(self, repository: str) -> _CachedToken | ForgeRefusal:
        owner = repository.partition("/")[0].casefold()
        cached = self._cache.get(owner)
        if cached is not None and cached.until - EARLY_SECONDS > self._clock():
            return cached
        number = self._installation_id
        if not number:
            installation = await self._as_app(_Installation, "GET", f"/repos/{repository}/installation")
            if isinstance(installation, ForgeRefusal):
                return installation
            number = installation.id
        # Asking again is harmless: an unseen token expires within the hour.
        granted_token = await self._as_app(
            _GrantedToken, "POST", f"/app/installations/{number}/access_tokens"
        )
        if isinstance(granted_token, ForgeRefusal):
            return granted_token
        self._new_secret(granted_token.token.get_secret_value())
        granted = _CachedToken(
            granted_token.token,
            parse_time(granted_token.expires_at).timestamp(),
            granted_token.permissions.get("contents") == "write",
        )
        self._cache[owner] = granted
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
        return parse_one(shape, answer.data) or self._wire.build_unreadable()


def sign(token: str) -> Mapping[str, str]:
    """Return the headers of a request with a token of a user or an installation, or a JWT of an App."""
    return {
        "accept": "application/vnd.github+json",
        "authorization": f"Bearer {token}",
        "x-github-api-version": VERSION,
    }


def create_tokens(
    settings: GitHubSettings, environ: Mapping[str, str], wire: Wire, new_secret: NewSecret
) -> Tokens:
    """Return the App's tokens if one is configured, else the environment's."""
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
