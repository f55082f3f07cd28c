"""MCPToolClient: a synchronous client of MCP servers, with an event loop on its own thread."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Self

from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolCall, ToolResult
from daiku.tools.mcp.servers import McpServers
from daiku.tools.registry import ToolRegistry
from daiku.tools.threads import LoopThread
from daiku.tools.tool import ToolContext


class MCPToolClient:
    """Synchronous MCP client: calls tools by `<server>/<tool>` and waits for the result.

    It keeps one session per server on one thread. Use it as a context manager; its exit stops the servers.
    `open_servers` builds the servers and their registry on the loop thread. Consent is the caller's: servers
    that were not allowed before (`daiku mcp allow`) are not started.
    """

    def __init__(
        self,
        open_servers: Callable[[], tuple[McpServers, ToolRegistry]],
        context: Callable[[str], ToolContext],
    ) -> None:
        self._open = open_servers
        self._context = context
        self.notices: list[str] = []

    def __enter__(self) -> Self:
        self._thread = LoopThread()
        self._servers, self._registry = self._thread.wait(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._thread.wait(self._servers.aclose())
        finally:
            self._thread.close()

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the available tools."""
        return self._registry.names

    @property
    def system_prompt(self) -> str:
        """System prompt additions of the servers (R2.69)."""
        return self._servers.build_prompt()

    def call_tool(self, tool: str, args: JsonObject) -> ToolResult:
        """Call `<server>/<tool>` and return its result; errors are part of the result.

        Do not call it on the loop thread.
        """
        call = ToolCall(tool=tool, args=args)
        return self._thread.wait(self._registry.call(call, self._context(call.id)))

    async def _start(self) -> tuple[McpServers, ToolRegistry]:
        servers, registry = self._open()
        await servers.start_allowed(self.notices.append, person=False)
        return servers, registry
