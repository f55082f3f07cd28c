"""Tools of a step's tasks: making the list, and working through it (R4.17–R4.22)."""

from __future__ import annotations

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from daiku.core.replies.actions import MAX_ACTIONS
from daiku.domain.base import JsonObject
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.tools.face import Face
from daiku.tools.tool import Args, Tool, ToolContext, failed

NOBODY = "There is nobody to do this here."


class GenerateArgs(Args):
    step_id: str = Field(description="the step's id, number or name")


class TaskArgs(Args):
    """One task: an operation and its arguments. What else models send of a task is taken and has no effect."""

    operation: str = Field(description="a tool's name")
    args: JsonObject = Field(default={}, description="its arguments")
    id: str = Field(default="", description="how later tasks refer to its result")
    task_id: SkipJsonSchema[str] = ""
    status: SkipJsonSchema[str] = ""
    result: SkipJsonSchema[str | None] = None
    reasoning: SkipJsonSchema[str | None] = None


class RunArgs(Args):
    """The step whose list is worked, or the list itself."""

    step_id: str = Field(default="", description="a step with its own list of tasks")
    task_list: tuple[TaskArgs, ...] = Field(
        default=(), max_length=MAX_ACTIONS, description="tasks of your own instead"
    )


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
        return failed("task_loop__run needs `step_id` (a step with tasks) or `task_list`.")
    given: list[JsonObject] = [
        {"operation": t.operation, "args": t.args, "id": t.task_id or t.id} for t in args.task_list
    ]
    return await context.tasks.run(args.step_id, tuple(given))


TASK_TOOLS = (
    Tool(
        "task/generate_list", "plan", GenerateArgs, generate_list, resumes=True,
        face=Face("tasklist", Label("List tasks", "タスクを列挙"), slow=True),
        description="Break one approved step of the plan down into concrete tasks and keep them with the step; nothing is carried out yet. Then task_loop__run works through them.",
    ),
    Tool(
        "task_loop/run", "plan", RunArgs, run, resumes=True,
        face=Face("run-all", Label("Work through the tasks", "タスクを実行"), slow=True),
        description="Work through the tasks of a step in order, each asked about as if you had called it. The first task that fails ends it and the rest stays pending; run it again and it goes on where it was. Ends with a report as JSON: status, succeeded, failed, cause, next_action.",
    ),
)  # fmt: skip
