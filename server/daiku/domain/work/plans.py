"""Plans: goal, steps with acceptance checks, tasks; a plan's progress is a function of its steps."""

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
    """A milestone; `acceptance` are commands or diagnostics checks that must pass (R4.28–R4.30).

    `check_seconds`: how long one of them may take, where limits.check_seconds is not meant. `own_checks`:
    those of them that a person wrote, which a plan made anew keeps."""

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
    """How far a plan is as a run ends: its steps by what became of them; `open` are neither done nor failed."""

    plan_id: str
    name: str = ""
    status: PlanStatus = "draft"
    done: int = 0
    total: int = 0
    failed: int = 0
    open: int = 0


class Plan(Wire):
    """A goal and its steps (R4.31–R4.33). `focus`: what the work is about, in a few words.
    `dropped_checks`: those of unfinished steps that a plan made anew left out."""

    plan_id: str = Field(default_factory=lambda: new_id("plan"))
    name: str
    goal: str
    focus: str = ""
    summary: str = ""
    status: PlanStatus = "draft"
    steps: tuple[Step, ...] = ()
    dropped_checks: tuple[str, ...] = ()

    def progress(self) -> tuple[int, int]:
        """Steps completed, steps in all."""
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
    """A plan with how far it is, as the requests answer that are about one."""


def in_full(plan: Plan) -> PlanInFull:
    """Return the plan together with its progress."""
    return PlanInFull(**{**dict(plan.standing()), **dict(plan)})
