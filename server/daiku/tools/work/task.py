"""Tools of a step's tasks: making the list, and working through it (R4.17–R4.22)."""

from __future__ import annotations

from pydantic import Field

from daiku.core.replies.actions import MAX_ACTIONS
from daiku.domain.base import JsonObject
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
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
    Tool(
        "task/generate_list", "plan", GenerateArgs, generate_list, resumes=True,
        face=Face("tasklist", Label("List tasks", "タスクを列挙"), slow=True),
        description="Break one approved step of the plan down into concrete tasks (operations with their arguments) and keep them with the step; nothing is carried out yet. `step_id` is the step's id, its number or its name. Then task_loop/run works through them.",
    ),
    Tool(
        "task_loop/run", "plan", RunArgs, run, resumes=True,
        face=Face("run-all", Label("Work through the tasks", "タスクを実行"), slow=True),
        description="Work through the tasks of a step in order, each asked about as if you had called it: `step_id` for the step's own list (from task/generate_list), or `task_list` with your own [{operation, args}]. The first task that fails ends it and the rest stays pending; run it again and it goes on where it was. Ends with a report as JSON: status, succeeded, failed, cause, next_action. Afterwards tell the person what was done, and ask before the next step.",
    ),
)  # fmt: skip
