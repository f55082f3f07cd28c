"""Plans and checkpoints over the wire."""

from __future__ import annotations

from daiku.api.base import Id
from daiku.domain.base import Wire
from daiku.domain.plans import Step


class PlanRef(Wire):
    plan_id: Id


class PlanUpdateParams(PlanRef):
    """What is given replaces what was there."""

    name: str | None = None
    goal: str | None = None
    summary: str | None = None
    steps: tuple[Step, ...] | None = None


class CheckpointInfo(Wire):
    checkpoint_id: str
    session_id: str
    run_id: str
    seq: int
    time: str
    files: tuple[str, ...]


class CheckpointListResult(Wire):
    checkpoints: tuple[CheckpointInfo, ...]
