"""Handovers between stages (plan, findings, edits, commands, report), and proofs of steps."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from daiku.domain.base import Localizable, Wire
from daiku.domain.held import Lesson
from daiku.domain.tools import Outcome
from daiku.domain.work.documents import (
    Document,
    Evaluated,
    PatchMade,
    ReferencesFound,
    SectionsChosen,
    SimilarityFound,
)
from daiku.domain.work.patches import FileStat
from daiku.domain.work.plans import Plan, Task
from daiku.domain.work.research import Research
from daiku.texts.text import Text


class CommandOutcome(Wire):
    """A command that was run. A command that was denied or never started has exit code 1."""

    command: str
    exit_code: int
    output: str
    call_id: str = ""
    ended: bool = True
    """False for a command that did not run, or that runs in the background."""
    unchanged: bool | None = None
    """True if it edits files in place and changed none, False if it changed a file that it names, None if
    unknown."""


Remark = Literal["passed_before", "no_tests", "check_changed"]
"""Why a passing check proves less: it also passed before the work, it ran no tests, or the work changed the
files of the check itself."""


class Proof(Wire):
    """Evidence for a claim: an exit code, diagnostics, a checkpoint's diff, or the user's confirmation.

    `ref` finds it in the journal: the id of the call or of the checkpoint.
    """

    kind: Literal["exit_code", "diagnostics", "diff", "person"]
    subject: str
    """The command, the path, or the check."""
    ref: str
    ok: bool
    value: str = ""
    """The exit code, the number of problems, or lines added and removed."""
    remarks: tuple[Remark, ...] = ()


class LeftoverPlace(Wire):
    """An unfinished line that changes added to a file (`count` times; negative: removed)."""

    path: str
    text: str
    count: int


class FailedCall(Wire):
    """A call that had no effect. `subject`: its path, command, or tool. `position`: commands that ran before it."""

    tool: str
    subject: str
    outcome: Outcome
    position: int = 0


class NestedEvidence(Wire):
    """Evidence of a nested run for its parent: `Evidence` without what is in progress."""

    files: tuple[FileStat, ...] = ()
    checkpoints: tuple[str, ...] = ()
    commands: tuple[CommandOutcome, ...] = ()
    proofs: tuple[Proof, ...] = ()
    leftovers: tuple[LeftoverPlace, ...] = ()
    edits: tuple[int, ...] = ()
    """For each edit, the number of commands that ran before it."""
    acted: bool = False
    """True if something other than files and commands was changed, for example by an MCP server."""


class Claim(Localizable):
    """A sentence of a report with its proofs; without proof it is shown as an assertion.

    `unfit` is set in journals of earlier versions, which judged the sentence; it is shown as not proven.
    """

    text: Text
    proofs: tuple[Proof, ...] = ()
    unfit: bool = False


class Report(Localizable):
    """Result of the work in words, and claims with their proofs. `from_records`: generated without a model."""

    text: Text
    claims: tuple[Claim, ...] = ()
    from_records: bool = False


class PlanMade(Wire):
    """Handover of the planner: a plan with at least one step."""

    kind: Literal["plan"] = "plan"
    plan: Plan


class SaidInWords(Wire):
    """Handover as plain text, from an agent without a type of its own or without a result."""

    kind: Literal["words"] = "words"
    text: str


class Findings(Research):
    """Handover of the researcher: its findings by URL, and notes; it may be empty."""

    kind: Literal["findings"] = "findings"
    notes: str = ""


class EditsMade(Wire):
    """Handover of the coder: the files that were actually changed, and notes."""

    kind: Literal["edits"] = "edits"
    files: tuple[FileStat, ...] = ()
    checkpoints: tuple[str, ...] = ()
    notes: str = ""


class CommandsRun(Wire):
    """Handover of the runner: every command that was actually run, in order, and notes."""

    kind: Literal["commands"] = "commands"
    commands: tuple[CommandOutcome, ...] = ()
    notes: str = ""


class ReportMade(Localizable):
    """Handover of the reporter: its report."""

    kind: Literal["report"] = "report"
    report: Report


class TaskReport(Wire):
    """Result of a step's tasks (R4.40), with the numbers of the execution log."""

    status: Literal["completed", "failed"]
    succeeded: int = Field(ge=0)
    failed: int = Field(ge=0)
    summary: str = ""
    cause: str = ""
    """Why it failed; empty if it did not."""
    next_action: str = ""
    """Recommended next action."""


class TasksMade(Wire):
    """Handover of the agent that splits a step: its tasks in order, at least one."""

    kind: Literal["tasks"] = "tasks"
    tasks: tuple[Task, ...] = Field(min_length=1)


class TasksReported(Wire):
    """Handover of the agent that reports on a step's tasks."""

    kind: Literal["task_report"] = "task_report"
    report: TaskReport


Handover: TypeAlias = Annotated[
    PlanMade
    | SaidInWords
    | Findings
    | EditsMade
    | CommandsRun
    | ReportMade
    | TasksMade
    | TasksReported
    | SectionsChosen
    | PatchMade
    | ReferencesFound
    | SimilarityFound
    | Evaluated,
    Field(discriminator="kind"),
]
"""Discriminated by `kind`; validated between all stages."""


class Brief(Wire):
    """Input of a stage: the request, and the handovers of earlier stages.

    The coder gets plan, step and findings (R0.102); the runner also the edits; the reporter everything.
    """

    request: str
    plan: Plan | None = None
    step_id: str = ""
    findings: Findings | None = None
    edits: EditsMade | None = None
    commands: CommandsRun | None = None
    proofs: tuple[Proof, ...] = ()
    """Proofs available to the claims of a report."""
    said: tuple[str, ...] = ()
    """The user's own messages of the conversation, the latest first."""
    code: str = ""
    """Current content of the changed files, as `File:` blocks, if it was read."""
    document: Document | None = None
    """The document, or part of one, to work on."""
    files: str = ""
    """Names of the project's files and their definitions, if included."""
    lessons: tuple[Lesson, ...] = ()
    """Playbook lessons for the request. In the journal they are in the run's first event."""
