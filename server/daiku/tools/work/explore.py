"""The tool that has questions about the project answered by explorers, each in a window of its own."""

from __future__ import annotations

from pydantic import Field

from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext, failed

MOST_QUESTIONS = 4


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
