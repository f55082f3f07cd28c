"""Tokens: one from the environment, or those of a GitHub App, each made for an hour and renewed before it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gidgethub.apps import get_jwt
from jwt.exceptions import PyJWTError
from pydantic import SecretStr

from daiku.dataclass import dataclass
from daiku.domain.items.forge import ForgeRefusal
from daiku.settings.config import GitHubSettings
from daiku.texts.text import text
from daiku.work.answers import AnyShape, Shape, moment
from daiku.work.github.calls import Tokens
from daiku.work.github.wire import Method, Wire, unreadable
from daiku.work.source import NewSecret

EARLY_SECONDS = 300.0
"""A token is renewed this long before it ends: a push with it may take a while."""
JWT_SECONDS = 540
"""How long a token of the App itself holds; GitHub takes no longer one than ten minutes."""


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
            made.token, moment(made.expires_at).timestamp(), made.permissions.get("contents") == "write"
        )
        self._held[owner] = granted
        return granted

    async def _as_app(self, shape: type[AnyShape], method: Method, path: str) -> AnyShape | ForgeRefusal:
        try:
            jwt = get_jwt(
                app_id=str(self._app_id), private_key=self._key.get_secret_value(), expiration=JWT_SECONDS
            )
        except (PyJWTError, ValueError, TypeError):
            return ForgeRefusal(kind="forbidden", message=text("github.bad_key"))
        answer = await self._wire.call(method, path, jwt=jwt)
        if isinstance(answer, ForgeRefusal):
            return answer
        try:
            return shape.model_validate(answer.data)
        except ValueError:
            return unreadable()


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
