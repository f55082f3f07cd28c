"""Plans: goals, steps with acceptance checks, and tasks."""

from typing import Literal

from pydantic import Field

from daiku.domain.base import JsonObject, Wire, new_id

WorkStatus = Literal["pending", "in_progress", "completed", "failed"]
PlanStatus = Literal["draft", "approved", "in_progress", "completed", "failed"]


class Task(Wire):
    """One atomic operation of a step: one tool call (R4.25–R4.27)."""

    task_id: str = Field(default_factory=lambda: new_id("task"))
    operation: str
    args: JsonObject = {}
    status: WorkStatus = "pending"
    result: str | None = None


class Step(Wire):
    """A milestone. `acceptance` lists the commands or diagnostics checks that must pass (R4.28–R4.30).

    `check_seconds` maps checks to timeouts in seconds that override `limits.check_seconds`. `own_checks` are
    those that the user wrote; a replan keeps them.
    """

    step_id: str = Field(default_factory=lambda: new_id("step"))
    name: str
    description: str = ""
    status: WorkStatus = "pending"
    depends_on: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()
    check_seconds: dict[str, int] = {}
    own_checks: tuple[str, ...] = ()
    task_list: tuple[Task, ...] = ()


class PlanStanding(Wire):
    """Progress of a plan at the end of a run: its steps by status.

    `open` steps are neither completed nor failed.
    """

    plan_id: str
    name: str = ""
    status: PlanStatus = "draft"
    done: int = 0
    total: int = 0
    failed: int = 0
    open: int = 0


class Plan(Wire):
    """A goal and its steps (R4.31–R4.33).

    `focus`: the subject of the work, in a few words. `dropped_checks`: checks of unfinished steps that a
    replan left out.
    """

    plan_id: str = Field(default_factory=lambda: new_id("plan"))
    name: str
    goal: str
    focus: str = ""
    summary: str = ""
    status: PlanStatus = "draft"
    steps: tuple[Step, ...] = ()
    dropped_checks: tuple[str, ...] = ()

    def progress(self) -> tuple[int, int]:
        """Return the number of completed steps and of all steps."""
        return sum(s.status == "completed" for s in self.steps), len(self.steps)

    def standing(self) -> PlanStanding:
        """Return the plan's progress: its steps counted by status."""
        done, total = self.progress()
        failed = sum(s.status == "failed" for s in self.steps)
        return PlanStanding(
            plan_id=self.plan_id,
            name=self.name,
            status=self.status,
            done=done,
            total=total,
            failed=failed,
            open=total - done - failed,
        )


class PlanInFull(Plan, PlanStanding):
    """A plan with its progress, for requests about one plan."""


def in_full(plan: Plan) -> PlanInFull:
    """Return the plan together with its progress."""
    return PlanInFull(**{**dict(plan.standing()), **dict(plan)})
