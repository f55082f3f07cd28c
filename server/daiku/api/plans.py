"""Plans and checkpoints over the wire."""

from __future__ import annotations

from daiku.api.base import Id
from daiku.api.runs import RunStart
from daiku.domain.base import Wire
from daiku.domain.runs import RunResult
from daiku.domain.work.handovers import Report
from daiku.domain.work.plans import PlanInFull, Step


class PlanRef(Wire):
    plan_id: Id


class PlanUpdateParams(PlanRef):
    """What is given replaces what was there."""

    name: str | None = None
    goal: str | None = None
    summary: str | None = None
    steps: tuple[Step, ...] | None = None


class PlanRunParams(RunStart, PlanRef):
    """The plan to work, or one step of it; without a session in the one that it is in."""

    step_id: Id | None = None


class PlanRunResult(RunResult):
    """How the work ended, the plan as it is now, and what is claimed of the work with its proofs."""

    plan: PlanInFull | None = None  # pyright: ignore[reportIncompatibleVariableOverride]  # frozen
    report: Report | None = None


class PlanImportParams(Wire):
    """A checklist, a planner's lines, or a plan as JSON; without a session in a new one."""

    markdown: str
    session_id: Id | None = None


class CheckpointInfo(Wire):
    checkpoint_id: str
    session_id: str
    run_id: str
    seq: int
    time: str
    files: tuple[str, ...]


class CheckpointListResult(Wire):
    checkpoints: tuple[CheckpointInfo, ...]
