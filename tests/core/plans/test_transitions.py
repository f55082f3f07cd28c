"""What a plan becomes as its steps move."""

from __future__ import annotations

from daiku.domain.work.plans import Plan, PlanStatus, Step, WorkStatus
from daiku.team.rules.plans.transitions import update_status
from tests.cases import for_each


@for_each(
    ("steps", "status"),
    [
        (("pending", "pending"), "approved"),
        (("completed", "pending"), "in_progress"),
        (("failed", "pending"), "in_progress"),
        (("failed", "in_progress"), "in_progress"),
        (("failed", "completed"), "failed"),
        (("completed", "completed"), "completed"),
    ],
)
def test_a_plan_has_failed_only_when_nothing_of_it_is_left_to_do(
    steps: tuple[WorkStatus, ...], status: PlanStatus
) -> None:
    made = tuple(Step(name=f"step {number}", status=each) for number, each in enumerate(steps))
    plan = Plan(name="p", goal="g", status="approved", steps=made)
    assert update_status(plan).status == status
