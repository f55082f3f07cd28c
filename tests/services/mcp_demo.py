"""A real MCP server for tests (stdio, or HTTP with `http PORT`): well behaved, with one of everything."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Image, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel, Field

mcp = MCPServer("Demo", version="1.0", instructions="Search before you delete.")


class Hit(BaseModel):
    path: str
    line: int


@mcp.tool()
def search(query: str, limit: int = 2) -> list[Hit]:
    """Search files."""
    return [Hit(path=f"{query}{i}.py", line=i) for i in range(limit)]


@mcp.tool()
def echo(text: str, tags: list[str] | None = None) -> str:
    """Say it again."""
    return f"{text} {tags or []}"


@mcp.tool()
def environment() -> list[str]:
    """The names of the variables that this server was given."""
    return sorted(os.environ)


@mcp.tool()
async def slow(n: int, ctx: Context) -> str:
    """Take n steps."""
    for i in range(n):
        await ctx.report_progress(i + 1, n, f"step {i + 1}")
        await asyncio.sleep(0.3)
    return "done"


class Confirm(BaseModel):
    ok: bool = Field(description="Really?")
    size: Literal["small", "large"]
    reason: str = ""


async def ask() -> Elicit[Confirm]:
    return Elicit("Delete it?", Confirm)


@mcp.tool()
async def delete(path: str, confirm: Annotated[Confirm, Resolve(ask)]) -> str:
    """Delete a file (it only says so)."""
    return f"{path}: {confirm.ok} {confirm.size} {confirm.reason!r}"


@mcp.tool()
def refuse() -> str:
    """Fail."""
    raise ToolError("It is Sunday.")


@mcp.tool()
def picture() -> Image:
    """One pixel."""
    data = bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154"
        "789c6360000002000001e221bc330000000049454e44ae426082"
    )
    return Image(data=data, format="png")


@mcp.resource("demo://readme")
def readme() -> str:
    """About the demo."""
    return "Read me."


@mcp.prompt()
def greet(name: str) -> str:
    """A greeting."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    if mark := os.environ.get("STARTED"):  # tests look whether, and how often, it was started
        with Path(mark).open("a") as file:
            file.write(f"{os.getpid()}\n")
    if sys.argv[1:2] == ["http"]:
        mcp.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        mcp.run()
