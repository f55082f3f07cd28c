"""Requests that start, resume or steer a run, and requests about plans and work items, with their results."""

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
    """What every request that starts or goes on with a run may carry."""

    session_id: Id | None = None
    """Absent: a new session is made."""
    model: str | None = None
    """`name` or `provider/name`; absent: as the settings say."""
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
    """Where the person works just now; the model is told of it."""


class PlanParams(RunStart):
    goal: str
    context: tuple[ContextItem, ...] = ()


class PlanResult(RunResult):
    plan: Plan | None = None  # pyright: ignore[reportIncompatibleVariableOverride]  # what was asked for, whole


class ResearchParams(RunStart):
    """A `question`, or the plan to find out for."""

    plan_id: Id | None = None
    question: str | None = None


class ResearchResult(RunResult, Research):
    """Queries also where nothing could be looked up."""


class CodeParams(RunStart):
    """`instruction`, or the plan (and one of its steps) to carry out."""

    instruction: str | None = None
    plan_id: Id | None = None
    step_id: Id | None = None
    context: tuple[ContextItem, ...] = ()


class CodeResult(RunResult):
    files: tuple[FileStat, ...] = ()


class CommandsParams(RunStart):
    """`commands` to run as they are, or an `instruction`, the plan or one of its steps that the runner
    turns into commands."""

    instruction: str | None = None
    commands: tuple[str, ...] = ()
    plan_id: Id | None = None
    step_id: Id | None = None


class CommandsResult(RunResult):
    """`not_run`: of the commands that were given, those behind the first that failed."""

    commands: tuple[CommandOutcome, ...] = ()
    not_run: tuple[str, ...] = ()


class DocumentParams(RunStart):
    """A document (a file URI) and what is to be done with it; with `range` only with these lines."""

    uri: str
    instruction: str
    depth: Depth | None = None
    """Absent: 1."""
    range: Range | None = None


class DocumentResult(RunResult):
    """`patch` in code points of the document as it stood, `edits` the same by line and character; absent and empty
    where nothing is to be changed, or a guard blocked it."""

    patch: PatchJSON | None = None
    edits: tuple[RangeEdit, ...] = ()


class GenerateParams(RunStart):
    """A task, and the name of the prompt template that it is put into."""

    query: str
    dataset: str


class GenerateResult(Wire):
    """How a task was answered with the playbook's help: the Trajectory of its Generator."""

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


# ---- a run under way


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
    """Of the previewed edit, only these (0-based, in the order of the diff); absent: all."""


class AnswerParams(Wire):
    run_id: Id
    input_id: Id
    text: str


class PlanRef(Wire):
    plan_id: Id


class PlanUpdateParams(PlanRef):
    """New values of a plan's fields; a field that is absent stays as it is."""

    name: str | None = None
    goal: str | None = None
    summary: str | None = None
    steps: tuple[Step, ...] | None = None


class PlanRunParams(RunStart, PlanRef):
    """The plan to work, or one step of it; without a session in the one that it is in."""

    step_id: Id | None = None


class PlanRunResult(RunResult):
    """Result of a plan's run, the plan after it, and the claims with their proofs."""

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
    """Without a state all of them."""

    state: ItemState | None = None


class WorkListResult(Localizable):
    """Last changed first."""

    items: tuple[WorkItem, ...]


class WorkWatchParams(Wire):
    """`revision`: the one that came with the items that the client has; empty where it has none."""

    revision: str = ""


class WorkWatchResult(Localizable):
    """The items as they are now, last changed first."""

    revision: str
    items: tuple[WorkItem, ...]


class WorkPlace(Localizable):
    """An item that nobody works now, and the folder in which its files are: empty where that is not on this machine.
    An item that is still `processing` pauses at its next step."""

    item: WorkItem
    folder: str


class WorkItemRef(Wire):
    """`item` is named like `gitlab:group/name#3` or `files:name`."""

    item: Id
