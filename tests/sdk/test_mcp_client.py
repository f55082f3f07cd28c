"""A client for code without an event loop takes everything along when it ends."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from daiku.domain.tools import ToolResult
from daiku.library.mcp import MCPToolClient
from daiku.settings.config import Config
from daiku.tools.mcp import McpContext, McpServers
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import Args, Tool, ToolContext
from daiku.trace.grants import ConsentStore


class Nothing(Args):
    """Say on which thread it runs."""


async def where(_: Nothing, __: ToolContext) -> ToolResult:
    return ToolResult(ok=True, text=threading.current_thread().name)


def used(client: MCPToolClient) -> None:
    with client:
        raise KeyError(client.call_tool("a/where", {}).text)


def test_its_thread_and_its_loop_end_with_it_also_after_an_error(tmp_path: Path) -> None:
    registry = ToolRegistry([Tool("a/where", "none", Nothing, where)])
    consents = ConsentStore(tmp_path / "daiku.db")
    servers = McpServers((), registry, McpContext((tmp_path,), tmp_path, consents))

    def context(call: str) -> ToolContext:
        nothing = cast(Any, None)
        return ToolContext("s", "r", call, nothing, nothing, Config(), lambda _: None)

    client = MCPToolClient(lambda: (servers, registry), context)
    with pytest.raises(KeyError, match="daiku"):
        used(client)
    assert not client._thread._thread.is_alive()
    assert client._thread.loop.is_closed()
