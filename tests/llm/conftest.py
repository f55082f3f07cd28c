"""A model service for each test that asks for one, and providers that are closed when it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol, TypeVar

import pytest

from daiku.models.provider import Provider
from tests.llm.server import ModelServer

P = TypeVar("P", bound=Provider)


class Closing(Protocol):
    """Takes a provider, hands it back, and closes it after the test."""

    def __call__(self, provider: P) -> P: ...


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def closing_after() -> AsyncIterator[Closing]:
    opened: list[Provider] = []

    def keep(provider: P) -> P:
        opened.append(provider)
        return provider

    yield keep
    for provider in opened:
        await provider.aclose()
