"""The tool user/ask, which the run loop handles, so that a question survives a restart."""

from __future__ import annotations

from pydantic import Field

from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext, build_failure


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
