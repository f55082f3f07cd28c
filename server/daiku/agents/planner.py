"""The planner: a request becomes a plan that a person can read and the others can work."""

from __future__ import annotations

from daiku.agents.telling import happened
from daiku.core.parse import Unreadable
from daiku.core.planning import checklist
from daiku.core.state import State
from daiku.domain.base import Frozen
from daiku.domain.handovers import Brief, PlanMade
from daiku.prompts import render


class PlanVariables(Frozen):
    """What the planner is asked (R0.19); on re-planning also the plan so far and what came of it."""

    prompt: str
    plan: str
    happened: str


def plan_request(brief: Brief) -> str:
    """The request to the planner."""
    return render(
        "agents/planner_request",
        PlanVariables(
            prompt=brief.request,
            plan=checklist(brief.plan) if brief.plan is not None else "",
            happened=happened(brief),
        ),
    )


def plan_made(state: State) -> PlanMade | Unreadable:
    """The plan that the run proposed last; the one that it was given is none of its own."""
    given = state.brief.plan if state.brief is not None else None
    newest = state.plans[-1] if state.plans else None
    if newest is None or not newest.steps:
        return Unreadable("no plan was proposed")
    if given is not None and newest.plan_id == given.plan_id and newest.steps == given.steps:
        return Unreadable("no new plan was proposed")
    return PlanMade(plan=newest)
