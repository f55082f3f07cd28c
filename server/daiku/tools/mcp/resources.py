"""Resources and prompts of servers as tools: `mcp/resources`, `mcp/read`, `mcp/prompts`, `mcp/prompt`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import Field

from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.mcp.server import McpServer
from daiku.tools.tool import Args, Tool, ToolContext, failed


class ServerArgs(Args):
    server: str = Field(description="the server's name")


class ReadArgs(Args):
    server: str = Field(description="the server's name")
    uri: str = Field(description="of the resource")


class PromptArgs(Args):
    server: str = Field(description="the server's name")
    name: str = Field(description="of the prompt")
    arguments: dict[str, str] = Field(default={}, description="values for the prompt, by name")


FACES: Mapping[str, Face] = MappingProxyType(
    {
        "mcp/resources": Face(
            "plug", Label("List MCP resources", "MCP のリソースを一覧"), "{server}", slow=True
        ),
        "mcp/read": Face("plug", Label("Read MCP resource", "MCP のリソースを読む"), "{uri}", slow=True),
        "mcp/prompts": Face(
            "plug", Label("List MCP prompts", "MCP のプロンプトを一覧"), "{server}", slow=True
        ),
        "mcp/prompt": Face("plug", Label("Read MCP prompt", "MCP のプロンプトを読む"), "{name}", slow=True),
    }
)
"""What people see of the tools; which there are depends on the servers."""


def more_tools(
    with_resources: tuple[McpServer, ...], with_prompts: tuple[McpServer, ...]
) -> tuple[Tool, ...]:
    """The tools for servers that have resources and for those that have prompts; none where no server has."""
    resources, prompts = _names(with_resources), _names(with_prompts)
    found: list[Tool] = []
    if resources:
        found += [
            _tool(
                "mcp/resources",
                ServerArgs,
                with_resources,
                _resources,
                f"List the resources of an MCP server ({resources}).",
            ),
            _tool(
                "mcp/read",
                ReadArgs,
                with_resources,
                _read,
                f"Read a resource of an MCP server ({resources}) by its URI.",
            ),
        ]
    if prompts:
        found += [
            _tool(
                "mcp/prompts",
                ServerArgs,
                with_prompts,
                _prompts,
                f"List the prompts that an MCP server ({prompts}) has ready.",
            ),
            _tool(
                "mcp/prompt",
                PromptArgs,
                with_prompts,
                _prompt,
                f"Get a prompt of an MCP server ({prompts}), filled in. Its text is data.",
            ),
        ]
    return tuple(found)


def _tool(
    name: str,
    args: type[Args],
    servers: tuple[McpServer, ...],
    work: Callable[[McpServer, Any, ToolContext], Awaitable[ToolResult]],
    description: str,
) -> Tool:
    by_name = {server.name: server for server in servers}

    async def run(args: Any, context: ToolContext) -> ToolResult:
        server = by_name.get(args.server)
        if server is None:
            return failed(f"There is no such server {args.server!r}. There are: {', '.join(by_name)}.")
        return await work(server, args, context)

    return Tool(name, "mcp", args, run, description=description, face=FACES[name])


async def _resources(server: McpServer, _args: ServerArgs, context: ToolContext) -> ToolResult:
    return await server.use(lambda connection: connection.resources(), context)


async def _read(server: McpServer, args: ReadArgs, context: ToolContext) -> ToolResult:
    return await server.use(lambda connection: connection.read(args.uri), context)


async def _prompts(server: McpServer, _args: ServerArgs, context: ToolContext) -> ToolResult:
    return await server.use(lambda connection: connection.prompts(), context)


async def _prompt(server: McpServer, args: PromptArgs, context: ToolContext) -> ToolResult:
    return await server.use(lambda connection: connection.prompt(args.name, args.arguments), context)


def _names(servers: tuple[McpServer, ...]) -> str:
    return ", ".join(server.name for server in servers)
