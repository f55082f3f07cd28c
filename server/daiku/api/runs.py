"""Wire types of requests that start, resume, or steer a run, and of plans and work items."""

from __future__ import annotations

from typing import Literal

from daiku.api.base import Id, Token
from daiku.domain.base import Localizable, Wire
from daiku.domain.events import ApprovalDecision
from daiku.domain.items.item import ItemState, WorkItem
from daiku.domain.messages import Image
from daiku.domain.runs import (
    ClientApprovals,
    ContextItem,
    Cursor,
    EditGrant,
    Mode,
    Range,
    RunLimits,
    RunResult,
)
from daiku.domain.work.documents import Depth
from daiku.domain.work.handovers import CommandOutcome, Report
from daiku.domain.work.patches import FileStat, PatchJSON, RangeEdit
from daiku.domain.work.plans import Plan, PlanInFull, Step
from daiku.domain.work.research import Research


class RunStart(Wire):
    """Common params of requests that start or continue a run."""

    session_id: Id | None = None
    """Absent: a new session is created."""
    model: str | None = None
    """`name` or `provider/name`; absent: the model of the settings."""
    approvals: ClientApprovals | None = None
    """Absent: `ask`."""
    limits: RunLimits | None = None
    work_done_token: Token | None = None
    partial_result_token: Token | None = None


class ChatParams(RunStart):
    text: str
    mode: Mode | None = None
    context: tuple[ContextItem, ...] = ()
    images: tuple[Image, ...] = ()
    grant: EditGrant | None = None
    cursor: Cursor | None = None
    """Position of the user's cursor, which the model is sent."""


class PlanParams(RunStart):
    goal: str
    context: tuple[ContextItem, ...] = ()


class PlanResult(RunResult):
    plan: Plan | None = None  # pyright: ignore[reportIncompatibleVariableOverride]  # what was asked for, whole


class ResearchParams(RunStart):
    """A `question`, or the plan to research."""

    plan_id: Id | None = None
    question: str | None = None


class ResearchResult(RunResult, Research):
    """Result of research; has queries even if nothing could be looked up."""


class CodeParams(RunStart):
    """An `instruction`, or the plan (or one of its steps) to implement."""

    instruction: str | None = None
    plan_id: Id | None = None
    step_id: Id | None = None
    context: tuple[ContextItem, ...] = ()


class CodeResult(RunResult):
    files: tuple[FileStat, ...] = ()


class CommandsParams(RunStart):
    """Commands to run unchanged, or an `instruction`, plan, or step that the runner turns into commands."""

    instruction: str | None = None
    commands: tuple[str, ...] = ()
    plan_id: Id | None = None
    step_id: Id | None = None


class CommandsResult(RunResult):
    """Commands that were run. `not_run`: given commands after the first failure."""

    commands: tuple[CommandOutcome, ...] = ()
    not_run: tuple[str, ...] = ()


class DocumentParams(RunStart):
    """A document (file URI) and an instruction; with `range` for these lines only."""

    uri: str
    instruction: str
    depth: Depth | None = None
    """Absent: 1."""
    range: Range | None = None


class DocumentResult(RunResult):
    """A patch of the document.

    `patch` is in code points of the old document, `edits` by line and character; absent and empty if there
    is nothing to change, or a guard blocked it.
    """

    patch: PatchJSON | None = None
    edits: tuple[RangeEdit, ...] = ()


class GenerateParams(RunStart):
    """A task, and the name of the prompt template for it."""

    query: str
    dataset: str


class GenerateResult(Wire):
    """The Generator's trajectory for a task."""

    query: str
    dataset: str
    generated_answer: str
    reasoning_steps: tuple[str, ...]
    used_bullet_ids: tuple[str, ...]
    status: Literal["success", "failure"]
    error_message: str | None
    created_at: str


class ResumeParams(Wire):
    run_id: Id
    approvals: ClientApprovals | None = None
    work_done_token: Token | None = None
    partial_result_token: Token | None = None


# ---- active runs


class RunRef(Wire):
    run_id: Id


class SteerParams(Wire):
    run_id: Id
    text: str


class ApproveParams(Wire):
    run_id: Id
    approval_id: Id
    decision: ApprovalDecision
    feedback: str | None = None
    hunks: tuple[int, ...] | None = None
    """Approved hunks of the previewed edit (0-based, in the order of the diff); absent: all."""


class AnswerParams(Wire):
    run_id: Id
    input_id: Id
    text: str


class PlanRef(Wire):
    plan_id: Id


class PlanUpdateParams(PlanRef):
    """New values of a plan's fields; absent fields stay."""

    name: str | None = None
    goal: str | None = None
    summary: str | None = None
    steps: tuple[Step, ...] | None = None


class PlanRunParams(RunStart, PlanRef):
    """The plan to run, or one step of it; without a session in the plan's own."""

    step_id: Id | None = None


class PlanRunResult(RunResult):
    """Result of a plan's run: the plan afterwards, and the claims with their proofs."""

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


class WorkListParams(Wire):
    """Filter of work items; without a state all of them."""

    state: ItemState | None = None


class WorkListResult(Localizable):
    """Work items, last changed first."""

    items: tuple[WorkItem, ...]


class WorkWatchParams(Wire):
    """`revision`: the client's last revision, or empty."""

    revision: str = ""


class WorkWatchResult(Localizable):
    """Current work items, last changed first."""

    revision: str
    items: tuple[WorkItem, ...]


class WorkPlace(Localizable):
    """An item without a worker, and the folder of its files (empty if not on this machine).

    An item that is still `processing` pauses at its next step.
    """

    item: WorkItem
    folder: str


class WorkItemRef(Wire):
    """A work item, such as `gitlab:group/name#3` or `files:name`."""

    item: Id
