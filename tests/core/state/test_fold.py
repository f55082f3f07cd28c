"""The fold of events: what a run knows of the session's plans."""

from __future__ import annotations

from daiku.domain.events import PlanDeleted, PlanEvent
from daiku.domain.work.plans import Plan
from daiku.run.rules.state.fold import fold


def test_a_deleted_plan_is_known_no_more() -> None:
    first, second = Plan(name="a", goal="a"), Plan(name="b", goal="b")
    events = [PlanEvent(plan=first), PlanEvent(plan=second), PlanDeleted(plan_id=second.plan_id, name="b")]
    assert (fold(events).plans.all, fold(events).plans.last) == ((first,), "")
    deleted = PlanDeleted(plan_id=first.plan_id, name="a")
    assert fold([*events[:2], deleted]).plans.last == second.plan_id
