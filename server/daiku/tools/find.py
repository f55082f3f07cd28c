"""The tools user/ask, and tools/find and tools/call for deferred tools; the run loop handles them."""

from __future__ import annotations

from pydantic import Field

from daiku.domain.base import JsonObject
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.run.rules.calls.findtools import search_tools
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext, build_failure


class FindArgs(Args):
    query: str = Field(default="", description="words, or a name")


class CallArgs(Args):
    tool: str = Field(description="its name")
    args: JsonObject = Field(default={}, description="its arguments")


async def find(args: FindArgs, context: ToolContext) -> ToolResult:
    """Return the matching tools with their arguments."""
    toolset = context.toolset()
    return ToolResult(ok=True, text=search_tools(args.query, toolset.deferred, toolset.offered))


async def call(_args: CallArgs, _context: ToolContext) -> ToolResult:
    """Return an error: a call with a tool's name runs as that tool, so this runs only without a name."""
    return build_failure("tools__call needs the name of a `tool`. tools__find lists the names.")


FIND_TOOLS = (
    Tool(
        "tools/find", "none", FindArgs, find, parallel=True,
        face=Face("search", Label("Find tool", "ツールを探す"), "{query}"),
        description="Find more tools and how they are to be called.",
    ),
    Tool(
        "tools/call", "none", CallArgs, call,
        face=Face("plug", Label("Call tool", "ツールを呼び出す"), "{tool}"),
        description="Call one of the tools that tools__find names.",
    ),
)  # fmt: skip


class AskArgs(Args):
    question: str = Field(description="one question")
    choices: tuple[str, ...] = Field(default=(), description="to pick from, if few")


async def ask(_args: AskArgs, _context: ToolContext) -> ToolResult:
    """Return an error: the loop handles valid questions, so this runs only for invalid arguments."""
    return build_failure("user__ask needs a `question`.")


ASK_TOOLS = (
    Tool(
        "user/ask", "ask", AskArgs, ask,
        face=Face("question", Label("Ask", "質問"), "{question}", slow=True),
        description="Ask the person what only they can answer.",
    ),
)  # fmt: skip
