"""Status changes of a plan during execution, its derived status, and its text form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from daiku.domain.errors import Failure, ToolValidationError
from daiku.domain.work.plans import Plan, PlanStatus, Step, WorkStatus
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import Text, text

MOVES: Mapping[WorkStatus, frozenset[WorkStatus]] = {
    "pending": frozenset({"in_progress", "completed", "failed"}),
    "in_progress": frozenset({"completed", "failed", "pending"}),
    "completed": frozenset(),
    "failed": frozenset(),
}
"""Allowed status changes of a step; completed and failed are final unless the step is reopened (C4.9)."""


def find_step(plan: Plan, reference: str) -> Step | None:
    """Return the step with this id, name, or number from 1 (`2`, `step 2`, `step_002`); None if there is none."""
    normalized = reference.strip().lower()
    for step in plan.steps:
        if normalized in (step.step_id, step.name.lower()):
            return step
    number = _NUMBER.fullmatch(normalized)
    position = int(number[1]) if number else 0
    return plan.steps[position - 1] if 0 < position <= len(plan.steps) else None


_NUMBER = lazy(r"(?:step|ステップ)?[\s_]*(\d{1,4})")  # longer ones are ids (C4.2)


def move_step(plan: Plan, step_id: str, status: WorkStatus, *, reopen: bool = False) -> Plan:
    """Return the plan with the step's new status and its own status updated.

    Raises ToolValidationError for an unknown step or a transition that is not allowed.
    """
    step = find_step(plan, step_id)
    if step is None:
        names = ", ".join(f"{s.step_id} ({s.name})" for s in plan.steps)
        raise _build_error(text("plan.unknown_step", step=repr(step_id), known=names))
    if status != step.status and status not in MOVES[step.status] and not reopen:
        raise _build_error(text("plan.cannot_become", status=step.status, to=status))
    steps = tuple(s.model_copy(update={"status": status}) if s is step else s for s in plan.steps)
    return update_status(plan.model_copy(update={"steps": steps}))


def approve_plan(plan: Plan) -> Plan:
    """Return the plan as approved, with its status updated for completed steps."""
    return update_status(plan.model_copy(update={"status": "approved"}))


def update_status(plan: Plan) -> Plan:
    """Return the plan with the status derived from its steps; a draft stays one until approved."""
    return plan.model_copy(update={"status": _derive_status(plan)})


def _derive_status(plan: Plan) -> PlanStatus:
    states = {s.status for s in plan.steps}
    if plan.steps and states == {"completed"}:
        return "completed"
    if "failed" in states and not states & {"pending", "in_progress"}:
        return "failed"
    if states & {"completed", "in_progress", "failed"}:
        return "in_progress"
    return plan.status if plan.status in ("draft", "approved") else "approved"


def find_blocking_steps(plan: Plan, step: Step) -> tuple[str, ...]:
    """Return the names of the uncompleted steps that `step` depends on."""
    return tuple(
        other.name for other in plan.steps if other.step_id in step.depends_on and other.status != "completed"
    )


def render_checklist(plan: Plan) -> str:
    """Render the plan as a Markdown checklist (X.28), with details, checks, and dependencies of each step."""
    marks = {"completed": "[x]", "failed": "[ ] ❌", "pending": "[ ]", "in_progress": "[ ]"}
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    goal = [] if plan.goal.strip() == plan.name.strip() else [plan.goal, ""]
    lines = [f"# {plan.name}", "", *goal]
    for number, step in enumerate(plan.steps, 1):
        progress_mark = " (in progress)" if step.status == "in_progress" else ""
        lines.append(f"- {marks[step.status]} Step {number}: {step.name}{progress_mark} `{step.step_id}`")
        if step.description:
            lines.append(f"  {step.description}")
        lines += (f"  - {line}" for line in format_step_details(step, numbers))
    completed, total = plan.progress()
    return "\n".join([*lines, "", f"Progress: {completed} of {total} steps, plan is {plan.status}."])


def format_step_details(step: Step, numbers: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines for a step's checks and dependencies, in the form that `plans.markdown` parses."""
    for check in step.acceptance:
        plain = " ".join(check.split())
        if plain:
            longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
            fence = "`" * (longest + 1)
            pad = " " if plain[0] == "`" or plain[-1] == "`" else ""
            yield f"Check{_format_time(step.check_seconds.get(check, 0))}: {fence}{pad}{plain}{pad}{fence}"
    after = [str(numbers[dependency]) for dependency in step.depends_on if dependency in numbers]
    if after:
        yield f"Depends on: {', '.join(after)}"


def _format_time(seconds: int) -> str:
    if not seconds:
        return ""
    return f" ({seconds // 60} min)" if seconds % 60 == 0 else f" ({seconds} s)"


def format_progress_note(plans: Sequence[Plan]) -> str:
    """Format the progress of the open plans, one line each, for the model (R4.36)."""
    return "\n".join(_format_progress(plan) for plan in plans if plan.status not in ("completed", "failed"))


def _format_progress(plan: Plan) -> str:
    completed, total = plan.progress()
    line = (
        f"Plan “{plan.name}” ({plan.plan_id}): {completed} of {total} steps completed, it is {plan.status}."
    )
    step = next((s for s in plan.steps if s.status == "in_progress"), None)
    step = step or next((s for s in plan.steps if s.status != "completed"), None)
    return line if step is None else f"{line} Now: “{step.name}” ({step.step_id}, {step.status})."


def _build_error(message: Text) -> ToolValidationError:
    return ToolValidationError(Failure(kind="tool", message=message))
