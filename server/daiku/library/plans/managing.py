"""Plans for fronts: find, change, approve, work, and delete them. Only the work on a plan asks a model."""

from __future__ import annotations

from daiku.app import App
from daiku.domain.errors import Failure, UsageError
from daiku.domain.events import PlanDeleted
from daiku.domain.work.handovers import Brief
from daiku.domain.work.plans import Plan
from daiku.run.request import RunRequest
from daiku.team.coding.planner import find_planner_request
from daiku.team.rules.plans.proposed import mark_own_checks, problems_of
from daiku.team.rules.plans.transitions import approve_plan, find_step, update_status
from daiku.texts.text import Text, joined, text


class InvalidPlan(UsageError):
    """A changed plan that cannot be worked, with each of its problems."""

    def __init__(self, problems: tuple[Text, ...]) -> None:
        super().__init__(Failure(kind="usage", message=joined("sentences", problems)))
        self.problems = problems


def plan_named(app: App, name: str = "") -> Plan:
    """Return the plan with this id or name; without one the last changed of the folder. Raises UsageError."""
    if name.startswith("plan_"):
        return app.journal.get_plan(name)
    plans = app.journal.list_plans(app.runs.services.workspace_key)
    if not name and plans:
        return plans[0]
    named = [plan for plan in plans if plan.name.casefold() == name.casefold()]
    if len(named) == 1:
        return named[0]
    message = text("plan.none_here") if not name else text("journal.no_plan", name=repr(name))
    if named:
        message = text("plan.same_name", name=name, ids=", ".join(plan.plan_id for plan in named))
    raise UsageError(Failure(kind="not_found", message=message, hint=text("plan.see_list")))


async def save_plan(app: App, before: Plan, plan: Plan) -> Plan:
    """Record a person's change of the plan `before`. Raises UsageError, InvalidPlan."""
    changed = mark_own_checks(before, plan)
    if problems := problems_of(changed):
        raise InvalidPlan(problems)
    return await app.runs.change_plan(changed if changed.status == "draft" else update_status(changed))


async def approve_draft(app: App, plan: Plan) -> Plan:
    """Approve a draft; a plan that was approved before stays as it is. Raises UsageError."""
    return plan if plan.status != "draft" else await app.runs.change_plan(approve_plan(plan))


async def delete_plan(app: App, plan: Plan) -> None:
    """Record that the plan is deleted. Raises UsageError: unknown, or a run of its session is in progress."""
    session, run = app.journal.session_of_plan(plan.plan_id)
    await app.runs.record_action(session, PlanDeleted(plan_id=plan.plan_id, name=plan.name), run=run)


async def work_request(app: App, plan: Plan, step: str = "") -> RunRequest:
    """Return the request by which the team works a plan or one step of it, in the session of the plan.
    Approves a draft. Raises UsageError."""
    if step and find_step(plan, step) is None:
        known = ", ".join(f"{each.step_id} ({each.name})" for each in plan.steps)
        message = text("plan.unknown_step", step=repr(step), known=known)
        raise UsageError(Failure(kind="usage", message=message))
    plan = await approve_draft(app, plan)
    session, _ = app.journal.session_of_plan(plan.plan_id)
    asked = find_planner_request(plan, app.journal.chunks(session))
    chosen = find_step(plan, step) if step else None
    brief = Brief(request=asked, plan=plan, step_id=chosen.step_id if chosen is not None else "")
    return RunRequest(asked, session=session, agent="team", brief=brief)
