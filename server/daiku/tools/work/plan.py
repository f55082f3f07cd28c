"""Tools of the plan, of the tasks of its steps, and of the model's todo list (R4.13–R4.22)."""

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
from daiku.models.rules.replies.actions import MAX_ACTIONS
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
from daiku.tools.shell.environment import child_environment, find_environment
from daiku.tools.tool import Args, Preview, Tool, ToolContext, failed
from daiku.workspace.programs import is_on_path

NAME_LIMIT = 80
BY_WORD = "Step “{name}” has no checks: it is completed by your word alone, and nothing proves it."
REFUSED = (
    "Step “{name}” stays open: the edit of {files} was refused, and nothing made up for it. Edit in a way that is allowed, "
    "ask the person, or set the step that needs this edit to failed."
)
Printable: TypeAlias = Annotated[str, AfterValidator(strip_control_characters)]
"""A text that a person reads in the plan: without control characters and terminal escapes."""


class StepArgs(Args):
    """One step. `depends_on` names other steps by number, id or name; `acceptance` are commands or
    checks that must pass before the step counts as done, each with its time limit before it where it
    needs long: `(20 min) make test`."""

    name: Printable = Field(description="a few words")
    description: Printable = Field(default="", description="what is to be done")
    id: str = Field(default="", description="to refer to it")
    depends_on: tuple[str, ...] = Field(default=(), description="numbers or names of earlier steps")
    acceptance: tuple[Printable, ...] = Field(
        default=(), description="commands that must pass: `(20 min) make test`"
    )


class ProposeArgs(Args):
    """Without a goal it is what was asked."""

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
    """Make a plan and show it; a plan that is made anew is a draft again. Without steps a planner makes
    them. A check that cannot prove anything, or is no command, is asked back."""
    goal = args.goal or context.asked
    if not args.steps:
        if context.tasks is None:
            return failed("plan__propose needs `steps`: a list of {name, description, depends_on}.")
        return await context.tasks.plan(goal)
    old = _find(args.plan_id, context) if args.plan_id else context.replans()
    if args.plan_id and old is None:
        return _none(args.plan_id, context)
    steps = tuple(ProposedStep(s.id, s.name, s.description, s.depends_on, s.acceptance) for s in args.steps)
    absent = _absent(steps, context)
    if wrong := [
        *find_proposal_problems(steps),
        *(_no_command(*each) for each in absent if is_sentence_like(each[0])),
    ]:
        return failed("\n".join(wrong))
    warnings = tuple(_brought_later(*each) for each in absent)
    if old is not None:
        named = {"name": args.name, "goal": args.goal, "summary": args.summary, "focus": args.focus}
        return _revise(old, revise_plan(old, steps, **named), warnings, context)
    place = f"{context.session} {context.run} {context.call_id}"
    own = f"plan_{sha256(place.encode()).hexdigest()[:8]}"
    if made := next((p for p in context.plans() if p.plan_id == own), None):  # before a restart
        return _show(made, context)
    name = args.name or goal.split("\n", 1)[0][:NAME_LIMIT]
    plan = Plan(
        plan_id=own, name=name, goal=goal, focus=args.focus, summary=args.summary, steps=link_steps(steps)
    )
    return _show(plan, context, *warnings)


def _revise(old: Plan, new: Plan, warnings: tuple[str, ...], context: ToolContext) -> ToolResult:
    """Show the plan made anew, and to the model and the person what is different."""
    changed = describe_changes(old, new)
    if changed:
        dropped = len(new.dropped_checks) > len(old.dropped_checks)
        said = joined("lines", [text("plan.made_anew"), changed])
        context.emit(Notice(level="warning" if dropped else "info", text=said))
    return _show(new, context, *warnings, f"What is different now:\n{changed}" if changed else "")


def _absent(steps: tuple[ProposedStep, ...], context: ToolContext) -> tuple[tuple[str, str], ...]:
    """The checks that call a program which is not there, each with the program's name."""
    checks = dict.fromkeys(split_time_limit(check)[0] for step in steps for check in step.acceptance)
    roots = context.workspace.roots
    path = child_environment(os.environ, roots, network=False, venv=find_environment(roots)[0])["PATH"]
    found = (
        (check, next((name for name in find_programs(check) if not is_on_path(name, path)), ""))
        for check in checks
        if parse_diagnostics_check(check) is None
    )
    return tuple((check, name) for check, name in found if name)


def _no_command(check: str, name: str) -> str:
    return (
        f"`{check}` is no command: there is no program {name!r}. A check is a command that ends with exit code "
        "0 when the step is done, as `python -m pytest -q`; leave it out where nothing can prove the step."
    )


def _brought_later(check: str, name: str) -> str:
    return f"There is no program {name!r} here: `{check}` can only pass once a step has brought it."


async def update_step(args: UpdateStepArgs, context: ToolContext) -> ToolResult:
    """Move a step, named by id, number or name, of the newest plan that has it. It is completed only
    where the steps before it are and each of its checks has passed since the last edit (`core.proof.gate`)."""
    found = ((plan, find_step(plan, args.step_id)) for plan in reversed(context.plans()))
    plan, step = next((each for each in found if each[1] is not None), (None, None))
    if plan is None or step is None:
        return failed(f"No plan has a step {args.step_id!r}. plan__get shows the steps.")
    completes, begins = args.status == "completed", args.status in ("in_progress", "completed")
    if begins and plan.status == "draft":
        return failed(
            f"The step was not changed: the plan “{plan.name}” is a draft, and its steps begin when the person has "
            f'agreed. Call plan__approve with {{"plan_id": "{plan.plan_id}"}}, which asks them, and then this again.'
        )
    if begins and step.status != "completed" and (waiting := find_blocking_steps(plan, step)):
        return failed(f"Step “{step.name}” has to wait for: {', '.join(waiting)}. Complete those first.")
    moved = move_step(plan, args.step_id, args.status, reopen=args.reopen)
    vouched: list[JsonValue] = []
    if completes and step.status != "completed":
        lacking = find_missing_proofs(step, context.done(), editor=context.editor is not None)
        if lacking.to_run or not await _vouched(step, lacking, context):
            return failed(describe_missing_proofs(step, lacking, context.config.limits.check_seconds))
        if not step.acceptance and (refused := context.refused_edits(plan, step)):
            return failed(REFUSED.format(name=step.name, files=", ".join(f"`{each}`" for each in refused)))
        vouched += lacking.unseen
    by_word = completes and not step.acceptance
    shown = _show(moved, context, BY_WORD.format(name=step.name) if by_word else "")
    return shown.model_copy(update={"data": {**(shown.data or {}), "vouched": vouched}}) if vouched else shown


async def _vouched(step: Step, lacking: MissingProofs, context: ToolContext) -> bool:
    """Whether a person counts each check as met that nothing here can show."""
    offered = (VOUCH, LEAVE)
    for check in lacking.unseen:
        if context.ask is None:
            return False
        if (await context.ask(build_question(step, check), offered)).choice != offered.index(VOUCH):
            return False
    return True


async def get(args: PlanIdArgs, context: ToolContext) -> ToolResult:
    """Show a plan; the newest without an id."""
    plan = _find(args.plan_id, context)
    if plan is None:
        return _none(args.plan_id, context)
    return ToolResult(ok=True, text=render_checklist(plan), data={"planId": plan.plan_id})


async def approve(args: PlanIdArgs, context: ToolContext) -> ToolResult:
    """Mark the plan as approved; the guard has asked the person before this runs (C4.4)."""
    plan = _find(args.plan_id, context)
    if plan is None:
        return _none(args.plan_id, context)
    if plan.status == "approved":  # perhaps by this call, before a restart
        return _show(plan, context)
    if plan.status != "draft":
        return failed(f"The plan is {plan.status} already.")
    return _show(approve_plan(plan), context)


async def preview_approval(args: PlanIdArgs, context: ToolContext) -> Preview | ToolResult:
    """The plan as it would be approved."""
    plan = _find(args.plan_id, context)
    return _none(args.plan_id, context) if plan is None else Preview(format_for_approval(plan))


def _find(plan_id: str, context: ToolContext) -> Plan | None:
    plans = context.plans()
    if not plan_id:
        return plans[-1] if plans else None
    return next((p for p in plans if p.plan_id == plan_id), None)


def _none(plan_id: str, context: ToolContext) -> ToolResult:
    known = ", ".join(p.plan_id for p in context.plans()) or "none yet"
    return failed(f"There is no plan {plan_id!r}. Plans of this conversation: {known}.")


def _show(plan: Plan, context: ToolContext, *more: str) -> ToolResult:
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
        "plan/get", "none", PlanIdArgs, get, parallel=True,
        face=Face("checklist", Label("Look at the plan", "計画を確認")),
        description="Show a plan of this conversation with the ids and statuses of its steps.",
    ),
    Tool(
        "plan/approve", "plan", PlanIdArgs, approve, preview=preview_approval, resumes=True,
        face=Face("pass-filled", Label("Approve the plan", "計画を承認")),
        description="Ask the person to approve the plan, so that work on it may begin.",
    ),
)  # fmt: skip


# -- tasks of a step ------------------------------------------------------------------------------

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


# -- the todo list --------------------------------------------------------------------------------

MOST_ITEMS = 50
LONGEST_TITLE = 200


class Item(Args):
    title: str = Field(min_length=1, max_length=LONGEST_TITLE, description="a few words")
    status: TodoStatus = Field(default="pending", description="where it stands")


class TodoArgs(Args):
    items: tuple[Item, ...] = Field(max_length=MOST_ITEMS, description="the done ones too")


async def write(args: TodoArgs, context: ToolContext) -> ToolResult:
    """Put the list in place of the one before."""
    items = tuple(
        TodoItem(title=show_hidden(" ".join(each.title.split())), status=each.status) for each in args.items
    )
    context.emit(Todo(items=items))
    counts = Counter(item.status for item in items)
    said = f"{counts['completed']} done, {counts['in_progress']} in progress, {counts['pending']} to do."
    if counts["in_progress"] > 1:
        said += " Better have one item in progress at a time."
    return ToolResult(ok=True, text=said if items else "The list is empty now.")


TODO_TOOLS = (
    Tool(
        "todo/write", "none", TodoArgs, write,
        face=Face("checklist", Label("Todo list", "やることリスト")),
        description="Keep your list of steps; the person sees it. Send all of it each time.",
    ),
)  # fmt: skip
