"""Tools of a step's tasks: making the list, and working through it (R4.17–R4.22)."""

from __future__ import annotations

from pydantic import Field

from daiku.core.replies.actions import MAX_ACTIONS
from daiku.domain.base import JsonObject
from daiku.domain.tools import ToolResult
from daiku.tools.tool import Args, Tool, ToolContext, failed

NOBODY = "There is nobody to do this here."


class GenerateArgs(Args):
    step_id: str


class TaskArgs(Args):
    """One task: an operation and its arguments. `id` is how later ones refer to its result."""

    operation: str
    args: JsonObject = {}
    id: str = ""
    task_id: str = ""
    status: str = ""
    result: str | None = None
    reasoning: str | None = None


class RunArgs(Args):
    """The step whose list is worked, or the list itself."""

    step_id: str = ""
    task_list: tuple[TaskArgs, ...] = Field(default=(), max_length=MAX_ACTIONS)


async def generate_list(args: GenerateArgs, context: ToolContext) -> ToolResult:
    """Make the tasks of a step and keep them with it."""
    if context.tasks is None:
        return failed(NOBODY)
    return await context.tasks.generate(args.step_id)


async def run(args: RunArgs, context: ToolContext) -> ToolResult:
    """Work through tasks in order and report."""
    if context.tasks is None:
        return failed(NOBODY)
    if not (args.step_id or args.task_list):
        return failed("task_loop/run needs `step_id` (a step with tasks) or `task_list`.")
    given: list[JsonObject] = [
        {"operation": t.operation, "args": t.args, "id": t.task_id or t.id} for t in args.task_list
    ]
    return await context.tasks.run(args.step_id, tuple(given))


TASK_TOOLS = (
    Tool("task/generate_list", "plan", GenerateArgs, generate_list, resumes=True),
    Tool("task_loop/run", "plan", RunArgs, run, resumes=True),
)
