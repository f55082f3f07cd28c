"""Tools that ask other agents: hand over requests, and have explorers answer questions about the project."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import Field, create_model

from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext, failed

MOST_REQUESTS = 8
MOST_QUESTIONS = 4


class HandoffArgs(Args):
    agent: str = Field(description="who is asked")
    request: str = Field(description="everything that they have to know")


async def handoff(args: HandoffArgs, context: ToolContext) -> ToolResult:
    """The other agent's answer; not ok where it failed or handed over nothing of use."""
    if context.hand_over is None:
        return failed("There is nobody to hand over to here.")
    done = await context.hand_over(args.agent, args.request)
    return done.model_copy(update={"data": None})  # what was handed over is on record as its own event


class PieceArgs(HandoffArgs):
    """A request, and the step of the plan that it is about, if any."""

    step_id: str = Field(default="", description="step of the plan that it is about")


class ParallelArgs(Args):
    """Requests that do not depend on one another."""

    requests: tuple[PieceArgs, ...] = Field(
        min_length=1, max_length=MOST_REQUESTS, description="one to eight"
    )
    only_apart: bool = Field(default=False, description="not at all, if not at once")


async def parallel(args: ParallelArgs, context: ToolContext) -> ToolResult:
    """The answers of the other agents, in the order of the requests."""
    if context.tasks is None:
        return failed("There is nobody to hand over to here.")
    pieces = tuple((r.agent, r.request, r.step_id) for r in args.requests)
    return await context.tasks.side_by_side(pieces, only_apart=args.only_apart)


def _choosing(model: type[Args], agents: Iterable[str]) -> type[Args]:
    """`model` whose `agent` is told to be one of `agents`."""
    told = Field(description="who is asked", json_schema_extra={"enum": [*agents]} if agents else None)
    return create_model(model.__name__, __base__=model, agent=(str, told))


def _choosing_pieces(agents: Iterable[str]) -> type[ParallelArgs]:
    told = ParallelArgs.model_fields["requests"]
    pieces = tuple[_choosing(PieceArgs, agents), ...]
    return create_model(ParallelArgs.__name__, __base__=ParallelArgs, requests=(pieces, told))


def handoff_tools(agents: Mapping[str, str]) -> tuple[Tool, ...]:
    """Return the handoff tools; their descriptions list the agents that can be asked."""
    named = "; ".join(f"{name} ({does})" for name, does in agents.items()) or "none"
    return (
        Tool(
            "agent/handoff", "none", _choosing(HandoffArgs, agents), handoff, resumes=True,
            face=Face("organization", Label("Hand over", "引き継ぎ"), "{agent}", answer="nothing"),
            description=f"Give a request to another agent and get its answer. Its edits and commands are asked for as yours are. At most three such calls may be nested. Agents: {named}.",
        ),
        Tool(
            "agent/parallel", "none", _choosing_pieces(agents), parallel, resumes=True,
            face=Face("organization", Label("Hand over side by side", "並行して引き継ぎ"), "{agents}", answer="nothing"),
            description="Give several requests that do not depend on one another to other agents at once. Where the project is a git repository without other changes and edits are granted, each works in a copy of the project and its changes come back as one patch, in order; one that no longer fits is done again on top of the others. Else they are done one after the other.",
        ),
    )  # fmt: skip


class ExploreArgs(Args):
    """Questions that do not depend on one another."""

    questions: tuple[str, ...] = Field(
        min_length=1, max_length=MOST_QUESTIONS, description="1 to 4, each complete"
    )


async def explore(args: ExploreArgs, context: ToolContext) -> ToolResult:
    """The explorers' answers, in the order of the questions; not ok where none was answered."""
    if context.tasks is None:
        return failed("There is nobody to explore here.")
    return await context.tasks.explore(tuple(question.strip() for question in args.questions))


EXPLORE_TOOLS = (
    Tool(
        "agent/explore", "none", ExploreArgs, explore, resumes=True,
        face=Face("telescope", Label("Explore", "コードを調査"), "{questions}", answer="nothing"),
        description="Have read-only explorers answer questions about this project, all at once, for what would take you more than a few searches.",
    ),
)  # fmt: skip
