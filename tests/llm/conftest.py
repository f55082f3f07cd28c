"""A model service for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.llm.server import ModelServer


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    server = ModelServer()
    await server.start()
    yield server
    await server.stop()
