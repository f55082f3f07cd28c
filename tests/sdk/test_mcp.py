"""Servers for code without an event loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from daiku.library.mcp import MCPToolClient
from daiku.settings.config import Config
from daiku.tools.mcp import McpContext, McpServers
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext
from daiku.trace.grants import ConsentStore
from tests.tools.mcp.play import playing, wild

pytestmark = pytest.mark.slow  # a real MCP server


async def allowed(folder: Path) -> None:
    async with playing(folder, wild("plain")) as played:
        await played.allow("allow_always")


def context(call: str) -> ToolContext:
    nothing = cast(Any, None)
    return ToolContext("s", "r", call, nothing, nothing, Config(), lambda _: None)


async def test_an_allowed_server_is_called_from_another_thread_and_keeps_its_session(tmp_path: Path) -> None:
    await allowed(tmp_path)
    project = tmp_path / "project"

    def servers() -> tuple[McpServers, ToolRegistry]:
        registry = ToolRegistry(())
        place = McpContext((project,), tmp_path / "home", ConsentStore(tmp_path / "home" / "daiku.db"))
        return McpServers((wild("plain"),), registry, place), registry

    with MCPToolClient(servers, context) as client:
        assert "wild/fine" in client.tools
        first, second = (client.call_tool("wild/fine", {}) for _ in range(2))
    assert first.ok
    assert first.text == second.text  # the same process answered
