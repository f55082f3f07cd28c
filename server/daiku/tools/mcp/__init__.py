"""MCP: tools of other programs, over stdio and HTTP; the only door to the mcp SDK, which is imported late."""

from daiku.tools.mcp.servers import McpContext, McpServers

__all__ = ["McpContext", "McpServers"]
