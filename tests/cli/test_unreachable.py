"""Errors in the terminal for a model service that is unreachable or has no key."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from daiku.models.adapter import Clock
from tests.cli.conftest import Done

Daiku = Callable[..., Done]
ADDRESS = "http://127.0.0.1:9/v1"


async def _sleep_no_time(_seconds: float) -> None:
    """Return at once."""


@pytest.fixture(autouse=True)
def unreachable(workspace: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAIKU_LLM__COMPATIBLE__BASE_URL", ADDRESS)
    monkeypatch.setenv("DAIKU_LLM__OLLAMA__BASE_URL", "http://127.0.0.1:9")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("daiku.models.adapter.Clock", partial(Clock, sleep=_sleep_no_time))


@pytest.mark.parametrize(
    ("language", "retry", "cause", "hint"),
    [
        ("C", "Trying again (1 of 3)", "nothing responds at this address", "Start the server"),
        ("ja_JP.UTF-8", "再試行します（1/3）", "応答するものがありません", "サーバーを起動"),
    ],
)
def test_an_unreachable_server_is_described_once_with_its_address_and_a_hint(
    daiku: Daiku, monkeypatch: pytest.MonkeyPatch, language: str, retry: str, cause: str, hint: str
) -> None:
    monkeypatch.setenv("LC_ALL", language)
    done = daiku("run", "--model", "compatible/m", "hi")
    assert (done.code, done.out) == (1, "")
    assert [done.err.count(part) for part in (ADDRESS, cause, hint, retry)] == [1, 1, 1, 1], done.err


@pytest.mark.parametrize(
    ("language", "hint"),
    [("C", "Set the environment variable OPENAI_API_KEY"), ("ja_JP.UTF-8", "環境変数 OPENAI_API_KEY を設定")],
)
def test_a_missing_key_is_named_by_its_variable(
    daiku: Daiku, monkeypatch: pytest.MonkeyPatch, language: str, hint: str
) -> None:
    monkeypatch.setenv("LC_ALL", language)
    done = daiku("run", "--model", "openai/gpt-5", "hi")
    assert done.code == 1
    assert hint in done.err
    assert "VS Code" in done.err
