"""State of a run as one immutable value, in parts that change together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple, Never

from daiku.domain.errors import Failure
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    HandoffEnd,
    HandoffStart,
    InputAsked,
    InputGiven,
    Reminder,
    RunFinished,
    ToolCallEvent,
)
from daiku.domain.held import Lesson, Recalled, RulesText, TodoItem
from daiku.domain.messages import FinishReason, Message, Usage, UserMessage
from daiku.domain.runs import EnvironmentFact, Mode, RunLimits
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Brief
from daiku.domain.work.plans import Plan
from daiku.domain.work.research import Research
from daiku.run.rules.state.repetition import RepetitionHistory
from daiku.team.rules.proof.attempts import Attempts
from daiku.team.rules.proof.evidence import Evidence
from daiku.texts.text import NO_TEXT, Text

NOTHING: Mapping[str, Never] = MappingProxyType({})
CHECKER = "daiku"
"""Agent name of Daiku's own messages to the model, which have a `reminder`."""
PERSON = "user"
"""Agent name of user messages during a run."""
WORKER = "worker"
"""Agent name of a worker's notes to the model, such as that its work tree was lost."""


class Request(NamedTuple):
    """The run's request; set once, by its first event.

    `text`: the request as the model reads it. `limits`: of this run. `asked_limits`: of its nested runs.
    `rounds_before`: rounds used before it began. `asks_model`: False if replies are computed. `may_edit`: its
    agent may change files.
    """

    begun: bool = False
    asks_model: bool = True
    prompt: str = ""
    text: str = ""
    mode: Mode = "act"
    model: str = ""
    limits: RunLimits = RunLimits()
    asked_limits: RunLimits = RunLimits()
    rounds_before: int = 0
    brief: Brief | None = None
    lessons: tuple[Lesson, ...] = ()
    may_edit: bool = False
    wording: str = ""
    """The user's own words."""


class Conversation(NamedTuple):
    """Messages, also of the session's earlier runs; those of this run begin at index `start`.

    `queued`: user messages that wait for pending calls, as providers refuse them between calls and results.
    `steering`: user messages since the start. `text`: latest answer. `finish`: why it ended. `half`:
    interrupted answer to continue. `draft`: shown part of an interrupted reply. `progress`, `rules`,
    `environment`, `recalled`, `lessons`: what the model received. `cited`: ids of lessons that it cited.
    `tokens`: size of its last request and reply, which include `counted` messages. `files_read`,
    `files_changed`: listed in a summary.
    """

    messages: tuple[Message, ...] = ()
    start: int = 0
    queued: tuple[UserMessage, ...] = ()
    steering: tuple[str, ...] = ()
    text: Text = NO_TEXT
    finish: FinishReason = "stop"
    half: Text = NO_TEXT
    draft: str = ""
    progress: str = ""
    rules: Mapping[str, RulesText] = NOTHING
    environment: tuple[EnvironmentFact, ...] = ()
    tokens: int = 0
    counted: int = 0
    files_read: tuple[str, ...] = ()
    files_changed: tuple[str, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    cited: tuple[str, ...] = ()


class Calls(NamedTuple):
    """Tool calls: `pending` ones without a result, in order, and `started` ones of them, by id.

    `preset`: calls given to a run without a model. `preset_results`: raw texts of results that they use, by
    call.
    """

    pending: tuple[ToolCall, ...] = ()
    started: Mapping[str, ToolCallEvent] = NOTHING
    preset: tuple[ToolCall, ...] = ()
    preset_results: Mapping[str, str] = NOTHING


class Questions(NamedTuple):
    """Questions to the user by call, and answers by question id."""

    approvals: Mapping[str, ApprovalAsked] = NOTHING
    decisions: Mapping[str, ApprovalGiven] = NOTHING
    inputs: Mapping[str, InputAsked] = NOTHING
    answers: Mapping[str, InputGiven] = NOTHING

    def is_allowed(self, call_id: str) -> bool:
        """Return True if the user was asked about this call and allowed it."""
        approval = self.approvals.get(call_id)
        decision = self.decisions.get(approval.approval_id) if approval is not None else None
        return decision is not None and decision.decision in ("allow_once", "allow_always")


class NestedRuns(NamedTuple):
    """Nested runs: `open` ones by call, `returned` ones in order, and the rounds of these."""

    open: Mapping[str, HandoffStart] = NOTHING
    returned: tuple[HandoffEnd, ...] = ()
    rounds: int = 0


class Plans(NamedTuple):
    """Every plan of the session, and the id of the one changed last by this run (empty: none)."""

    all: tuple[Plan, ...] = ()
    last: str = ""


class Spending(NamedTuple):
    """Model requests of the run, and tokens and cost including nested runs; `own` excludes these."""

    rounds: int = 0
    usage: Usage = Usage()
    own: Usage = Usage()


class Health(NamedTuple):
    """Progress of the run.

    `trail`: history for finding loops. `failed_replies`: consecutive replies without a successful call.
    `reply_worked`: the present reply has one. `reminders`: active reminders, in order.
    """

    trail: RepetitionHistory = RepetitionHistory()
    failed_replies: int = 0
    reply_worked: bool = False
    reminders: tuple[Reminder, ...] = ()


class State(NamedTuple):
    """State of a run: the fold of its events (`state.fold`).

    `done`: its effects, including nested runs. `research`: web findings. `todo`: the model's list, kept for
    later runs. `tainted`: contains untrusted text. `unattended`: approval was required, but no user was
    present.
    """

    request: Request = Request()
    conversation: Conversation = Conversation()
    calls: Calls = Calls()
    questions: Questions = Questions()
    nested: NestedRuns = NestedRuns()
    plans: Plans = Plans()
    spending: Spending = Spending()
    health: Health = Health()
    done: Evidence = Evidence()
    attempts: Attempts = Attempts()
    research: Research = Research()
    todo: tuple[TodoItem, ...] = ()
    tainted: bool = False
    foreign: frozenset[str] = frozenset()
    """Tools that returned untrusted text; the empty name stands for a parent or earlier run."""
    unattended: bool = False
    failure: Failure | None = None
    finished: RunFinished | None = None
