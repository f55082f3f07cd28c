"""Tools that ask other agents: hand over requests, and have explorers answer questions about the project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field, create_model

from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext, build_failure

MAX_REQUESTS = 8
"""Requests of one parallel call."""
MAX_QUESTIONS = 4
"""Questions of one exploration."""


class HandoffArgs(Args):
    agent: str = Field(description="who is asked")
    request: str = Field(description="everything that they have to know")


async def handoff(args: HandoffArgs, context: ToolContext) -> ToolResult:
    """Return the other agent's answer; not ok if it failed or returned nothing useful."""
    if context.hand_over is None:
        return build_failure("There is nobody to hand over to here.")
    result = await context.hand_over(args.agent, args.request)
    return result.model_copy(update={"data": None})  # the handoff is recorded as a separate event


class PieceArgs(HandoffArgs):
    """A request, and its step of the plan, if any."""

    step_id: str = Field(default="", description="step of the plan that it is about")


class ParallelArgs(Args):
    """Independent requests."""

    requests: tuple[PieceArgs, ...] = Field(min_length=1, max_length=MAX_REQUESTS, description="one to eight")
    only_apart: bool = Field(default=False, description="not at all, if not at once")


async def parallel(args: ParallelArgs, context: ToolContext) -> ToolResult:
    """Return the answers of the other agents, in the order of the requests."""
    if context.tasks is None:
        return build_failure("There is nobody to hand over to here.")
    pieces = tuple((r.agent, r.request, r.step_id) for r in args.requests)
    return await context.tasks.side_by_side(pieces, only_apart=args.only_apart)


def _restrict_agents(model: type[Args], agents: Iterable[str]) -> type[Args]:
    """Return `model` with an `agent` field that must be one of `agents`."""
    agent_field = Field(description="who is asked", json_schema_extra={"enum": [*agents]} if agents else None)
    return create_model(model.__name__, __base__=model, agent=(str, agent_field))


def _restrict_piece_agents(agents: Iterable[str]) -> type[ParallelArgs]:
    requests_field = ParallelArgs.model_fields["requests"]
    pieces = tuple[_restrict_agents(PieceArgs, agents), ...]
    return create_model(ParallelArgs.__name__, __base__=ParallelArgs, requests=(pieces, requests_field))


def build_handoff_tools(agents: Mapping[str, str]) -> tuple[Tool, ...]:
    """Build the handoff tools. Their descriptions list the available agents."""
    agent_list = "; ".join(f"{name} ({description})" for name, description in agents.items()) or "none"
    return (
        Tool(
            "agent/handoff", "none", _restrict_agents(HandoffArgs, agents), handoff, resumes=True,
            face=Face("organization", Label("Hand off", "引き継ぎ"), "{agent}", answer="nothing"),
            description=f"Give a request to another agent and get its answer. Its edits and commands are asked for as yours are. At most three such calls may be nested. Agents: {agent_list}.",
        ),
        Tool(
            "agent/parallel", "none", _restrict_piece_agents(agents), parallel, resumes=True,
            face=Face("organization", Label("Hand off in parallel", "並列で引き継ぎ"), "{agents}", answer="nothing"),
            description="Give several requests that do not depend on one another to other agents at once. Where the project is a git repository without other changes and edits are granted, each works in a copy of the project and its changes come back as one patch, in order; one that no longer fits is done again on top of the others. Else they are done one after the other.",
        ),
    )  # fmt: skip


class ExploreArgs(Args):
    """Independent questions."""

    questions: tuple[str, ...] = Field(
        min_length=1, max_length=MAX_QUESTIONS, description="1 to 4, each complete"
    )


async def explore(args: ExploreArgs, context: ToolContext) -> ToolResult:
    """Return the explorers' answers, in the order of the questions; not ok if none was answered."""
    if context.tasks is None:
        return build_failure("There is nobody to explore here.")
    return await context.tasks.explore(tuple(question.strip() for question in args.questions))


EXPLORE_TOOLS = (
    Tool(
        "agent/explore", "none", ExploreArgs, explore, resumes=True,
        face=Face("telescope", Label("Explore", "コードを調査"), "{questions}", answer="nothing"),
        description="Have read-only explorers answer questions about this project, all at once, for what would take you more than a few searches.",
    ),
)  # fmt: skip
