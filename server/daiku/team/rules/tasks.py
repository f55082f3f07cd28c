"""Tasks of a step: parsed from a model's list, ordered, tracked in the plan, and reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from pydantic import JsonValue, TypeAdapter

from daiku.domain.base import new_id
from daiku.domain.messages import ToolMessage
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import TaskReport
from daiku.domain.work.plans import Plan, Step, Task, WorkStatus
from daiku.models.rules.replies.parse import Unreadable, read_json
from daiku.models.rules.replies.roleforms import MAX_ACTIONS, ActionReply
from daiku.run.rules.calls.refs import find_refs, look_up, replace_refs
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import build_check_call
from daiku.team.rules.plans.transitions import find_step, update_status
from daiku.team.rules.proof.checks import find_time_limit
from daiku.team.rules.proof.evidence import parse_diagnostics_check
from daiku.texts.rules.truncate import OUTPUT_LIMIT, truncate_middle
from daiku.texts.text import Text, joined, text

OUTSIDE_LISTS = ("plan/*", "task/*", "task_loop/*", "agent/*", "user/*", "tools/*")
"""Tools that cannot be tasks: they control the work."""
RESULT_SHARE = 2000
"""Maximum characters of one task's stored result."""
USED_SHARE = OUTPUT_LIMIT
"""Maximum characters of a result that another task uses; a longer one is not stored at all."""
ENDED = ("completed", "failed")
SEPARATE_PLAN = "Tasks"
"""Name of a separate plan for a task list that belongs to no open plan."""
MARK = "-"
"""Separator between a task's id and the suffix that makes each of its call ids unique."""
LISTS = ("tasks", "task_list", "taskList", "actions", "TaskList")

Check = Callable[[ToolCall], str]
"""Function that returns the problem of an operation and its arguments, for the model; empty for none."""


class PlanStep(NamedTuple):
    """A step and its plan."""

    plan: Plan
    step: Step


# ---- parsing a list


def read_tasks(
    reply: str, resolve: Callable[[str], str | None], check: Check, *, cut: bool = False
) -> tuple[Task, ...] | Unreadable:
    """Read the tasks of a reply, in order. `resolve` returns the canonical name of an operation, None if unknown."""

    def tasks(value: JsonValue) -> tuple[Task, ...]:
        return tasks_from_actions(_ACTIONS.validate_python(_find_list(value)), resolve, check)

    return read_json(reply, tasks, cut=cut)


_ACTIONS = TypeAdapter(tuple[ActionReply, ...])


def _find_list(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        key = next((name for name in LISTS if isinstance(value.get(name), list)), None)
        if key is None:
            raise ValueError(text("forms.no_tasks"))
        value = value[key]
    if not isinstance(value, list):
        raise ValueError(text("forms.no_tasks"))  # noqa: TRY004  # a problem of the reply
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
    """Convert actions to tasks; references are by id or number (from 1). Raises ValueError with all problems."""
    ids: dict[str, str] = {}
    tasks: list[Task] = []
    problems: list[Text] = []
    for number, action in enumerate(actions, 1):
        name = resolve(action.operation) or action.operation.strip()
        args = replace_refs(action.args, _build_renamer(dict(ids)))
        assert isinstance(args, dict)
        unknown = [t for t in find_refs(args) if t.partition(".")[0] not in ids.values()]
        problems += [
            text("forms.task", number=number, problem=text("forms.task_ref", target=t)) for t in unknown
        ]
        if not unknown and (wrong := check(ToolCall(tool=name, args=args))):
            problems.append(text("forms.task", number=number, problem=wrong))
        task = Task(task_id=name_task(number), operation=name, args=args)
        tasks.append(task)
        ids |= {key: task.task_id for key in (str(number), action.id) if key}
    if problems:
        raise ValueError(joined("clauses", problems))
    return tuple(tasks)


def _build_renamer(ids: dict[str, str]) -> Callable[[str], JsonValue]:
    def rename(target: str) -> JsonValue:
        name, dot, path = target.partition(".")
        return {"$ref": ids.get(name, name) + dot + path}

    return rename


# ---- working on a list


def find_plan_step(plans: Sequence[Plan], reference: str) -> PlanStep | None:
    """Return the step with the id, number, or name in the newest plan that has it, open plans first."""
    newest = tuple(reversed(plans))
    ranked = sorted(newest, key=lambda plan: plan.status in ENDED)
    candidates = ((plan, find_step(plan, reference)) for plan in ranked)
    return next((PlanStep(plan, step) for plan, step in candidates if step is not None), None)


def find_blocking_steps(plan_step: PlanStep) -> tuple[str, ...]:
    """Return the names of the uncompleted steps that this step depends on."""
    return tuple(
        s.name
        for s in plan_step.plan.steps
        if s.step_id in plan_step.step.depends_on and s.status != "completed"
    )


def attach_task_list(plans: Sequence[Plan], tasks: tuple[Task, ...], request: str) -> PlanStep:
    """Attach a task list to the step whose open tasks it repeats, else to a plan of its own (C4.6)."""
    for plan in reversed(plans):
        for step in plan.steps:
            existing, still_open = step.task_list, find_open_tasks(step)
            if all(_is_among(task, existing) for task in tasks) and all(
                _is_among(task, tasks) for task in still_open
            ):
                return with_list(PlanStep(plan, step), tasks)
    step = Step(name=SEPARATE_PLAN, description=request)
    plan = Plan(name=SEPARATE_PLAN, goal=request, status="approved", steps=(step,))
    return with_list(PlanStep(plan, step), tasks)


def find_other_open_plan(plans: Sequence[Plan], plan: Plan) -> Plan | None:
    """Return the newest other open plan."""
    others = (candidate for candidate in reversed(plans) if candidate.plan_id != plan.plan_id)
    return next((candidate for candidate in others if candidate.status in ("approved", "in_progress")), None)


def with_list(plan_step: PlanStep, tasks: tuple[Task, ...]) -> PlanStep:
    """Return the step with `tasks` as its list; completed and equal tasks keep their status."""
    existing = {task.task_id: task for task in plan_step.step.task_list}
    completed = [task for task in plan_step.step.task_list if task.status == "completed"]
    tasks_to_store: list[Task] = []
    for task in tasks:
        match = existing.get(task.task_id) or next((d for d in completed if _is_same(d, task)), None)
        if match is not None and match in completed:
            completed.remove(match)
        tasks_to_store.append(task if match is None or not _is_same(match, task) else match)
    return _with_step(
        plan_step, plan_step.step.model_copy(update={"task_list": (*completed, *tasks_to_store)})
    )


def _is_among(task: Task, others: Sequence[Task]) -> bool:
    return any(task.task_id == other.task_id or _is_same(task, other) for other in others)


def _is_same(one: Task, other: Task) -> bool:
    return (one.operation, one.args) == (other.operation, other.args)


def with_task_progress(plan_step: PlanStep, run: State) -> PlanStep:
    """Return the step with its tasks' statuses from the `run` that executes them, and the plan's approval."""
    plan, step = plan_step
    results = {
        find_task_id(m.call_id): m
        for m in run.conversation.messages
        if isinstance(m, ToolMessage) and m.outcome is not None
    }
    started = {find_task_id(key) for key in run.calls.started}
    pending = {find_task_id(call.id) for call in run.calls.pending}
    full_results = {find_task_id(key): text for key, text in run.calls.preset_results.items()}
    tasks = tuple(
        _update_task(
            t, results.get(t.task_id), full_results.get(t.task_id), is_running=t.task_id in started | pending
        )
        for t in step.task_list
    )
    run_plan = next((p for p in run.plans.all if p.plan_id == plan.plan_id), None)
    if plan.status == "draft" and run_plan is not None and run_plan.status != "draft":
        plan = plan.model_copy(update={"status": "approved"})
    if tasks != step.task_list and step.status == "pending":
        step = step.model_copy(update={"status": "in_progress"})
    return _with_step(PlanStep(plan, step), step.model_copy(update={"task_list": tasks}))


def _update_task(
    task: Task, result: ToolMessage | None, full_result: str | None, *, is_running: bool
) -> Task:
    if result is not None:
        result_text = truncate_middle(result.text, RESULT_SHARE) if full_result is None else full_result
        result_text = result_text if len(result_text) <= USED_SHARE else None
        return task.model_copy(
            update={"status": "completed" if result.ok else "failed", "result": result_text}
        )
    if is_running:
        return task.model_copy(update={"status": "in_progress", "result": None})
    return task


def reset_interrupted_tasks(plan_step: PlanStep) -> PlanStep:
    """Return the step after an interrupted run: its tasks in progress become pending again."""
    tasks = tuple(
        t.model_copy(update={"status": "pending"}) if t.status == "in_progress" else t
        for t in plan_step.step.task_list
    )
    return _with_step(plan_step, plan_step.step.model_copy(update={"task_list": tasks}))


def with_step_status(plan_step: PlanStep, status: WorkStatus) -> PlanStep:
    """Return the step with another status, and its plan with the status that results."""
    return _with_step(plan_step, plan_step.step.model_copy(update={"status": status}))


def _with_step(plan_step: PlanStep, step: Step) -> PlanStep:
    steps = tuple(step if s.step_id == step.step_id else s for s in plan_step.plan.steps)
    return PlanStep(update_status(plan_step.plan.model_copy(update={"steps": steps})), step)


def find_open_tasks(step: Step) -> tuple[Task, ...]:
    """Return the tasks that are not completed, in order, including failed ones."""
    return tuple(task for task in step.task_list if task.status != "completed")


def build_calls(plan_step: PlanStep, *, editor: bool, check_seconds: int) -> tuple[ToolCall, ...]:
    """Build the calls to work on the step: plan approval if needed (C4.4), open tasks, and its checks."""
    plan, step = plan_step
    remaining = find_open_tasks(step)
    names = {task.task_id: f"{task.task_id}{MARK}{new_id('n')[2:]}" for task in remaining}
    completed = (task for task in step.task_list if task.status == "completed")
    results = {task.task_id: task.result for task in completed if task.result is not None}

    def resolve(target: str) -> JsonValue:
        name, dot, path = target.partition(".")
        if name in results:
            with suppress(LookupError):
                return look_up(path, results[name], {"output": results[name]})
        return {"$ref": names.get(name, name) + dot + path}

    calls: list[ToolCall] = []
    if plan.status == "draft":
        calls.append(ToolCall(id=new_id("approve"), tool="plan/approve", args={"plan_id": plan.plan_id}))
    for task in remaining:
        args = replace_refs(task.args, resolve)
        assert isinstance(args, dict)
        calls.append(ToolCall(id=names[task.task_id], tool=task.operation, args=args))
    checks = (check for check in step.acceptance if editor or parse_diagnostics_check(check) is None)
    check_calls = (build_check_call(check, find_time_limit(plan, check, check_seconds)) for check in checks)
    return (*calls, *(ToolCall(id=new_id("check"), tool=call.tool, args=call.args) for call in check_calls))


def find_task_id(call: str) -> str:
    """Return the id of the task that the call with id `call` carries out."""
    return call.partition(MARK)[0]


def format_execution_log(step: Step, checks: Sequence[tuple[str, bool, str]] = ()) -> str:
    """Format what was done, in order: tasks with status and result, then checks (name, passed, output)."""
    lines: list[str] = []
    for number, task in enumerate(step.task_list, 1):
        args = truncate_middle(json.dumps(task.args, ensure_ascii=False), RESULT_SHARE)
        lines.append(f"Task {number} ({task.status}): {wire_name(task.operation)} {args}")
        if task.result:
            lines.append(_indent(truncate_middle(task.result, RESULT_SHARE)))
    for check, passed, output in checks:
        lines.append(f"Check ({'passed' if passed else 'failed'}): {check}")
        lines.append(_indent(truncate_middle(output, RESULT_SHARE)))
    return "\n".join(lines)


def _indent(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def count_tasks(step: Step) -> tuple[int, int]:
    """Return the numbers of completed and failed tasks."""
    states = [task.status for task in step.task_list]
    return states.count("completed"), states.count("failed")


def build_plain_report(plan_step: PlanStep, failed_check: str = "", problem: str = "") -> TaskReport:
    """Build the report from the tasks alone (C4.11). `problem`: why the run ended early."""
    plan, step = plan_step
    succeeded, failed = count_tasks(step)
    failed_task = next((task for task in step.task_list if task.status == "failed"), None)
    open_count = sum(task.status not in ENDED for task in step.task_list)
    if plan.status == "draft":
        cause, action = "The plan was not approved.", "Ask the person what should be different."
    elif failed_task is not None:
        error_text = (failed_task.result or "it did not say why").strip()
        cause = truncate_middle(f"{failed_task.operation} failed: {error_text}", RESULT_SHARE)
        action = "Mend the cause, then run the step again: what is done is not done again."
    elif open_count:
        cause = problem or f"{open_count} tasks were not run."
        action = "Run the step again: it goes on where it was."
    elif failed_check:
        cause = f"A check of the step did not pass: {failed_check}"
        action = "Mend what the check shows, then run the step again."
    else:
        cause, action = "", "Ask the person whether to go on with the next step."
    return TaskReport(
        status="failed" if cause else "completed",
        succeeded=succeeded,
        failed=failed,
        summary=f"{step.name}: {succeeded} of {len(step.task_list)} tasks completed.",
        cause=cause,
        next_action=action,
    )


def read_report(reply: str, facts: TaskReport, *, cut: bool = False) -> TaskReport | Unreadable:
    """Parse a model's report; reject it if its status or numbers differ from the facts."""

    def report(value: JsonValue) -> TaskReport:
        if not isinstance(value, dict):
            raise ValueError(text("forms.report_object"))  # noqa: TRY004  # a problem of the reply
        parsed = TaskReport.model_validate({_normalize_key(key): item for key, item in value.items()})
        for name in ("status", "succeeded", "failed"):
            expected = getattr(facts, name)
            if getattr(parsed, name) != expected:
                raise ValueError(text("forms.report_differs", name=name, wanted=json.dumps(expected)))
        if facts.status == "failed" and not (parsed.cause and parsed.next_action):
            raise ValueError(text("forms.report_cause"))
        return parsed

    return read_json(reply, report, cut=cut)


_KEYS = {"next_action": "next_action", "nextAction": "next_action", "recommended_next_action": "next_action"}


_FIELDS = frozenset(TaskReport.model_fields)


def _normalize_key(name: str) -> str:
    return name if name in _FIELDS else _KEYS.get(name, f"_{name}")


def format_report_json(report: TaskReport) -> str:
    """Format the report as JSON for the caller (R4.40)."""
    return json.dumps(report.model_dump(), ensure_ascii=False, indent=1)
