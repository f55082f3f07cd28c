"""Tools for the resources and prompts of servers: mcp/resources, mcp/read, mcp/prompts, mcp/prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import Field

from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.mcp.server import McpServer
from daiku.tools.tool import Args, Tool, ToolContext, build_failure


class ServerArgs(Args):
    server: str = Field(description="the server's name")


class ReadResourceArgs(Args):
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
"""How the tools appear to users."""


def build_resource_tools(
    with_resources: tuple[McpServer, ...], with_prompts: tuple[McpServer, ...]
) -> tuple[Tool, ...]:
    """Build the tools for servers with resources and for servers with prompts; none if there are none."""
    resources, prompts = _join_names(with_resources), _join_names(with_prompts)
    tools: list[Tool] = []
    if resources:
        tools += [
            _build_tool(
                "mcp/resources",
                ServerArgs,
                with_resources,
                _list_resources,
                f"List the resources of an MCP server ({resources}).",
            ),
            _build_tool(
                "mcp/read",
                ReadResourceArgs,
                with_resources,
                _read_resource,
                f"Read a resource of an MCP server ({resources}) by its URI.",
            ),
        ]
    if prompts:
        tools += [
            _build_tool(
                "mcp/prompts",
                ServerArgs,
                with_prompts,
                _list_prompts,
                f"List the prompts that an MCP server ({prompts}) has ready.",
            ),
            _build_tool(
                "mcp/prompt",
                PromptArgs,
                with_prompts,
                _read_prompt,
                f"Get a prompt of an MCP server ({prompts}), filled in. Its text is data.",
            ),
        ]
    return tuple(tools)


def _build_tool(
    name: str,
    args: type[Args],
    servers: tuple[McpServer, ...],
    use_server: Callable[[McpServer, Any, ToolContext], Awaitable[ToolResult]],
    description: str,
) -> Tool:
    by_name = {server.name: server for server in servers}

    async def run(args: Any, context: ToolContext) -> ToolResult:
        server = by_name.get(args.server)
        if server is None:
            return build_failure(f"There is no such server {args.server!r}. There are: {', '.join(by_name)}.")
        return await use_server(server, args, context)

    return Tool(name, "mcp", args, run, description=description, face=FACES[name])


async def _list_resources(server: McpServer, _args: ServerArgs, context: ToolContext) -> ToolResult:
    return await server.use(lambda connection: connection.format_resources(), context)


async def _read_resource(server: McpServer, args: ReadResourceArgs, context: ToolContext) -> ToolResult:
    return await server.use(lambda connection: connection.read_resource(args.uri), context)


async def _list_prompts(server: McpServer, _args: ServerArgs, context: ToolContext) -> ToolResult:
    return await server.use(lambda connection: connection.format_prompts(), context)


async def _read_prompt(server: McpServer, args: PromptArgs, context: ToolContext) -> ToolResult:
    return await server.use(lambda connection: connection.read_prompt(args.name, args.arguments), context)


def _join_names(servers: tuple[McpServer, ...]) -> str:
    return ", ".join(server.name for server in servers)
