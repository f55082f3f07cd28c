"""Tasks of a step: the list as a model writes it, their order, and their statuses in the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter

from daiku.domain.base import new_id
from daiku.domain.messages import ToolMessage
from daiku.domain.tools import ToolCall
from daiku.domain.work.plans import Plan, Step, Task, WorkStatus
from daiku.models.rules.replies.actions import MAX_ACTIONS, ActionReply
from daiku.models.rules.replies.parse import Unreadable, read_json
from daiku.run.rules.calls.refs import find_refs, look_up, replace_refs
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import check_call
from daiku.team.rules.plans.transitions import find_step, update_status
from daiku.team.rules.proof.checks import seconds_of
from daiku.team.rules.proof.evidence import diagnosed_place
from daiku.texts.rules.truncate import OUTPUT_LIMIT, truncate_middle
from daiku.texts.text import Text, joined, text

OUTSIDE_LISTS = ("plan/*", "task/*", "task_loop/*", "agent/*", "user/*", "tools/*")
"""Tools that are no task: they decide about the work, they are not part of it."""
RESULT_SHARE = 2000
"""Characters of one task's result that are kept with it, and shown to whoever reports."""
USED_SHARE = OUTPUT_LIMIT
"""Characters of a result that another task uses: it is kept as it is, or, where it is longer, not at all."""
ENDED = ("completed", "failed")
APART = "Tasks"
"""The name of a plan that holds a task list apart from the plans that are being worked."""
MARK = "-"
"""Between a task's id and what tells one call of it from another."""
LISTS = ("tasks", "task_list", "taskList", "actions", "TaskList")

Check = Callable[[ToolCall], str]
"""What is wrong with an operation and its arguments, in words for the model; empty for nothing."""


class PlanStep(NamedTuple):
    """A step and the plan that it is part of."""

    plan: Plan
    step: Step


# ---- the list as it is written


def read_tasks(
    reply: str, resolve: Callable[[str], str | None], check: Check, *, cut: bool = False
) -> tuple[Task, ...] | Unreadable:
    """Read the tasks of a reply, in order. `resolve` returns the canonical name of an operation, None if unknown."""

    def tasks(value: JsonValue) -> tuple[Task, ...]:
        return tasks_from_actions(_ACTIONS.validate_python(_list_of(value)), resolve, check)

    return read_json(reply, tasks, cut=cut)


_ACTIONS = TypeAdapter(tuple[ActionReply, ...])


def _list_of(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        key = next((name for name in LISTS if isinstance(value.get(name), list)), None)
        if key is None:
            raise ValueError(text("forms.no_tasks"))
        value = value[key]
    if not isinstance(value, list):
        raise ValueError(text("forms.no_tasks"))  # noqa: TRY004  # what is wrong with a reply
    if not value:
        raise ValueError(text("forms.tasks_empty"))
    if len(value) > MAX_ACTIONS:
        raise ValueError(text("forms.too_many_tasks", count=len(value), most=MAX_ACTIONS))
    return value


def tasks_from_actions(
    actions: Iterable[ActionReply],
    resolve: Callable[[str], str | None],
    check: Check,
    name_task: Callable[[int], str] = lambda _: new_id("task"),
) -> tuple[Task, ...]:
    """Convert actions to tasks, with references by id or number (from 1). Raises ValueError with every problem."""
    ids: dict[str, str] = {}
    made: list[Task] = []
    problems: list[Text] = []
    for number, action in enumerate(actions, 1):
        name = resolve(action.operation) or action.operation.strip()
        args = replace_refs(action.args, _renamer(dict(ids)))
        assert isinstance(args, dict)
        unknown = [t for t in find_refs(args) if t.partition(".")[0] not in ids.values()]
        problems += [
            text("forms.task", number=number, problem=text("forms.task_ref", target=t)) for t in unknown
        ]
        if not unknown and (wrong := check(ToolCall(tool=name, args=args))):
            problems.append(text("forms.task", number=number, problem=wrong))
        task = Task(task_id=name_task(number), operation=name, args=args)
        made.append(task)
        ids |= {key: task.task_id for key in (str(number), action.id) if key}
    if problems:
        raise ValueError(joined("clauses", problems))
    return tuple(made)


def _renamer(ids: dict[str, str]) -> Callable[[str], JsonValue]:
    def renamed(target: str) -> JsonValue:
        name, dot, path = target.partition(".")
        return {"$ref": ids.get(name, name) + dot + path}

    return renamed


# ---- the list as it is worked


def find_place(plans: Sequence[Plan], reference: str) -> PlanStep | None:
    """The step named by its id, number or name, of the newest plan that has it; open plans first."""
    newest = tuple(reversed(plans))
    ranked = sorted(newest, key=lambda plan: plan.status in ENDED)
    found = ((plan, find_step(plan, reference)) for plan in ranked)
    return next((PlanStep(plan, step) for plan, step in found if step is not None), None)


def waits_for(place: PlanStep) -> tuple[str, ...]:
    """Names of the steps that have to be completed before this one, and are not."""
    return tuple(
        s.name for s in place.plan.steps if s.step_id in place.step.depends_on and s.status != "completed"
    )


def attach_task_list(plans: Sequence[Plan], tasks: tuple[Task, ...], request: str) -> PlanStep:
    """Attach a task list to the step whose open tasks it repeats, else to a plan of its own (C4.6)."""
    for plan in reversed(plans):
        for step in plan.steps:
            known, still_open = step.task_list, open_tasks(step)
            if all(_is_among(task, known) for task in tasks) and all(
                _is_among(task, tasks) for task in still_open
            ):
                return with_list(PlanStep(plan, step), tasks)
    step = Step(name=APART, description=request)
    plan = Plan(name=APART, goal=request, status="approved", steps=(step,))
    return with_list(PlanStep(plan, step), tasks)


def open_plan_besides(plans: Sequence[Plan], plan: Plan) -> Plan | None:
    """Return the newest other plan that is being worked."""
    others = (each for each in reversed(plans) if each.plan_id != plan.plan_id)
    return next((each for each in others if each.status in ("approved", "in_progress")), None)


def with_list(place: PlanStep, tasks: tuple[Task, ...]) -> PlanStep:
    """Return the step with `tasks` as its list; completed and equal tasks keep their status."""
    known = {task.task_id: task for task in place.step.task_list}
    done = [task for task in place.step.task_list if task.status == "completed"]
    kept: list[Task] = []
    for task in tasks:
        same = known.get(task.task_id) or next((d for d in done if _same(d, task)), None)
        if same is not None and same in done:
            done.remove(same)
        kept.append(task if same is None or not _same(same, task) else same)
    return _with_step(place, place.step.model_copy(update={"task_list": (*done, *kept)}))


def _is_among(task: Task, others: Sequence[Task]) -> bool:
    return any(task.task_id == other.task_id or _same(task, other) for other in others)


def _same(one: Task, other: Task) -> bool:
    return (one.operation, one.args) == (other.operation, other.args)


def with_task_progress(place: PlanStep, run: State) -> PlanStep:
    """Return the step with its tasks' statuses from the `run` that executes them, and the plan's approval."""
    plan, step = place
    answers = {
        task_of(m.call_id): m
        for m in run.conversation.messages
        if isinstance(m, ToolMessage) and m.outcome is not None
    }
    under_way = {task_of(key) for key in run.calls.started}
    asked = {task_of(call.id) for call in run.calls.pending}
    used = {task_of(key): text for key, text in run.calls.preset_results.items()}
    tasks = tuple(
        _moved(t, answers.get(t.task_id), used.get(t.task_id), under_way=t.task_id in under_way | asked)
        for t in step.task_list
    )
    mine = next((p for p in run.plans.all if p.plan_id == plan.plan_id), None)
    if plan.status == "draft" and mine is not None and mine.status != "draft":
        plan = plan.model_copy(update={"status": "approved"})
    if tasks != step.task_list and step.status == "pending":
        step = step.model_copy(update={"status": "in_progress"})
    return _with_step(PlanStep(plan, step), step.model_copy(update={"task_list": tasks}))


def _moved(task: Task, answer: ToolMessage | None, used: str | None, *, under_way: bool) -> Task:
    if answer is not None:
        told = truncate_middle(answer.text, RESULT_SHARE) if used is None else used
        told = told if len(told) <= USED_SHARE else None
        return task.model_copy(update={"status": "completed" if answer.ok else "failed", "result": told})
    if under_way:
        return task.model_copy(update={"status": "in_progress", "result": None})
    return task


def reset_interrupted_tasks(place: PlanStep) -> PlanStep:
    """Return the step after an interrupted run: its tasks in progress become pending again."""
    tasks = tuple(
        t.model_copy(update={"status": "pending"}) if t.status == "in_progress" else t
        for t in place.step.task_list
    )
    return _with_step(place, place.step.model_copy(update={"task_list": tasks}))


def with_step_status(place: PlanStep, status: WorkStatus) -> PlanStep:
    """The step with another status, and the plan's status that follows from it."""
    return _with_step(place, place.step.model_copy(update={"status": status}))


def _with_step(place: PlanStep, step: Step) -> PlanStep:
    steps = tuple(step if s.step_id == step.step_id else s for s in place.plan.steps)
    return PlanStep(update_status(place.plan.model_copy(update={"steps": steps})), step)


def open_tasks(step: Step) -> tuple[Task, ...]:
    """What is left to do, in order: one that failed comes again."""
    return tuple(task for task in step.task_list if task.status != "completed")


def calls_of(place: PlanStep, *, editor: bool, check_seconds: int) -> tuple[ToolCall, ...]:
    """Return the calls to work the step: approval of a draft (C4.4), open tasks with results, its checks."""
    plan, step = place
    left = open_tasks(step)
    names = {task.task_id: f"{task.task_id}{MARK}{new_id('n')[2:]}" for task in left}
    done = (task for task in step.task_list if task.status == "completed")
    results = {task.task_id: task.result for task in done if task.result is not None}

    def known(target: str) -> JsonValue:
        name, dot, path = target.partition(".")
        if name in results:
            with suppress(LookupError):
                return look_up(path, results[name], {"output": results[name]})
        return {"$ref": names.get(name, name) + dot + path}

    calls: list[ToolCall] = []
    if plan.status == "draft":
        calls.append(ToolCall(id=new_id("approve"), tool="plan/approve", args={"plan_id": plan.plan_id}))
    for task in left:
        args = replace_refs(task.args, known)
        assert isinstance(args, dict)
        calls.append(ToolCall(id=names[task.task_id], tool=task.operation, args=args))
    checks = (check for check in step.acceptance if editor or diagnosed_place(check) is None)
    made = (check_call(check, seconds_of(plan, check, check_seconds)) for check in checks)
    return (*calls, *(ToolCall(id=new_id("check"), tool=call.tool, args=call.args) for call in made))


def task_of(call: str) -> str:
    """The id of the task that the call `call` carries out."""
    return call.partition(MARK)[0]
