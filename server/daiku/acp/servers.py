"""MCP servers that a client passes with a session, as settings: they need the person's consent like all others."""

from __future__ import annotations

import re
from collections.abc import Sequence

from acp.schema import AcpMcpServer, HttpMcpServer, McpServerStdio, SseMcpServer

from daiku.domain.config import MCPServerSettings
from daiku.domain.errors import Failure, UsageError
from daiku.texts.text import text


def server_settings(
    given: Sequence[HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio],
) -> tuple[MCPServerSettings, ...]:
    """The settings of these servers. Raises UsageError for a kind that was not announced."""
    return tuple(_settings(server) for server in given)


def _settings(server: HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio) -> MCPServerSettings:
    match server:
        case McpServerStdio(name=name, command=command, args=args, env=env):
            variables = {each.name: each.value for each in env}
            return MCPServerSettings(mcp_server_name=_name(name), command=(command, *args), env=variables)
        case HttpMcpServer(name=name, url=url, headers=headers):
            found = {each.name: each.value for each in headers}
            return MCPServerSettings(mcp_server_name=_name(name), url=url, headers=found)
        case _:
            message = text("acp.server_kind", name=repr(server.name), kind=server.type)
            raise UsageError(Failure(kind="usage", message=message))


def _name(name: str) -> str:
    """`name` as the namespace of its tools."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-_.")[:64]
