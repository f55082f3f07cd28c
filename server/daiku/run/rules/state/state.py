"""The state of a run as one value, in parts by what changes together."""

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
"""The agent of Daiku's own words to the model; what they are for is their `reminder`."""
PERSON = "user"
"""The agent of what a person says while a run is under way."""
WORKER = "worker"
"""The agent of a worker's notes to the model, such as that its work tree was lost; no person said them."""


class Request(NamedTuple):
    """What the run was asked to do; set once, by its first event.

    `text`: what the model reads of it; `limits` bound this run, `asked_limits` its nested runs; `rounds_before`: rounds
    used before it began; `asks_model`: False if replies are computed; `may_edit`: its agent may change files."""

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
    """The users' own words."""


class Conversation(NamedTuple):
    """The messages, of earlier runs of the session too; those of this run begin at index `start`.

    `queued` user messages wait until no call is pending: providers refuse them between calls and results. `steering`: the
    person's messages since the start; `text`: latest answer; `finish`: why it ended; `half`: cut-off answer to continue;
    `draft`: what was shown of a cut-off reply; `progress`, `rules`, `environment`, `recalled`, `lessons`: what the model
    was told; `cited`: ids of lessons that it named; `tokens`: size of its last request and reply, which `counted`
    messages are part of; `files_read`, `files_changed`: shown with a summary."""

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

    `preset` calls were given to a run that asks no model; `preset_results`: plain texts of results they use, by call."""

    pending: tuple[ToolCall, ...] = ()
    started: Mapping[str, ToolCallEvent] = NOTHING
    preset: tuple[ToolCall, ...] = ()
    preset_results: Mapping[str, str] = NOTHING


class Questions(NamedTuple):
    """What the person was asked, by call, and answered, by the question's id."""

    approvals: Mapping[str, ApprovalAsked] = NOTHING
    decisions: Mapping[str, ApprovalGiven] = NOTHING
    inputs: Mapping[str, InputAsked] = NOTHING
    answers: Mapping[str, InputGiven] = NOTHING

    def is_allowed(self, call_id: str) -> bool:
        """Return True if the user was asked about this call and allowed it."""
        asked = self.approvals.get(call_id)
        given = self.decisions.get(asked.approval_id) if asked is not None else None
        return given is not None and given.decision in ("allow_once", "allow_always")


class NestedRuns(NamedTuple):
    """The nested runs: `open` ones by call, `returned` ones in order, and the rounds that these took."""

    open: Mapping[str, HandoffStart] = NOTHING
    returned: tuple[HandoffEnd, ...] = ()
    rounds: int = 0


class Plans(NamedTuple):
    """Every plan of the session, and the id of the one that this run changed last (empty: none)."""

    all: tuple[Plan, ...] = ()
    last: str = ""


class Spending(NamedTuple):
    """Replies that the run asked its model for, and tokens and cost, nested runs included; `own` without these."""

    rounds: int = 0
    usage: Usage = Usage()
    own: Usage = Usage()


class Health(NamedTuple):
    """Progress of the run: `trail` shows repetition, `failed_replies` counts replies in a row without a working call.

    `reply_worked`: a call of the present reply worked; `reminders`: Daiku's own that still hold, in order."""

    trail: RepetitionHistory = RepetitionHistory()
    failed_replies: int = 0
    reply_worked: bool = False
    reminders: tuple[Reminder, ...] = ()


class State(NamedTuple):
    """The state of a run: the fold of its events (`core.state.fold`).

    `done`: what it did, nested runs included; `research`: what it found on the web; `todo`: its own list, kept for later
    runs; `tainted`: holds text from outside; `unattended`: something needed a person, and nobody was there."""

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
    """The tools that brought text from outside; an empty name: a run around this one, or an earlier one."""
    unattended: bool = False
    failure: Failure | None = None
    finished: RunFinished | None = None
