"""MCPToolClient: call MCP servers from synchronous code, through an event loop on its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolCall, ToolResult
from daiku.tools.mcp.servers import McpServers
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import ToolContext

T = TypeVar("T")


class MCPToolClient:
    """Calls tools by `<server>/<tool>` and waits for the result. One persistent session per server, on one
    thread; used as a context manager, whose end ends the servers.

    `open` builds the servers and the registry that they fill, on the loop thread. Consent is the
    caller's: what was not allowed before (`daiku mcp allow`) is not started.
    """

    def __init__(
        self,
        open_servers: Callable[[], tuple[McpServers, ToolRegistry]],
        context: Callable[[str], ToolContext],
    ) -> None:
        self._open = open_servers
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="daiku mcp", daemon=True)
        self.notices: list[str] = []

    def __enter__(self) -> Self:
        self._thread.start()
        self._servers, self._registry = self._wait(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._wait(self._servers.aclose())
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of what can be called."""
        return self._registry.names

    @property
    def system_prompt(self) -> str:
        """What the servers add to the system prompt (R2.69)."""
        return self._servers.prompt()

    def call_tool(self, tool: str, args: JsonObject) -> ToolResult:
        """The result of `<server>/<tool>`; what goes wrong is in it. Not to be called on the loop thread."""
        call = ToolCall(tool=tool, args=args)
        return self._wait(self._registry.call(call, self._context(call.id)))

    async def _start(self) -> tuple[McpServers, ToolRegistry]:
        servers, registry = self._open()
        await servers.ready(self.notices.append, person=False)
        return servers, registry

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
