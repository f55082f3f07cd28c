"""Tools that give requests to other agents: one, or several that do not depend on one another."""

from __future__ import annotations

from pydantic import Field

from daiku.domain.tools import ToolResult
from daiku.tools.tool import Args, Tool, ToolContext, failed

MOST_REQUESTS = 8


class HandoffArgs(Args):
    agent: str
    request: str


async def handoff(args: HandoffArgs, context: ToolContext) -> ToolResult:
    """The other agent's answer; not ok where it failed or handed over nothing of use."""
    if context.hand_over is None:
        return failed("There is nobody to hand over to here.")
    return await context.hand_over(args.agent, args.request)


class PieceArgs(HandoffArgs):
    """A request; `step_id` is the step of the plan that it is about, if any."""

    step_id: str = ""


class ParallelArgs(Args):
    """Requests that do not depend on one another."""

    requests: tuple[PieceArgs, ...] = Field(min_length=1, max_length=MOST_REQUESTS)
    only_apart: bool = Field(default=False, description="not at all where it cannot be at once")


async def parallel(args: ParallelArgs, context: ToolContext) -> ToolResult:
    """The answers of the other agents, in the order of the requests."""
    if context.tasks is None:
        return failed("There is nobody to hand over to here.")
    pieces = tuple((r.agent, r.request, r.step_id) for r in args.requests)
    return await context.tasks.side_by_side(pieces, only_apart=args.only_apart)


HANDOFF_TOOLS = (
    Tool("agent/handoff", "none", HandoffArgs, handoff, resumes=True),
    Tool("agent/parallel", "none", ParallelArgs, parallel, resumes=True),
)
