"""Daiku as a GitHub App: its tokens end within the hour, are made anew before, and are never written down."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from httpx2 import AsyncClient
from pydantic import SecretStr

from daiku.domain.items.forge import ForgeRefusal
from daiku.guard.rules.redact import Redactor
from daiku.items.forge.wire import Wire
from daiku.items.github.app_auth import AppTokens
from daiku.items.source import NewSecret
from daiku.settings.config import GitHubSettings
from tests.services.github.yard import APP, APP_ID, NAME, GitHubYard, own_tests_pass
from tests.work.github.desk import PROGRESS, Desk, labels, said

pytestmark = pytest.mark.slow


def minted(yard: GitHubYard) -> int:
    return sum(each.path.endswith("/access_tokens") for each in yard.proxy.received)


@asynccontextmanager
async def tokens_of(
    url: str, key: str, clock: Callable[[], float] = time.time, learn: NewSecret = lambda _: None
) -> AsyncGenerator[AppTokens]:
    settings = GitHubSettings(api_url=url, repositories=(NAME,), app_id=APP_ID)
    async with AsyncClient() as client:
        yield AppTokens(settings, SecretStr(key), Wire("GitHub", url, client), learn, clock)


async def test_a_token_is_made_anew_before_its_hour_is_over_and_each_is_hidden_from_then_on(
    yard: GitHubYard,
) -> None:
    ahead = 0.0
    hide = Redactor(())
    async with tokens_of(yard.url, yard.key, lambda: time.time() + ahead, hide.learn) as tokens:
        first = await tokens.token(NAME)
        assert isinstance(first, SecretStr)
        ahead = 54 * 60
        assert await tokens.token(NAME) == first
        assert minted(yard) == 1
        ahead = 56 * 60
        second = await tokens.token(NAME)
        assert isinstance(second, SecretStr)
        assert second != first
        assert minted(yard) == 2
        assert await tokens.may_push(NAME) is True
        assert await tokens.login() == APP
    for each in (first, second):
        value = each.get_secret_value()
        assert len(value) > 200
        assert value not in hide(f"it was {value}.")
        assert value[::-1] not in hide(value[::-1]), "it is known by its value, not only by its form"


async def test_it_says_who_it_is_by_a_signature_of_its_key_that_ends_within_ten_minutes(
    yard: GitHubYard,
) -> None:
    async with tokens_of(yard.url, yard.key) as tokens:
        await tokens.token(NAME)
    (shown,) = {each.token for each in yard.proxy.received if each.path.endswith("/access_tokens")}
    key = serialization.load_pem_private_key(yard.key.encode(), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    claims = jwt.decode(shown, key.public_key(), algorithms=["RS256"])
    assert str(claims["iss"]) == str(APP_ID)
    assert claims["exp"] - claims["iat"] <= 600
    assert shown not in Redactor(())(f"Authorization: Bearer {shown}")


@pytest.mark.parametrize(
    "key", ["", "no key at all", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----"]
)
async def test_a_key_that_is_none_is_a_refusal(key: str) -> None:
    async with tokens_of("http://127.0.0.1:1", key) as tokens:
        refused = await tokens.token(NAME)
    assert isinstance(refused, ForgeRefusal)
    assert refused.kind == "forbidden"


def test_an_app_works_an_item_with_tokens_that_end_all_the_time_and_keeps_none_of_them(
    yard: GitHubYard, desk: Desk, tmp_path: Path
) -> None:
    yard.added.lasts = 200.0  # less than what is left of one when it is renewed: each is used once
    yard.git.tokens["x-access-token"] = "none yet"
    desk.environ |= {"GITHUB_TOKEN": "", "GITHUB_APP_KEY": yard.key, "DAIKU_GITHUB__APP_ID": str(APP_ID)}
    issue = yard.issue()
    code, told = desk.work()
    assert (code, [each["state"] for each in told]) == (0, ["done"])
    assert minted(yard) > 10
    (pull,) = yard.repository().get_pulls()
    assert (pull.draft, pull.user.login) == (True, APP)
    assert own_tests_pass(yard, pull.head.ref, tmp_path / "clone")
    assert labels(yard, issue.number) == ["coding agent done"]
    comments = said(yard, issue.number)
    assert [each.startswith(PROGRESS) for each in comments] == [True, False]
    seen = desk.kept() + desk.told.encode() + "".join(comments).encode()
    for secret in [
        *yard.proxy.tokens,
        *(each.token for each in yard.proxy.received),
        *yard.key.split("\n")[1:3],
    ]:
        assert not secret or secret.encode() not in seen
