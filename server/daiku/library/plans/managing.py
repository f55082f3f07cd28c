"""Plan operations for fronts: find, change, approve, run, and delete. Only running a plan calls a model."""

from __future__ import annotations

from daiku.app import App
from daiku.domain.errors import Failure, UsageError
from daiku.domain.events import PlanDeleted
from daiku.domain.work.handovers import Brief
from daiku.domain.work.plans import Plan
from daiku.run.request import RunRequest
from daiku.team.coding.planner import find_planner_request
from daiku.team.rules.plans.proposed import find_plan_problems, mark_own_checks
from daiku.team.rules.plans.transitions import approve_plan, find_step, update_status
from daiku.texts.text import Text, joined, text


class InvalidPlan(UsageError):
    """An edited plan that cannot be run, with its problems."""

    def __init__(self, problems: tuple[Text, ...]) -> None:
        super().__init__(Failure(kind="usage", message=joined("sentences", problems)))
        self.problems = problems


def find_plan(app: App, name: str = "") -> Plan:
    """Return the plan with this id or name; without one, the folder's last changed plan. Raises UsageError."""
    if name.startswith("plan_"):
        return app.journal.get_plan(name)
    plans = app.journal.list_plans(app.runs.services.workspace_key)
    if not name and plans:
        return plans[0]
    matches = [plan for plan in plans if plan.name.casefold() == name.casefold()]
    if len(matches) == 1:
        return matches[0]
    message = text("plan.none_here") if not name else text("journal.no_plan", name=repr(name))
    if matches:
        message = text("plan.same_name", name=name, ids=", ".join(plan.plan_id for plan in matches))
    raise UsageError(Failure(kind="not_found", message=message, hint=text("plan.see_list")))


async def save_plan(app: App, before: Plan, plan: Plan) -> Plan:
    """Save the user's changes to the plan `before`. Raises UsageError, InvalidPlan."""
    changed = mark_own_checks(before, plan)
    if problems := find_plan_problems(changed):
        raise InvalidPlan(problems)
    return await app.runs.change_plan(changed if changed.status == "draft" else update_status(changed))


async def approve_draft(app: App, plan: Plan) -> Plan:
    """Approve a draft; other plans are returned unchanged. Raises UsageError."""
    return plan if plan.status != "draft" else await app.runs.change_plan(approve_plan(plan))


async def delete_plan(app: App, plan: Plan) -> None:
    """Delete a plan. Raises UsageError if it is unknown, or a run of its session is active."""
    session, run = app.journal.session_of_plan(plan.plan_id)
    await app.runs.record_action(session, PlanDeleted(plan_id=plan.plan_id, name=plan.name), run=run)


async def work_request(app: App, plan: Plan, step: str = "") -> RunRequest:
    """Return the request that runs a plan, or one of its steps, with the team in the plan's session.

    Approves a draft. Raises UsageError.
    """
    if step and find_step(plan, step) is None:
        steps = ", ".join(f"{candidate.step_id} ({candidate.name})" for candidate in plan.steps)
        message = text("plan.unknown_step", step=repr(step), known=steps)
        raise UsageError(Failure(kind="usage", message=message))
    plan = await approve_draft(app, plan)
    session, _ = app.journal.session_of_plan(plan.plan_id)
    prompt = find_planner_request(plan, app.journal.chunks(session))
    plan_step = find_step(plan, step) if step else None
    brief = Brief(request=prompt, plan=plan, step_id=plan_step.step_id if plan_step is not None else "")
    return RunRequest(prompt, session=session, agent="team", brief=brief)
