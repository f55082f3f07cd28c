"""Changes of a plan: which transitions there are, and a plan's status from its steps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from daiku.domain.errors import Failure, ToolValidationError
from daiku.domain.plans import Plan, PlanStatus, Step, WorkStatus

MOVES: Mapping[WorkStatus, frozenset[WorkStatus]] = {
    "pending": frozenset({"in_progress", "completed", "failed"}),
    "in_progress": frozenset({"completed", "failed", "pending"}),
    "completed": frozenset(),
    "failed": frozenset(),
}
"""What a step may become; completed and failed end it unless it is reopened (C4.9)."""


Given: TypeAlias = tuple[str, str, str, tuple[str, ...], tuple[str, ...]]
"""A step as it was proposed: own id, name, description, depends on, acceptance."""


def order(steps: Iterable[Given], kept: tuple[Step, ...] = ()) -> tuple[Step, ...]:
    """Steps as they were proposed: the model's own ids, numbers (from 1) or names become step ids, those
    of `kept` steps too. Raises ToolValidationError: unknown or circular (C4.3)."""
    given = list(steps)
    made = [Step(name=name, description=text, acceptance=checks) for _, name, text, _, checks in given]
    ids: dict[str, str] = {}
    for number, ((own, name, *_), step) in enumerate(zip(given, made, strict=True), 1):
        for key in (own, str(number), name, f"step {number}", f"step_{number}"):
            if key:
                ids.setdefault(key.lower(), step.step_id)
    for step in kept:
        ids.setdefault(step.step_id.lower(), step.step_id)
        ids.setdefault(step.name.lower(), step.step_id)
    linked = tuple(
        step.model_copy(update={"depends_on": tuple(_known(d, ids) for d in after)})
        for step, (_, _, _, after, _) in zip(made, given, strict=True)
    )
    _refuse_circles(linked)
    return linked


def revised(old: Plan, steps: Iterable[Given], *, name: str, goal: str, summary: str) -> Plan:
    """The plan made anew: what is completed stays, with its id, and is not planned again; the rest is
    replaced. A draft, for it has to be approved again. Raises ToolValidationError."""
    kept = tuple(step for step in old.steps if step.status == "completed")
    finished = {step.name.strip().lower() for step in kept} | {step.step_id for step in kept}
    given = tuple(steps)
    again = {str(n) for n, step in enumerate(given, 1) if {step[0], step[1].strip().lower()} & finished}
    fresh = order(given, kept)
    left = tuple(step for number, step in enumerate(fresh, 1) if str(number) not in again)
    gone = {step.step_id for step in fresh} - {step.step_id for step in left}
    open_ones = tuple(
        s.model_copy(update={"depends_on": tuple(d for d in s.depends_on if d not in gone)}) for s in left
    )
    changed = {"name": name or old.name, "goal": goal or old.goal, "summary": summary or old.summary}
    return old.model_copy(update={**changed, "status": "draft", "steps": (*kept, *open_ones)})


def _known(name: str, ids: Mapping[str, str]) -> str:
    found = ids.get(name.strip().lower())
    if found is None:
        raise _wrong(f"depends_on names {name!r}, which is none of the steps.")
    return found


def _refuse_circles(steps: tuple[Step, ...]) -> None:
    waiting = {s.step_id: set(s.depends_on) for s in steps}
    while ready := [key for key, after in waiting.items() if not after & waiting.keys()]:
        for key in ready:
            del waiting[key]
    if waiting:
        names = ", ".join(s.name for s in steps if s.step_id in waiting)
        raise _wrong(f"These steps wait for one another: {names}.")


def find_step(plan: Plan, reference: str) -> Step | None:
    """The step named by its id, its name or its number from 1 (`2`, `step 2`, `step_002`)."""
    wanted = reference.strip().lower()
    for step in plan.steps:
        if wanted in (step.step_id, step.name.lower()):
            return step
    number = _NUMBER.fullmatch(wanted)
    place = int(number[1]) if number else 0
    return plan.steps[place - 1] if 0 < place <= len(plan.steps) else None


_NUMBER = re.compile(r"(?:step|ステップ)?[\s_]*(\d{1,4})")  # longer ones are ids (C4.2)


def move_step(plan: Plan, step_id: str, status: WorkStatus, *, reopen: bool = False) -> Plan:
    """The plan with the step's new status, and its own status worked out again. Raises
    ToolValidationError: no such step, or a transition that there is not."""
    step = find_step(plan, step_id)
    if step is None:
        known = ", ".join(f"{s.step_id} ({s.name})" for s in plan.steps)
        raise _wrong(f"The plan has no step {step_id!r}; it has {known}.")
    if status != step.status and status not in MOVES[step.status] and not reopen:
        raise _wrong(f"A step that is {step.status} cannot become {status}; reopen it if it must.")
    steps = tuple(s.model_copy(update={"status": status}) if s is step else s for s in plan.steps)
    return with_status(plan.model_copy(update={"steps": steps}))


def with_status(plan: Plan) -> Plan:
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


def checklist(plan: Plan) -> str:
    """The plan as a Markdown checklist (X.28): `[x]` completed, `[ ]` open, a cross behind failed."""
    marks = {"completed": "[x]", "failed": "[ ] ❌", "pending": "[ ]", "in_progress": "[ ]"}
    lines = [f"# {plan.name}", "", plan.goal, ""]
    for number, step in enumerate(plan.steps, 1):
        now = " (in progress)" if step.status == "in_progress" else ""
        lines.append(f"- {marks[step.status]} Step {number}: {step.name}{now} `{step.step_id}`")
        if step.description:
            lines.append(f"  {step.description}")
    done, total = plan.progress()
    return "\n".join([*lines, "", f"Progress: {done} of {total} steps, plan is {plan.status}."])


def progress_note(plans: Sequence[Plan]) -> str:
    """How the open plans stand, a line each, as the model is told beside what it is working on (R4.36)."""
    return "\n".join(_progress(plan) for plan in plans if plan.status not in ("completed", "failed"))


def _progress(plan: Plan) -> str:
    done, total = plan.progress()
    line = f"Plan “{plan.name}” ({plan.plan_id}): {done} of {total} steps completed, it is {plan.status}."
    step = next((s for s in plan.steps if s.status == "in_progress"), None)
    step = step or next((s for s in plan.steps if s.status != "completed"), None)
    return line if step is None else f"{line} Now: “{step.name}” ({step.step_id}, {step.status})."


def _wrong(message: str) -> ToolValidationError:
    return ToolValidationError(Failure(kind="tool", message=message))
