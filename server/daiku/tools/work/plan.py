"""Tools for plans, the tasks of their steps, and the model's todo list (R4.13–R4.22)."""

from __future__ import annotations

import os
from collections import Counter
from hashlib import sha256
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, JsonValue
from pydantic.json_schema import SkipJsonSchema

from daiku.domain.base import JsonObject
from daiku.domain.events import Notice, PlanEvent
from daiku.domain.held import Todo, TodoItem, TodoStatus
from daiku.domain.labels import Label
from daiku.domain.tools import ToolResult
from daiku.domain.work.plans import Plan, Step, WorkStatus
from daiku.models.rules.replies.roleforms import MAX_ACTIONS
from daiku.team.rules.plans.markdown import format_for_approval
from daiku.team.rules.plans.proposed import (
    MAX_STEPS,
    ProposedStep,
    describe_changes,
    find_proposal_problems,
    link_steps,
    revise_plan,
)
from daiku.team.rules.plans.reply import strip_control_characters
from daiku.team.rules.plans.transitions import (
    approve_plan,
    find_blocking_steps,
    find_step,
    move_step,
    render_checklist,
)
from daiku.team.rules.proof.checks import find_programs, is_sentence_like, split_time_limit
from daiku.team.rules.proof.evidence import parse_diagnostics_check
from daiku.team.rules.proof.gate import (
    LEAVE,
    VOUCH,
    MissingProofs,
    build_question,
    describe_missing_proofs,
    find_missing_proofs,
)
from daiku.texts.rules.visible import show_hidden
from daiku.texts.text import joined, text
from daiku.tools.face import Face
from daiku.tools.shell.environment import build_environment, find_environment
from daiku.tools.tool import Args, Preview, Tool, ToolContext, build_failure
from daiku.workspace.programs import is_on_path

NAME_LIMIT = 80
"""Characters of a plan's default name."""
UNPROVEN_NOTE = "Step “{name}” has no checks: it is completed by your word alone, and nothing proves it."
REFUSED_NOTE = (
    "Step “{name}” stays open: the edit of {files} was refused, and nothing made up for it. Edit in a way that is allowed, "
    "ask the person, or set the step that needs this edit to failed."
)
Printable: TypeAlias = Annotated[str, AfterValidator(strip_control_characters)]
"""Text that the user reads in the plan: without control characters and terminal escapes."""


class StepArgs(Args):
    """A step. `depends_on` names other steps by number, id, or name.

    `acceptance`: commands or checks that must pass before the step is done. A time limit may precede one:
    `(20 min) make test`.
    """

    name: Printable = Field(description="a few words")
    description: Printable = Field(default="", description="what is to be done")
    id: str = Field(default="", description="to refer to it")
    depends_on: tuple[str, ...] = Field(default=(), description="numbers or names of earlier steps")
    acceptance: tuple[Printable, ...] = Field(
        default=(), description="commands that must pass: `(20 min) make test`"
    )


class ProposeArgs(Args):
    """A plan. Without a goal it is the run's request."""

    goal: Printable = Field(default="", description="the request without it")
    name: Printable = Field(default="", description="a short title")
    focus: Printable = Field(default="", description="what the work is about")
    summary: Printable = Field(default="", description="the plan in a sentence")
    plan_id: str = Field(default="", description="plan to make anew; completed steps stay")
    steps: tuple[StepArgs, ...] = Field(
        default=(), max_length=MAX_STEPS, description="in order; without any a planner makes them"
    )


class UpdateStepArgs(Args):
    step_id: str = Field(description="its id, number or name")
    status: WorkStatus = Field(description="how the step stands now")
    reopen: bool = Field(default=False, description="take up a completed step again")


class PlanIdArgs(Args):
    plan_id: str = Field(default="", description="the newest plan without it")


async def propose(args: ProposeArgs, context: ToolContext) -> ToolResult:
    """Create a plan and show it. A revised plan is a draft again; without steps, a planner makes them.

    A check that proves nothing or is not a command is rejected.
    """
    goal = args.goal or context.asked
    if not args.steps:
        if context.tasks is None:
            return build_failure("plan__propose needs `steps`: a list of {name, description, depends_on}.")
        return await context.tasks.plan(goal)
    old = _find_plan(args.plan_id, context) if args.plan_id else context.replans()
    if args.plan_id and old is None:
        return _build_unknown_plan(args.plan_id, context)
    steps = tuple(ProposedStep(s.id, s.name, s.description, s.depends_on, s.acceptance) for s in args.steps)
    missing_programs = _find_missing_programs(steps, context)
    if problems := [
        *find_proposal_problems(steps),
        *(_explain_not_command(*each) for each in missing_programs if is_sentence_like(each[0])),
    ]:
        return build_failure("\n".join(problems))
    warnings = tuple(_explain_missing_program(*each) for each in missing_programs)
    if old is not None:
        fields = {"name": args.name, "goal": args.goal, "summary": args.summary, "focus": args.focus}
        return _show_revision(old, revise_plan(old, steps, **fields), warnings, context)
    call_key = f"{context.session} {context.run} {context.call_id}"
    plan_id = f"plan_{sha256(call_key.encode()).hexdigest()[:8]}"
    # It exists if it was created before a restart.
    if existing := next((p for p in context.plans() if p.plan_id == plan_id), None):
        return _show_plan(existing, context)
    name = args.name or goal.split("\n", 1)[0][:NAME_LIMIT]
    plan = Plan(
        plan_id=plan_id, name=name, goal=goal, focus=args.focus, summary=args.summary, steps=link_steps(steps)
    )
    return _show_plan(plan, context, *warnings)


def _show_revision(old: Plan, new: Plan, warnings: tuple[str, ...], context: ToolContext) -> ToolResult:
    """Show the revised plan, and the differences to the model and the user."""
    differences = describe_changes(old, new)
    if differences:
        drops_checks = len(new.dropped_checks) > len(old.dropped_checks)
        notice = joined("lines", [text("plan.made_anew"), differences])
        context.emit(Notice(level="warning" if drops_checks else "info", text=notice))
    return _show_plan(
        new, context, *warnings, f"What is different now:\n{differences}" if differences else ""
    )


def _find_missing_programs(
    steps: tuple[ProposedStep, ...], context: ToolContext
) -> tuple[tuple[str, str], ...]:
    """Return the checks that run a missing program, each with the program's name."""
    checks = dict.fromkeys(split_time_limit(check)[0] for step in steps for check in step.acceptance)
    roots = context.workspace.roots
    path = build_environment(os.environ, roots, network=False, venv=find_environment(roots)[0])["PATH"]
    missing = (
        (check, next((name for name in find_programs(check) if not is_on_path(name, path)), ""))
        for check in checks
        if parse_diagnostics_check(check) is None
    )
    return tuple((check, name) for check, name in missing if name)


def _explain_not_command(check: str, name: str) -> str:
    return (
        f"`{check}` is no command: there is no program {name!r}. A check is a command that ends with exit code "
        "0 when the step is done, as `python -m pytest -q`; leave it out where nothing can prove the step."
    )


def _explain_missing_program(check: str, name: str) -> str:
    return f"There is no program {name!r} here: `{check}` can only pass once a step has brought it."


async def update_step(args: UpdateStepArgs, context: ToolContext) -> ToolResult:
    """Set the status of a step, named by id, number, or name, in the newest plan that has it.

    It is completed only if the steps before it are, and each of its checks has passed since the last edit
    (`team.rules.proof.gate`).
    """
    candidates = ((plan, find_step(plan, args.step_id)) for plan in reversed(context.plans()))
    plan, step = next((each for each in candidates if each[1] is not None), (None, None))
    if plan is None or step is None:
        return build_failure(f"No plan has a step {args.step_id!r}. plan__get shows the steps.")
    completes, begins = args.status == "completed", args.status in ("in_progress", "completed")
    if begins and plan.status == "draft":
        return build_failure(
            f"The step was not changed: the plan “{plan.name}” is a draft, and its steps begin when the person has "
            f'agreed. Call plan__approve with {{"plan_id": "{plan.plan_id}"}}, which asks them, and then this again.'
        )
    if begins and step.status != "completed" and (blocking := find_blocking_steps(plan, step)):
        return build_failure(
            f"Step “{step.name}” has to wait for: {', '.join(blocking)}. Complete those first."
        )
    updated_plan = move_step(plan, args.step_id, args.status, reopen=args.reopen)
    confirmed_checks: list[JsonValue] = []
    if completes and step.status != "completed":
        missing_proofs = find_missing_proofs(step, context.done(), editor=context.editor is not None)
        if missing_proofs.to_run or not await _ask_to_vouch(step, missing_proofs, context):
            return build_failure(
                describe_missing_proofs(step, missing_proofs, context.config.limits.check_seconds)
            )
        if not step.acceptance and (refused_files := context.refused_edits(plan, step)):
            return build_failure(
                REFUSED_NOTE.format(name=step.name, files=", ".join(f"`{each}`" for each in refused_files))
            )
        confirmed_checks += missing_proofs.unseen
    is_unproven = completes and not step.acceptance
    result = _show_plan(updated_plan, context, UNPROVEN_NOTE.format(name=step.name) if is_unproven else "")
    return (
        result.model_copy(update={"data": {**(result.data or {}), "vouched": confirmed_checks}})
        if confirmed_checks
        else result
    )


async def _ask_to_vouch(step: Step, missing_proofs: MissingProofs, context: ToolContext) -> bool:
    """Ask the user to confirm each check that cannot be proven here. Returns False if one is not confirmed."""
    choices = (VOUCH, LEAVE)
    for check in missing_proofs.unseen:
        if context.ask is None:
            return False
        if (await context.ask(build_question(step, check), choices)).choice != choices.index(VOUCH):
            return False
    return True


async def get_plan(args: PlanIdArgs, context: ToolContext) -> ToolResult:
    """Show a plan; without an id, the newest."""
    plan = _find_plan(args.plan_id, context)
    if plan is None:
        return _build_unknown_plan(args.plan_id, context)
    return ToolResult(ok=True, text=render_checklist(plan), data={"planId": plan.plan_id})


async def approve_shown_plan(args: PlanIdArgs, context: ToolContext) -> ToolResult:
    """Mark the plan as approved. The guard has asked the user before (C4.4)."""
    plan = _find_plan(args.plan_id, context)
    if plan is None:
        return _build_unknown_plan(args.plan_id, context)
    if plan.status == "approved":  # perhaps by this call, before a restart
        return _show_plan(plan, context)
    if plan.status != "draft":
        return build_failure(f"The plan is {plan.status} already.")
    return _show_plan(approve_plan(plan), context)


async def preview_approval(args: PlanIdArgs, context: ToolContext) -> Preview | ToolResult:
    """Show the plan to approve."""
    plan = _find_plan(args.plan_id, context)
    return _build_unknown_plan(args.plan_id, context) if plan is None else Preview(format_for_approval(plan))


def _find_plan(plan_id: str, context: ToolContext) -> Plan | None:
    plans = context.plans()
    if not plan_id:
        return plans[-1] if plans else None
    return next((p for p in plans if p.plan_id == plan_id), None)


def _build_unknown_plan(plan_id: str, context: ToolContext) -> ToolResult:
    plan_ids = ", ".join(p.plan_id for p in context.plans()) or "none yet"
    return build_failure(f"There is no plan {plan_id!r}. Plans of this conversation: {plan_ids}.")


def _show_plan(plan: Plan, context: ToolContext, *more: str) -> ToolResult:
    context.emit(PlanEvent(plan=plan))
    text = "\n\n".join(part for part in (render_checklist(plan), *more) if part)
    return ToolResult(ok=True, text=text, data={"planId": plan.plan_id})


PLAN_TOOLS = (
    Tool(
        "plan/propose", "plan", ProposeArgs, propose, resumes=True,
        face=Face("checklist", Label("Plan", "計画"), "{goal}"),
        description="Propose a plan for work of several steps; the person sees it at once. What proves a step is a command that must pass, as `pytest -q`. Simple work: 1-3 steps; larger work: 3-6.",
    ),
    Tool(
        "plan/update_step", "plan", UpdateStepArgs, update_step, resumes=True,
        face=Face("pass", Label("Update step", "ステップを更新"), "{status}"),
        description="Set the status of a plan step: in_progress when you begin it, completed only after its acceptance checks passed.",
    ),
    Tool(
        "plan/get", "none", PlanIdArgs, get_plan, parallel=True,
        face=Face("checklist", Label("View plan", "計画を確認")),
        description="Show a plan of this conversation with the ids and statuses of its steps.",
    ),
    Tool(
        "plan/approve", "plan", PlanIdArgs, approve_shown_plan, preview=preview_approval, resumes=True,
        face=Face("pass-filled", Label("Approve plan", "計画を承認")),
        description="Ask the person to approve the plan, so that work on it may begin.",
    ),
)  # fmt: skip


# -- tasks of a step ------------------------------------------------------------------------------

UNAVAILABLE = "There is nobody to do this here."


class GenerateArgs(Args):
    step_id: str = Field(description="the step's id, number or name")


class TaskArgs(Args):
    """A task: an operation and its arguments. Other fields that models send are accepted and ignored."""

    operation: str = Field(description="a tool's name")
    args: JsonObject = Field(default={}, description="its arguments")
    id: str = Field(default="", description="how later tasks refer to its result")
    task_id: SkipJsonSchema[str] = ""
    status: SkipJsonSchema[str] = ""
    result: SkipJsonSchema[str | None] = None
    reasoning: SkipJsonSchema[str | None] = None


class RunTasksArgs(Args):
    """The step with tasks, or the tasks themselves."""

    step_id: str = Field(default="", description="a step with its own list of tasks")
    task_list: tuple[TaskArgs, ...] = Field(
        default=(), max_length=MAX_ACTIONS, description="tasks of your own instead"
    )


async def generate_list(args: GenerateArgs, context: ToolContext) -> ToolResult:
    """Create the tasks of a step and store them with it."""
    if context.tasks is None:
        return build_failure(UNAVAILABLE)
    return await context.tasks.generate(args.step_id)


async def run_tasks(args: RunTasksArgs, context: ToolContext) -> ToolResult:
    """Run tasks in order and report the results."""
    if context.tasks is None:
        return build_failure(UNAVAILABLE)
    if not (args.step_id or args.task_list):
        return build_failure("task_loop__run needs `step_id` (a step with tasks) or `task_list`.")
    task_list: list[JsonObject] = [
        {"operation": t.operation, "args": t.args, "id": t.task_id or t.id} for t in args.task_list
    ]
    return await context.tasks.run(args.step_id, tuple(task_list))


TASK_TOOLS = (
    Tool(
        "task/generate_list", "plan", GenerateArgs, generate_list, resumes=True,
        face=Face("tasklist", Label("List tasks", "タスクを列挙"), slow=True),
        description="Break one approved step of the plan down into concrete tasks and keep them with the step; nothing is carried out yet. Then task_loop__run works through them.",
    ),
    Tool(
        "task_loop/run", "plan", RunTasksArgs, run_tasks, resumes=True,
        face=Face("run-all", Label("Run tasks", "タスクを実行"), slow=True),
        description="Work through the tasks of a step in order, each asked about as if you had called it. The first task that fails ends it and the rest stays pending; run it again and it goes on where it was. Ends with a report as JSON: status, succeeded, failed, cause, next_action.",
    ),
)  # fmt: skip


# -- the todo list --------------------------------------------------------------------------------

MAX_ITEMS = 50
"""Items of a todo list."""
MAX_TITLE = 200
"""Characters of an item's title."""


class Item(Args):
    title: str = Field(min_length=1, max_length=MAX_TITLE, description="a few words")
    status: TodoStatus = Field(default="pending", description="where it stands")


class TodoArgs(Args):
    items: tuple[Item, ...] = Field(max_length=MAX_ITEMS, description="the done ones too")


async def write_todo(args: TodoArgs, context: ToolContext) -> ToolResult:
    """Replace the todo list."""
    items = tuple(
        TodoItem(title=show_hidden(" ".join(each.title.split())), status=each.status) for each in args.items
    )
    context.emit(Todo(items=items))
    counts = Counter(item.status for item in items)
    summary = f"{counts['completed']} done, {counts['in_progress']} in progress, {counts['pending']} to do."
    if counts["in_progress"] > 1:
        summary += " Better have one item in progress at a time."
    return ToolResult(ok=True, text=summary if items else "The list is empty now.")


TODO_TOOLS = (
    Tool(
        "todo/write", "none", TodoArgs, write_todo,
        face=Face("checklist", Label("To-do list", "ToDoリスト")),
        description="Keep your list of steps; the person sees it. Send all of it each time.",
    ),
)  # fmt: skip
