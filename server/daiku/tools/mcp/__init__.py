"""MCP: tools of other programs, over stdio and HTTP; only this package imports the MCP SDK, and late."""

from daiku.tools.mcp.servers import McpContext, McpServers

__all__ = ["McpContext", "McpServers"]
