"""Runs: modes, limits, context items, and results."""

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
"""`completed_unverified`: the model ended its turn, but the record of the run does not show that the work is
done."""
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
"""Approval level. `ask`: ask for everything. `edits`: allow edits. `sandbox`: also allow commands in the
sandbox without network. `all`: allow everything that a level can allow. `none`: nobody is there to ask."""
ApprovalMode = Literal["ask", "edits", "sandbox", "all", "none", "work"]
"""The clients' levels, and `work` for work items, which run unattended in their own copy
(`guard/rules/unwatched.py`)."""


class RunLimits(Wire):
    """Limits at which a run stops; 0 means no limit (X.24)."""

    max_rounds: int = Field(default=250, ge=0)
    max_tokens: int = Field(default=0, ge=0)
    max_cost: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    max_seconds: int = Field(default=0, ge=0)
    max_tool_errors: int = Field(default=8, ge=0)
    max_equal_errors: int = Field(default=0, ge=0)
    """Number of calls of one tool in a row that may fail with the same message (B2.3)."""
    max_repeats: int = Field(default=3, ge=0)
    """Number of identical repetitions, without new information, before the run ends."""
    max_actions: int = Field(default=50, ge=0)
    """Number of calls per reply; further calls are not run (C4.7)."""
    max_repairs: int = Field(default=2, ge=0)
    """Number of retries of a step whose checks fail; 0 disables retries."""
    max_replans: int = Field(default=2, ge=0)
    """Number of new plans for the remaining steps after a step failed (S2P.14, S2P.17); 0 disables them."""
    max_attempts: int = Field(default=10, ge=0)
    """Number of attempts at one step: unreadable replies, repairs, and replans together; 0: no common limit."""
    check_seconds: int = Field(default=600, ge=0, le=3600)
    """Timeout in seconds of a step's check, unless the step sets its own; 0: one hour, the maximum."""
    max_verifications: int = Field(default=2, ge=0)
    """Number of repair rounds after the final verification (S2P.10, S2P.14); 0: problems are only reported."""


class Position(Wire):
    line: int
    character: int


class Range(Wire):
    start: Position
    end: Position


class Cursor(Wire):
    """Position of the user's cursor in the editor."""

    uri: str
    position: Position


class ContextItem(Wire):
    """Context that the user attached: a `uri` or text, depending on `kind`.

    `path` is the file's path in the workspace, as tools name it; it is set when a run starts.
    """

    kind: Literal["file", "selection", "diagnostics", "terminal", "url", "text", "symbol"]
    uri: str | None = None
    path: str | None = None
    range: Range | None = None
    text: str | None = None


class EditGrant(Wire):
    """Permission for the edits that the user requested in the editor.

    Changes to this file, or to these lines, need no approval in this run. Everything else follows the run's
    approval level.
    """

    uri: str
    range: Range | None = None
    """Complete lines, 0-based; absent: the complete file."""


class EnvironmentFact(Wire):
    """One fact of a run's environment (date, mode, git status), as the model reads it."""

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
    """Return all reasons as one sentence for the user; empty if there are none."""
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
    """Progress of the plan that the run carried out or changed."""
    unattended: bool = False
    """True if an approval or answer was needed and nobody was there."""
    reasons: tuple[UnverifiedReason, ...] = ()
    """Why the run is `completed_unverified`; empty with any other status."""
    unchecked: bool = False
    """Files were changed, and no test, build, or linter passed after the last change."""


def verdict_note(reasons: tuple[UnverifiedReason, ...], *, unchecked: bool) -> Text:
    """Return the verdict on a run as a sentence for the user; empty if its record supports that it is done."""
    return text("run.unchecked") if unchecked else unverified_note(reasons)


@dataclass(frozen=True, slots=True)
class Route:
    """A router's result: agents for a request in order, or none.

    `by` is the deciding rule; the tokens used are counted.
    """

    agents: tuple[str, ...] = ()
    by: Literal["rule", "model", "default"] = "default"
    usage: Usage | None = None
