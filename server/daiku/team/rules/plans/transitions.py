"""Changes to a plan during execution: allowed status transitions, the derived status, and its text form."""

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
"""What a step may become; completed and failed end it unless it is reopened (C4.9)."""


def find_step(plan: Plan, reference: str) -> Step | None:
    """The step named by its id, its name or its number from 1 (`2`, `step 2`, `step_002`)."""
    wanted = reference.strip().lower()
    for step in plan.steps:
        if wanted in (step.step_id, step.name.lower()):
            return step
    number = _NUMBER.fullmatch(wanted)
    place = int(number[1]) if number else 0
    return plan.steps[place - 1] if 0 < place <= len(plan.steps) else None


_NUMBER = lazy(r"(?:step|ステップ)?[\s_]*(\d{1,4})")  # longer ones are ids (C4.2)


def move_step(plan: Plan, step_id: str, status: WorkStatus, *, reopen: bool = False) -> Plan:
    """Return the plan with the step's new status, and its own updated. Raises ToolValidationError: unknown step or
    transition."""
    step = find_step(plan, step_id)
    if step is None:
        known = ", ".join(f"{s.step_id} ({s.name})" for s in plan.steps)
        raise _wrong(text("plan.unknown_step", step=repr(step_id), known=known))
    if status != step.status and status not in MOVES[step.status] and not reopen:
        raise _wrong(text("plan.cannot_become", status=step.status, to=status))
    steps = tuple(s.model_copy(update={"status": status}) if s is step else s for s in plan.steps)
    return update_status(plan.model_copy(update={"steps": steps}))


def approve_plan(plan: Plan) -> Plan:
    """Return the plan as approved, with its status updated for steps that are completed already."""
    return update_status(plan.model_copy(update={"status": "approved"}))


def update_status(plan: Plan) -> Plan:
    """The plan with the status that follows from its steps; a draft stays one until approved."""
    return plan.model_copy(update={"status": _status(plan)})


def _status(plan: Plan) -> PlanStatus:
    states = {s.status for s in plan.steps}
    if plan.steps and states == {"completed"}:
        return "completed"
    if "failed" in states and not states & {"pending", "in_progress"}:
        return "failed"
    if states & {"completed", "in_progress", "failed"}:
        return "in_progress"
    return plan.status if plan.status in ("draft", "approved") else "approved"


def waits_for(plan: Plan, step: Step) -> tuple[str, ...]:
    """Names of the steps that have to be completed before `step`."""
    return tuple(
        other.name for other in plan.steps if other.step_id in step.depends_on and other.status != "completed"
    )


def checklist(plan: Plan) -> str:
    """Render the plan as a Markdown checklist (X.28), with details, checks and dependencies below each step."""
    marks = {"completed": "[x]", "failed": "[ ] ❌", "pending": "[ ]", "in_progress": "[ ]"}
    numbers = {step.step_id: number for number, step in enumerate(plan.steps, 1)}
    goal = [] if plan.goal.strip() == plan.name.strip() else [plan.goal, ""]
    lines = [f"# {plan.name}", "", *goal]
    for number, step in enumerate(plan.steps, 1):
        now = " (in progress)" if step.status == "in_progress" else ""
        lines.append(f"- {marks[step.status]} Step {number}: {step.name}{now} `{step.step_id}`")
        if step.description:
            lines.append(f"  {step.description}")
        lines += (f"  - {line}" for line in step_details(step, numbers))
    done, total = plan.progress()
    return "\n".join([*lines, "", f"Progress: {done} of {total} steps, plan is {plan.status}."])


def step_details(step: Step, numbers: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines for a step's checks and dependencies, in the form that `core.plans.markdown` parses."""
    for check in step.acceptance:
        plain = " ".join(check.split())
        if plain:
            longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
            fence = "`" * (longest + 1)
            pad = " " if plain[0] == "`" or plain[-1] == "`" else ""
            yield f"Check{_time(step.check_seconds.get(check, 0))}: {fence}{pad}{plain}{pad}{fence}"
    after = [str(numbers[each]) for each in step.depends_on if each in numbers]
    if after:
        yield f"Depends on: {', '.join(after)}"


def _time(seconds: int) -> str:
    if not seconds:
        return ""
    return f" ({seconds // 60} min)" if seconds % 60 == 0 else f" ({seconds} s)"


def progress_note(plans: Sequence[Plan]) -> str:
    """How the open plans stand, a line each, as the model is told beside what it is working on (R4.36)."""
    return "\n".join(_progress(plan) for plan in plans if plan.status not in ("completed", "failed"))


def _progress(plan: Plan) -> str:
    done, total = plan.progress()
    line = f"Plan “{plan.name}” ({plan.plan_id}): {done} of {total} steps completed, it is {plan.status}."
    step = next((s for s in plan.steps if s.status == "in_progress"), None)
    step = step or next((s for s in plan.steps if s.status != "completed"), None)
    return line if step is None else f"{line} Now: “{step.name}” ({step.step_id}, {step.status})."


def _wrong(message: Text) -> ToolValidationError:
    return ToolValidationError(Failure(kind="tool", message=message))
