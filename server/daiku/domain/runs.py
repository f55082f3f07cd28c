"""A run: who it is for, what was asked, its limits, how it ended."""

from typing import Literal

from pydantic import Field

from daiku.dataclass import dataclass
from daiku.domain.base import Localizable, Wire
from daiku.domain.errors import Failure
from daiku.domain.messages import Usage
from daiku.domain.work.plans import PlanStanding
from daiku.texts.text import Text, joined, text

Mode = Literal["ask", "plan", "act"]
RunStatus = Literal["completed", "completed_unverified", "cancelled", "failed", "limit", "paused"]
TerminalStatus = Literal["completed", "completed_unverified", "cancelled", "failed", "limit"]
"""`completed_unverified`: the model ended its turn, and the record of the run does not support that the work is done."""
UnverifiedKind = Literal[
    "last_check_failed",
    "check_masked",
    "check_not_run",
    "still_running",
    "edit_not_applied",
    "not_approved",
    "nothing_changed",
    "no_plan",
    "todo_open",
    "cut_off",
    "refused",
    "filtered",
    "unreadable_calls",
    "tools_missing",
]
ClientApprovals = Literal["ask", "edits", "sandbox", "all", "none"]
"""Approval level. `ask`: ask for everything. `edits`: allow edits. `sandbox`: also allow commands in the sandbox without
network. `all`: allow everything that a level can allow. `none`: nobody is there to ask."""
ApprovalMode = Literal["ask", "edits", "sandbox", "all", "none", "work"]
"""What clients may ask for, and `work`, which only the worker does: a work item is worked in its own copy, and no
person watches (`guard/rules/unwatched.py` says what that allows)."""


class RunLimits(Wire):
    """Where a run stops by itself; 0 is no limit (X.24)."""

    max_rounds: int = Field(default=250, ge=0)
    max_tokens: int = Field(default=0, ge=0)
    max_cost: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    max_seconds: int = Field(default=0, ge=0)
    max_tool_errors: int = Field(default=8, ge=0)
    max_equal_errors: int = Field(default=0, ge=0)
    """How many calls of one tool in a row may fail with the same words before the run ends (B2.3)."""
    max_repeats: int = Field(default=3, ge=0)
    """How often the same thing may come again, with nothing new, before the run ends."""
    max_actions: int = Field(default=50, ge=0)
    """Calls that one reply may make; those after them are not carried out (C4.7)."""
    max_repairs: int = Field(default=2, ge=0)
    """How often a step whose checks fail is worked again before it has failed; 0: not once."""
    max_replans: int = Field(default=2, ge=0)
    """How often the rest of a plan is made anew because a step failed (S2P.14, S2P.17); 0: not once."""
    max_attempts: int = Field(default=10, ge=0)
    """Attempts at one step in all: unreadable replies, repairs and plans made anew because of it, counted
    together; 0: only they are limited, each for itself."""
    check_seconds: int = Field(default=600, ge=0, le=3600)
    """Seconds that a check of a step may take, where the step says nothing else; 0: an hour, the longest."""
    max_verifications: int = Field(default=2, ge=0)
    """Rounds of work on what the last look at everything finds (S2P.10, S2P.14); 0: it is only told."""


class Position(Wire):
    line: int
    character: int


class Range(Wire):
    start: Position
    end: Position


class Cursor(Wire):
    """Where the person's cursor is in the editor."""

    uri: str
    position: Position


class ContextItem(Wire):
    """Something that the person pointed at; `uri` or text, as its kind needs. `path` is the file's place in the
    workspace, as tools name it; it is set when a run starts."""

    kind: Literal["file", "selection", "diagnostics", "terminal", "url", "text", "symbol"]
    uri: str | None = None
    path: str | None = None
    range: Range | None = None
    text: str | None = None


class EditGrant(Wire):
    """The edit that a person asked for by pointing: changes of this file, or of these lines of it, are
    not asked about in this run. Everything else is, as the run's approvals say."""

    uri: str
    range: Range | None = None
    """Whole lines, 0-based; absent: the whole file."""


class EnvironmentFact(Wire):
    """One thing that holds around a run (its date, its mode, what git says), as the model reads it."""

    name: str
    text: str


def is_success(status: RunStatus) -> bool:
    """Return True if a run completed and its record supports that the work is done."""
    return status == "completed"


def has_answer(status: RunStatus) -> bool:
    """Return True if the model ended its turn, whether or not the record supports what it says."""
    return status in ("completed", "completed_unverified")


class UnverifiedReason(Localizable):
    """One reason why the record of a run does not support that its work is done."""

    kind: UnverifiedKind
    message: Text
    """A clause without a final period; `unverified_note` makes a sentence of all of them."""
    subject: str = ""
    """The command, tool, or file concerned; empty if there is none."""


def unverified_note(reasons: tuple[UnverifiedReason, ...]) -> Text:
    """Return all reasons as one sentence for a person; empty if there are none."""
    why = joined("clauses", [reason.message for reason in reasons])
    return text("run.unverified", why=why) if reasons else Text("")


class RunResult(Localizable):
    """How a run ended, as every front reports it."""

    run_id: str
    session_id: str
    status: RunStatus
    text: Text = Text("")
    usage: Usage = Usage()
    last_seq: int = 0
    error: Failure | None = None
    plan: PlanStanding | None = None
    """The plan that the run worked or changed, as it stood at the end."""
    unattended: bool = False
    """Something needed a person, and nobody was there to be asked."""
    reasons: tuple[UnverifiedReason, ...] = ()
    """Why the run is `completed_unverified`; empty with any other status."""
    unchecked: bool = False
    """Files were changed, and no test, build, or linter passed after the last change."""


def verdict_note(reasons: tuple[UnverifiedReason, ...], *, unchecked: bool) -> Text:
    """Return the verdict on a run as a sentence for a person; empty if its record supports that it is done."""
    return text("run.unchecked") if unchecked else unverified_note(reasons)


@dataclass(frozen=True, slots=True)
class Route:
    """A router's answer: whom a request is for, in this order; nobody in particular where `agents` is empty. `by` says
    what decided it, `usage` what a model used for that."""

    agents: tuple[str, ...] = ()
    by: Literal["rule", "model", "default"] = "default"
    usage: Usage | None = None
