"""The tool that gives a request to another agent."""

from __future__ import annotations

from daiku.domain.tools import ToolResult
from daiku.tools.tool import Args, Tool, ToolContext, failed


class HandoffArgs(Args):
    agent: str
    request: str


async def handoff(args: HandoffArgs, context: ToolContext) -> ToolResult:
    """The other agent's answer; not ok where it failed or handed over nothing of use."""
    if context.hand_over is None:
        return failed("There is nobody to hand over to here.")
    return await context.hand_over(args.agent, args.request)


HANDOFF_TOOLS = (Tool("agent/handoff", "none", HandoffArgs, handoff, resumes=True),)
