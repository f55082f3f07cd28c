"""Turn proposed steps into a plan, revise an existing plan with them, and validate the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from daiku.domain.errors import Failure, ToolValidationError
from daiku.domain.work.plans import Plan, Step
from daiku.team.rules.plans.reply import PlannedStep
from daiku.team.rules.proof.checks import find_check_problem, split_time_limit
from daiku.texts.text import Text, joined, text

MAX_STEPS = 30
"""Maximum number of uncompleted steps in a plan."""


class ProposedStep(NamedTuple):
    """A proposed step. `own`: its id, or the number written before it.

    `after` names the steps it depends on by that, by name, or by position if none is numbered. A check may begin with
    its time limit: `(10 min) pytest`.
    """

    own: str
    name: str
    description: str = ""
    after: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()


def as_proposed(steps: Iterable[PlannedStep]) -> tuple[ProposedStep, ...]:
    """Convert a planner's steps; a step without stated dependencies depends on the one before it.

    If some steps are numbered, the others are named `(place N)`, which cannot equal a number.
    """
    planned = tuple(steps)
    is_numbered = any(step.number for step in planned)
    names = [
        step.number or (f"(place {index})" if is_numbered else str(index))
        for index, step in enumerate(planned, 1)
    ]
    return tuple(
        ProposedStep(
            names[index] if is_numbered else "",
            step.name,
            step.description,
            step.depends_on if step.depends_on is not None else tuple(names[max(index - 1, 0) : index]),
            step.acceptance,
        )
        for index, step in enumerate(planned)
    )


def find_proposal_problems(steps: Sequence[ProposedStep]) -> tuple[str, ...]:
    """List a proposal's problems: checks that prove nothing, duplicate numbers, cycles."""
    problems = [
        problem for step in steps for check in step.acceptance if (problem := find_check_problem(check))
    ]
    counts_by_id = Counter(_normalize_name(step.own) for step in steps if step.own)
    problems += [
        f"{count} steps are called {name!r}: give each its own number."
        for name, count in counts_by_id.items()
        if count > 1
    ]
    if len(steps) > MAX_STEPS:
        problems.append(f"The plan has {len(steps)} steps; at most {MAX_STEPS} are allowed.")
    if problems:
        return tuple(problems)
    ids = {_normalize_name(step.own): step.own for step in steps}
    known_dependencies = [
        step._replace(after=tuple(step_id for step_id in step.after if _normalize_name(step_id) in ids))
        for step in steps
    ]
    try:
        link_steps(known_dependencies)
    except ToolValidationError as error:
        problems.append(error.failure.message)
    return tuple(problems)


# ---- validation


def find_plan_problems(plan: Plan) -> tuple[Text, ...]:
    """Return all problems of a plan; empty if it can be executed."""
    ids = Counter(step.step_id for step in plan.steps)
    names = {step.step_id: step.name for step in reversed(plan.steps)}
    problems: list[Text] = [] if plan.steps else [text("plan.no_steps")]
    open_count = sum(step.status != "completed" for step in plan.steps)
    if open_count > MAX_STEPS:
        problems.append(text("plan.too_many_open", count=open_count, most=MAX_STEPS))
    if any(not step.name.strip() for step in plan.steps):
        problems.append(text("plan.step_without_name"))
    problems += [
        text(
            "plan.same_id", step=step_id, names=", ".join(s.name for s in plan.steps if s.step_id == step_id)
        )
        for step_id, count in ids.items()
        if count > 1
    ]
    for step in plan.steps:
        unknown = [each for each in step.depends_on if each not in ids]
        problems += [text("plan.depends_on_unknown", name=step.name, step=repr(each)) for each in unknown]
        if step.step_id in step.depends_on:
            problems.append(text("plan.waits_for_itself", name=step.name))
    if cycle := _find_cycle(plan.steps):
        problems.append(text("plan.circle", names=", ".join(names[each] for each in cycle)))
    return tuple(problems)


def validate_plan(plan: Plan) -> Plan:
    """Return the plan if it can be executed. Raises ToolValidationError with all problems."""
    if problems := find_plan_problems(plan):
        raise _build_error(joined("sentences", problems))
    return plan


def _find_cycle(steps: Iterable[Step]) -> tuple[str, ...]:
    """Return the ids of steps that can never begin because of a dependency cycle."""
    waiting: dict[str, set[str]] = {}
    for step in steps:
        waiting.setdefault(step.step_id, set()).update(
            dependency for dependency in step.depends_on if dependency != step.step_id
        )
    while ready_ids := [key for key, after in waiting.items() if not after & waiting.keys()]:
        for key in ready_ids:
            del waiting[key]
    return tuple(waiting)


# ---- linking proposed steps


def link_steps(
    steps: Iterable[ProposedStep], completed: Sequence[Step] = (), numbers: Mapping[str, int] | None = None
) -> tuple[Step, ...]:
    """Replace the names in `after` with step ids, also of `completed` steps, which are shown under `numbers`.

    Raises ToolValidationError for an unknown or ambiguous name, or a problem of the resulting plan (C4.3).
    """
    proposed = list(steps)
    if not proposed:
        return ()
    built = [_build_step(item) for item in proposed]
    names = _map_names(proposed, built, completed, numbers or {})
    linked = tuple(
        step.model_copy(update={"depends_on": tuple(_resolve_name(item, names) for item in row.after)})
        for step, row in zip(built, proposed, strict=True)
    )
    plan = Plan(name="", goal="", steps=(*completed, *linked))
    validate_plan(plan)
    return linked


def _build_step(proposed: ProposedStep) -> Step:
    checks = [split_time_limit(check) for check in proposed.acceptance]
    return Step(
        name=proposed.name,
        description=proposed.description,
        acceptance=tuple(check for check, _ in checks),
        check_seconds={check: seconds for check, seconds in checks if seconds},
    )


def _map_names(
    proposed: Sequence[ProposedStep],
    built: Sequence[Step],
    completed: Sequence[Step],
    numbers: Mapping[str, int],
) -> Mapping[str, tuple[str, ...]]:
    """Map the names of steps to ids: written numbers before positions, both before names of completed steps."""
    rows = list(zip(proposed, built, strict=True))
    ids_by_name: dict[str, tuple[str, ...]] = {}
    ranks = [
        [(row.own, step.step_id) for row, step in rows],
        [(step.step_id, step.step_id) for step in completed],
        [] if any(row.own.isdigit() for row in proposed)
        else [(str(index), step.step_id) for index, step in enumerate(built, 1)],
        [(str(numbers[step.step_id]), step.step_id) for step in completed if step.step_id in numbers],
        [(step.name, step.step_id) for step in built],
        [(step.name, step.step_id) for step in completed],
    ]  # fmt: skip
    for rank in ranks:
        ids_of_rank: dict[str, tuple[str, ...]] = {}
        for name, step_id in rank:
            key = _normalize_name(name)
            if key and key not in ids_by_name:
                ids_of_rank[key] = tuple(dict.fromkeys((*ids_of_rank.get(key, ()), step_id)))
        ids_by_name |= ids_of_rank
    return ids_by_name


def _normalize_name(name: str) -> str:
    """Normalize the name of a step: lower case, and only the number of `step N`."""
    plain = name.strip().lower()
    for word in ("step", "ステップ"):
        rest = plain.removeprefix(word).strip(" _#")
        if plain.startswith(word) and rest.isdigit():
            return str(int(rest)) if len(rest) < 5 else plain  # longer ones are ids (C4.2)
    return plain


def _resolve_name(name: str, names: Mapping[str, tuple[str, ...]]) -> str:
    ids = names.get(_normalize_name(name), ())
    if len(ids) > 1:
        raise _build_error(text("plan.ambiguous", step=repr(name), count=len(ids)))
    if not ids:
        raise _build_error(text("plan.depends_on_none", step=repr(name)))
    return ids[0]


# ---- revising a plan


def revise_plan(
    old: Plan, steps: Iterable[ProposedStep], *, name: str, goal: str, summary: str, focus: str = ""
) -> Plan:
    """Replace all uncompleted steps of the plan, but keep checks that the user added. Returns a draft.

    Raises ToolValidationError.
    """
    completed = tuple(step for step in old.steps if step.status == "completed")
    numbers = {step.step_id: number for number, step in enumerate(old.steps, 1)}
    proposed = tuple(steps)
    new_steps = link_steps(proposed, completed, numbers)
    ids_by_name = {step.name.strip().lower(): step.step_id for step in completed} | {
        s.step_id: s.step_id for s in completed
    }
    completed_ids = {
        step.step_id: ids_by_name.get(row.own) or ids_by_name[row.name.strip().lower()]
        for row, step in zip(proposed, new_steps, strict=True)
        if row.own in ids_by_name or row.name.strip().lower() in ids_by_name
    }
    open_steps = tuple(
        step.model_copy(
            update={"depends_on": tuple(dict.fromkeys(completed_ids.get(d, d) for d in step.depends_on))}
        )
        for step in new_steps
        if step.step_id not in completed_ids
    )
    open_steps = _with_own_checks(old, open_steps)
    old_checks = [check for step in old.steps if step.status != "completed" for check in step.acceptance]
    new_checks = {check for step in open_steps for check in step.acceptance}
    details = {
        "name": name or old.name,
        "goal": goal or old.goal,
        "focus": focus or old.focus,
        "summary": summary or old.summary,
        "dropped_checks": tuple(
            dict.fromkeys(c for c in (*old.dropped_checks, *old_checks) if c not in new_checks)
        ),
    }
    return validate_plan(
        old.model_copy(update={**details, "status": "draft", "steps": (*completed, *open_steps)})
    )


def _with_own_checks(old: Plan, open_steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Add the user's checks of replaced steps to the step of the same name, else to the last one."""
    if not open_steps:
        return open_steps
    steps = list(open_steps)
    for replaced in (step for step in old.steps if step.status != "completed" and step.own_checks):
        names = [step.name.strip().lower() for step in steps]
        index = names.index(name) if (name := replaced.name.strip().lower()) in names else len(steps) - 1
        step = steps[index]
        seconds = {c: replaced.check_seconds[c] for c in replaced.own_checks if c in replaced.check_seconds}
        steps[index] = step.model_copy(
            update={
                "acceptance": tuple(dict.fromkeys((*step.acceptance, *replaced.own_checks))),
                "own_checks": tuple(dict.fromkeys((*step.own_checks, *replaced.own_checks))),
                "check_seconds": {**step.check_seconds, **seconds},
            }
        )
    return tuple(steps)


def mark_own_checks(old: Plan, new: Plan) -> Plan:
    """Return the plan as edited by the user, with added checks marked as the user's own."""
    before = {step.step_id: step for step in old.steps}

    def mark(step: Step) -> Step:
        old_step = before.get(step.step_id)
        planned = set(old_step.acceptance) - set(old_step.own_checks) if old_step is not None else set[str]()
        return step.model_copy(update={"own_checks": tuple(c for c in step.acceptance if c not in planned)})

    return new.model_copy(update={"steps": tuple(mark(step) for step in new.steps)})


def describe_changes(old: Plan, new: Plan) -> Text:
    """Describe the changes of a revised plan: removed and added steps and checks. Empty if there are none."""
    names_before = [s.name for s in old.steps if s.status != "completed"]
    names_now = [s.name for s in new.steps if s.status != "completed"]
    removed = [name for name in names_before if name not in names_now]
    added = [name for name in names_now if name not in names_before]
    old_checks = {c for s in old.steps if s.status != "completed" for c in s.acceptance}
    new_checks = dict.fromkeys(
        c for s in new.steps if s.status != "completed" for c in s.acceptance if c not in old_checks
    )
    newly_dropped = [check for check in new.dropped_checks if check not in old.dropped_checks]
    lines = [
        ("plan.steps_went", [f"“{name}”" for name in removed]),
        ("plan.steps_came", [f"“{name}”" for name in added]),
        ("plan.checks_gone", [f"`{check}`" for check in newly_dropped]),
        ("plan.checks_new", [f"`{check}`" for check in new_checks]),
    ]
    return joined("lines", [text(key, names=", ".join(names)) for key, names in lines if names])


def _build_error(message: Text) -> ToolValidationError:
    return ToolValidationError(Failure(kind="tool", message=message))
