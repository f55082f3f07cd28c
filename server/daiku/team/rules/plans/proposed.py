"""Turn proposed steps into a plan, revise an existing plan by them, and validate the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from daiku.domain.errors import Failure, ToolValidationError
from daiku.domain.work.plans import Plan, Step
from daiku.team.rules.plans.steptext import PlannedStep
from daiku.team.rules.proof.checks import objection, split_time_limit
from daiku.texts.text import Text, joined, text

MAX_STEPS = 30
"""Steps of a plan that are not completed yet."""


class ProposedStep(NamedTuple):
    """A proposed step. `own`: its id, or the number written before it. `after`: other steps by that, by name, or by
    place if none is numbered. A check may begin with its time limit: `(10 min) pytest`."""

    own: str
    name: str
    description: str = ""
    after: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()


def as_proposed(steps: Iterable[PlannedStep]) -> tuple[ProposedStep, ...]:
    """Convert a planner's steps; one that states no dependencies depends on the step before it.
    If some steps are numbered, the others are named `(place N)`, which no number can equal."""
    planned = tuple(steps)
    numbered = any(step.number for step in planned)
    names = [
        step.number or (f"(place {place})" if numbered else str(place))
        for place, step in enumerate(planned, 1)
    ]
    return tuple(
        ProposedStep(
            names[place] if numbered else "",
            step.name,
            step.description,
            step.depends_on if step.depends_on is not None else tuple(names[max(place - 1, 0) : place]),
            step.acceptance,
        )
        for place, step in enumerate(planned)
    )


def objections(steps: Sequence[ProposedStep]) -> tuple[str, ...]:
    """List the problems of a proposal by itself: checks that prove nothing, duplicate numbers, cycles."""
    found = [wrong for step in steps for check in step.acceptance if (wrong := objection(check))]
    own = Counter(_key(step.own) for step in steps if step.own)
    found += [
        f"{count} steps are called {name!r}: give each its own number."
        for name, count in own.items()
        if count > 1
    ]
    if len(steps) > MAX_STEPS:
        found.append(f"The plan has {len(steps)} steps; at most {MAX_STEPS} are allowed.")
    if found:
        return tuple(found)
    ids = {_key(step.own): step.own for step in steps}
    inner = [step._replace(after=tuple(each for each in step.after if _key(each) in ids)) for step in steps]
    try:
        link_steps(inner)
    except ToolValidationError as error:
        found.append(error.failure.message)
    return tuple(found)


# ---- what no plan may hold


def problems_of(plan: Plan) -> tuple[Text, ...]:
    """Everything that is wrong with a plan, whoever made it; empty where it can be worked."""
    ids = Counter(step.step_id for step in plan.steps)
    names = {step.step_id: step.name for step in reversed(plan.steps)}
    problems: list[Text] = [] if plan.steps else [text("plan.no_steps")]
    left = sum(step.status != "completed" for step in plan.steps)
    if left > MAX_STEPS:
        problems.append(text("plan.too_many_open", count=left, most=MAX_STEPS))
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
    if circle := _circle(plan.steps):
        problems.append(text("plan.circle", names=", ".join(names[each] for each in circle)))
    return tuple(problems)


def validate_plan(plan: Plan) -> Plan:
    """The plan, where it can be worked. Raises ToolValidationError with everything that is wrong."""
    if problems := problems_of(plan):
        raise _wrong(joined("sentences", problems))
    return plan


def _circle(steps: Iterable[Step]) -> tuple[str, ...]:
    """Ids of the steps that can never begin, because they wait for one another."""
    waiting: dict[str, set[str]] = {}
    for step in steps:
        waiting.setdefault(step.step_id, set()).update(
            each for each in step.depends_on if each != step.step_id
        )
    while ready := [key for key, after in waiting.items() if not after & waiting.keys()]:
        for key in ready:
            del waiting[key]
    return tuple(waiting)


# ---- from what was proposed


def link_steps(
    steps: Iterable[ProposedStep], kept: Sequence[Step] = (), numbers: Mapping[str, int] | None = None
) -> tuple[Step, ...]:
    """Replace the names in `after` with step ids, those of `kept` steps (shown under `numbers`) included. Raises
    ToolValidationError: an unknown or ambiguous name, or a finding of `problems_of` (C4.3)."""
    given = list(steps)
    if not given:
        return ()
    made = [_step(each) for each in given]
    names = _names(given, made, kept, numbers or {})
    linked = tuple(
        step.model_copy(update={"depends_on": tuple(_known(each, names) for each in row.after)})
        for step, row in zip(made, given, strict=True)
    )
    whole = Plan(name="", goal="", steps=(*kept, *linked))
    validate_plan(whole)
    return linked


def _step(given: ProposedStep) -> Step:
    checks = [split_time_limit(check) for check in given.acceptance]
    return Step(
        name=given.name,
        description=given.description,
        acceptance=tuple(check for check, _ in checks),
        check_seconds={check: seconds for check, seconds in checks if seconds},
    )


def _names(
    given: Sequence[ProposedStep], made: Sequence[Step], kept: Sequence[Step], numbers: Mapping[str, int]
) -> Mapping[str, tuple[str, ...]]:
    """Map what a step may be called to step ids: written numbers before places, both before names of kept steps."""
    rows = list(zip(given, made, strict=True))
    found: dict[str, tuple[str, ...]] = {}
    ranks = [
        [(row.own, step.step_id) for row, step in rows],
        [(step.step_id, step.step_id) for step in kept],
        [] if any(row.own.isdigit() for row in given)
        else [(str(place), step.step_id) for place, step in enumerate(made, 1)],
        [(str(numbers[step.step_id]), step.step_id) for step in kept if step.step_id in numbers],
        [(step.name, step.step_id) for step in made],
        [(step.name, step.step_id) for step in kept],
    ]  # fmt: skip
    for rank in ranks:
        here: dict[str, tuple[str, ...]] = {}
        for name, step_id in rank:
            key = _key(name)
            if key and key not in found:
                here[key] = tuple(dict.fromkeys((*here.get(key, ()), step_id)))
        found |= here
    return found


def _key(name: str) -> str:
    """How a step is called, whatever word stands before its number."""
    plain = name.strip().lower()
    for word in ("step", "ステップ"):
        rest = plain.removeprefix(word).strip(" _#")
        if plain.startswith(word) and rest.isdigit():
            return str(int(rest)) if len(rest) < 5 else plain  # longer ones are ids (C4.2)
    return plain


def _known(name: str, names: Mapping[str, tuple[str, ...]]) -> str:
    found = names.get(_key(name), ())
    if len(found) > 1:
        raise _wrong(text("plan.ambiguous", step=repr(name), count=len(found)))
    if not found:
        raise _wrong(text("plan.depends_on_none", step=repr(name)))
    return found[0]


# ---- a plan made anew


def revise_plan(
    old: Plan, steps: Iterable[ProposedStep], *, name: str, goal: str, summary: str, focus: str = ""
) -> Plan:
    """Replace all steps of the plan that are not completed, but keep the checks that the user wrote. Returns a draft.
    Raises ToolValidationError."""
    kept = tuple(step for step in old.steps if step.status == "completed")
    numbers = {step.step_id: number for number, step in enumerate(old.steps, 1)}
    given = tuple(steps)
    fresh = link_steps(given, kept, numbers)
    finished = {step.name.strip().lower(): step.step_id for step in kept} | {
        s.step_id: s.step_id for s in kept
    }
    again = {
        step.step_id: finished.get(row.own) or finished[row.name.strip().lower()]
        for row, step in zip(given, fresh, strict=True)
        if row.own in finished or row.name.strip().lower() in finished
    }
    left = tuple(
        step.model_copy(update={"depends_on": tuple(dict.fromkeys(again.get(d, d) for d in step.depends_on))})
        for step in fresh
        if step.step_id not in again
    )
    left = _with_own_checks(old, left)
    before = [check for step in old.steps if step.status != "completed" for check in step.acceptance]
    still = {check for step in left for check in step.acceptance}
    changed = {
        "name": name or old.name,
        "goal": goal or old.goal,
        "focus": focus or old.focus,
        "summary": summary or old.summary,
        "dropped_checks": tuple(dict.fromkeys(c for c in (*old.dropped_checks, *before) if c not in still)),
    }
    return validate_plan(old.model_copy(update={**changed, "status": "draft", "steps": (*kept, *left)}))


def _with_own_checks(old: Plan, left: tuple[Step, ...]) -> tuple[Step, ...]:
    """Add the user's checks of replaced steps to the step of the same name, else to the last one."""
    if not left:
        return left
    steps = list(left)
    for gone in (step for step in old.steps if step.status != "completed" and step.own_checks):
        names = [step.name.strip().lower() for step in steps]
        place = names.index(wanted) if (wanted := gone.name.strip().lower()) in names else len(steps) - 1
        step = steps[place]
        seconds = {c: gone.check_seconds[c] for c in gone.own_checks if c in gone.check_seconds}
        steps[place] = step.model_copy(
            update={
                "acceptance": tuple(dict.fromkeys((*step.acceptance, *gone.own_checks))),
                "own_checks": tuple(dict.fromkeys((*step.own_checks, *gone.own_checks))),
                "check_seconds": {**step.check_seconds, **seconds},
            }
        )
    return tuple(steps)


def mark_own_checks(old: Plan, new: Plan) -> Plan:
    """The plan as a person changed it: the checks that were not there before are theirs."""
    before = {step.step_id: step for step in old.steps}

    def marked(step: Step) -> Step:
        was = before.get(step.step_id)
        known = set(was.acceptance) - set(was.own_checks) if was is not None else set[str]()
        return step.model_copy(update={"own_checks": tuple(c for c in step.acceptance if c not in known)})

    return new.model_copy(update={"steps": tuple(marked(step) for step in new.steps)})


def difference(old: Plan, new: Plan) -> Text:
    """Describe what a revised plan changes: steps and checks that went and came. Empty if nothing."""
    names_before = [s.name for s in old.steps if s.status != "completed"]
    names_now = [s.name for s in new.steps if s.status != "completed"]
    went = [name for name in names_before if name not in names_now]
    came = [name for name in names_now if name not in names_before]
    before = {c for s in old.steps if s.status != "completed" for c in s.acceptance}
    fresh = dict.fromkeys(
        c for s in new.steps if s.status != "completed" for c in s.acceptance if c not in before
    )
    gone = [check for check in new.dropped_checks if check not in old.dropped_checks]
    lines = [
        ("plan.steps_went", [f"“{name}”" for name in went]),
        ("plan.steps_came", [f"“{name}”" for name in came]),
        ("plan.checks_gone", [f"`{check}`" for check in gone]),
        ("plan.checks_new", [f"`{check}`" for check in fresh]),
    ]
    return joined("lines", [text(key, names=", ".join(each)) for key, each in lines if each])


def _wrong(message: Text) -> ToolValidationError:
    return ToolValidationError(Failure(kind="tool", message=message))
