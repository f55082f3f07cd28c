"""What one stage of work hands to the next: plan, findings, edits, commands, report; and what proves a step."""

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
    """A command that was run. One that was refused or never started has exit code 1."""

    command: str
    exit_code: int
    output: str
    call_id: str = ""
    ended: bool = True
    """False for a command that did not run, or that runs in the background."""
    unchanged: bool | None = None
    """True if it edits files in place and changed none of them, False if it changed a file that it names; None if unknown."""


Remark = Literal["passed_before", "no_tests", "check_changed"]
"""What takes from a passing check's worth: it passed before the work as well, it ran no test, or the work
changed the files that the check itself is made of."""


class Proof(Wire):
    """What a claim rests on: a command's exit code, the diagnostics of a path, the diff of a checkpoint,
    or the word of a person about a check that nothing here can show.

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
    """An unfinished line that changes put into a file (`count` times; below zero: took away)."""

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
    """What a nested run did, as its parent counts it: `core.proof.evidence.Evidence` without what is under way."""

    files: tuple[FileStat, ...] = ()
    checkpoints: tuple[str, ...] = ()
    commands: tuple[CommandOutcome, ...] = ()
    proofs: tuple[Proof, ...] = ()
    leftovers: tuple[LeftoverPlace, ...] = ()
    edits: tuple[int, ...] = ()
    """For each edit, the number of commands that ran before it."""
    acted: bool = False
    """Something outside the files and commands was changed, by an MCP server for instance."""


class Claim(Localizable):
    """One sentence of a report with what it rests on; without proof it is an assertion and is shown as one.
    `unfit`: set in journals of earlier versions, which judged the sentence; it is shown as not proven."""

    text: Text
    proofs: tuple[Proof, ...] = ()
    unfit: bool = False


class Report(Localizable):
    """What came of the work, in words, and each claim with its proofs. `from_records`: no model said it."""

    text: Text
    claims: tuple[Claim, ...] = ()
    from_records: bool = False


class PlanMade(Wire):
    """The planner hands over a plan with at least one step."""

    kind: Literal["plan"] = "plan"
    plan: Plan


class SaidInWords(Wire):
    """An agent hands over what it said, where it has nothing of its own kind: why there is no plan, for one."""

    kind: Literal["words"] = "words"
    text: str


class Findings(Research):
    """The researcher hands over what was found, by address, and what it says of it; nothing found is valid too."""

    kind: Literal["findings"] = "findings"
    notes: str = ""


class EditsMade(Wire):
    """The coder hands over the files that it changed, as they really were changed, and its notes."""

    kind: Literal["edits"] = "edits"
    files: tuple[FileStat, ...] = ()
    checkpoints: tuple[str, ...] = ()
    notes: str = ""


class CommandsRun(Wire):
    """The runner hands over every command that it really ran, in order, and its notes."""

    kind: Literal["commands"] = "commands"
    commands: tuple[CommandOutcome, ...] = ()
    notes: str = ""


class ReportMade(Localizable):
    """The reporter hands over its report."""

    kind: Literal["report"] = "report"
    report: Report


class TaskReport(Wire):
    """What came of a step's tasks (R4.40): the numbers are those of the execution log."""

    status: Literal["completed", "failed"]
    succeeded: int = Field(ge=0)
    failed: int = Field(ge=0)
    summary: str = ""
    cause: str = ""
    """Why it failed; empty when it did not."""
    next_action: str = ""
    """What is recommended to be done next."""


class TasksMade(Wire):
    """The handover of the agent that splits a step: its tasks in order, at least one."""

    kind: Literal["tasks"] = "tasks"
    tasks: tuple[Task, ...] = Field(min_length=1)


class TasksReported(Wire):
    """The handover of the agent that reports on a step's tasks."""

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
"""Read by `kind`; validated on every edge."""


class Brief(Wire):
    """What a stage is given: the request, and what the stages before it handed over so far.

    The coder gets plan, step and findings (R0.102); the runner also the edits; the reporter everything.
    """

    request: str
    plan: Plan | None = None
    step_id: str = ""
    findings: Findings | None = None
    edits: EditsMade | None = None
    commands: CommandsRun | None = None
    proofs: tuple[Proof, ...] = ()
    """What the claims of a report may rest on."""
    said: tuple[str, ...] = ()
    """What the person said in the conversation, in their own words, the latest first."""
    code: str = ""
    """The changed files as they are now, as `File:` blocks, where somebody has read them."""
    document: Document | None = None
    """The document, or the part of one, that is worked on."""
    files: str = ""
    """The names of the project's files and what they define, where that is told."""
    lessons: tuple[Lesson, ...] = ()
    """What the playbook says of this request. On record it is what the run's first event holds."""
