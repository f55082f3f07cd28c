"""Session events: every event type with its data."""

from typing import ClassVar, Literal, TypeAlias, get_args

from pydantic import Field, model_validator

from daiku.domain.base import JsonObject, Localizable, Wire
from daiku.domain.errors import Failure
from daiku.domain.held import Bullet, Compacted, Lesson, Pruned, Recalled, Reflected, RulesText, Todo
from daiku.domain.labels import Aside, Label, Line, LineEvent
from daiku.domain.messages import FinishReason, Image, Usage
from daiku.domain.runs import ContextItem, EnvironmentFact, Mode, RunLimits, TerminalStatus, UnverifiedReason
from daiku.domain.tools import Outcome, ToolCall, ToolImage, with_outcome
from daiku.domain.work.handovers import Brief, FailedCall, Handover, NestedEvidence
from daiku.domain.work.patches import FileStat, Restored, Review
from daiku.domain.work.plans import Plan, PlanStanding
from daiku.texts.text import Said, Text, renderings


class RunStarted(Wire):
    """First event of a run.

    `prompt` is the user's message, with `images` and `context`. If `calls` is not empty, the run executes
    them in order and no model is called. `driven`: a state machine produces the replies, and round limits do
    not apply. `told` is the message that the agent reads instead of the prompt, built from `brief`.
    `tainted`: it contains untrusted text. `rounds_before` is the number of rounds of `limits.max_rounds`
    that outer runs have used. `environment` is the complete environment; the model is sent only facts that
    are new to it. The same holds for `recalled` and for the playbook `lessons` that match the request: each
    version is sent once per session.
    """

    type: ClassVar[str] = "run_started"
    prompt: str
    mode: Mode = "act"
    model: str = ""
    limits: RunLimits = RunLimits()
    context: tuple[ContextItem, ...] = ()
    images: tuple[Image, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    driven: bool = False
    brief: Brief | None = None
    told: str = ""
    tainted: bool = False
    rounds_before: int = Field(default=0, ge=0)
    environment: tuple[EnvironmentFact, ...] = ()
    recalled: tuple[Recalled, ...] = ()
    lessons: tuple[Lesson, ...] = ()
    may_edit: bool = False
    """True if the agent may change files of the project."""
    wording: str | None = None
    """The user's own text in `prompt`, if a template surrounds it."""


class RunFinished(Localizable):
    type: ClassVar[str] = "run_finished"
    status: TerminalStatus
    text: Text = Text("")
    usage: Usage = Usage()
    plan: PlanStanding | None = None
    """Progress of the plan that the run carried out or changed."""
    used_bullets: tuple[str, ...] = ()
    """Ids of the lessons that the run's model, or a nested run's, cited."""
    reasons: tuple[UnverifiedReason, ...] = ()
    """Why the run is `completed_unverified`; empty with any other status."""
    unchecked: bool = False
    """Files were changed, and no test, build, or linter passed after the last change."""


class AgentStart(LineEvent):
    """Start of a run's agent: written once, with `run_started`. `model` is the requested model, or empty."""

    type: ClassVar[str] = "agent_start"
    model: str = ""


class AgentEnd(LineEvent):
    """End of a run's agent: written before `run_finished`, with any status. `usage` excludes nested agents."""

    type: ClassVar[str] = "agent_end"
    usage: Usage = Usage()


class HandoffStart(Wire):
    """Start of a nested run. `run` is its id, `call_id` the parent's call that it answers."""

    type: ClassVar[str] = "handoff_start"
    source: str = Field(alias="from")
    to: str
    request: str
    run: str = ""
    call_id: str = ""


class HandoffEnd(Localizable):
    """End of a nested run.

    `result` is its final text and `handover` its typed result (None if it has none, or an invalid one).
    `deeds` is the evidence of its work, `plans` are the plans that it changed, `usage` its tokens,
    `used_bullets` the lessons that it cited, `rejected` the number of changes that the user rejected.
    `problem` says why the result is unusable.
    """

    type: ClassVar[str] = "handoff_end"
    source: str = Field(alias="from")
    to: str
    result: Text
    run: str = ""
    call_id: str = ""
    status: TerminalStatus = "completed"
    handover: Handover | None = None
    problem: Text = Text("")
    error: Failure | None = None
    deeds: NestedEvidence | None = None
    plans: tuple[Plan, ...] = ()
    usage: Usage | None = None
    rounds: int = 0
    rejected: int = 0
    tainted: bool = False
    unattended: bool = False
    used_bullets: tuple[str, ...] = ()
    reasons: tuple[UnverifiedReason, ...] = ()
    refused: tuple[FailedCall, ...] = ()
    """Denied calls that no later call made up for."""


Reminder = Literal["objection", "errors", "rounds", "last_word", "unfinished", "cut_off"]
"""Reason for a message from Daiku to the model: the handover is invalid; calls fail; rounds run out; this is
the last reply; the turn ended without an answer; the reply was cut off and must continue."""


class MessageEvent(Localizable):
    """A complete, durable message: from the user (also steering), or a reply that closes its deltas.

    `calls` are the reply's tool calls before any check; each gets one `tool_call` and one `tool_response`.
    `opaque` is the provider's data and goes back to it unchanged. `seen` is the number of messages in the
    reply's request; later messages come after the reply. `reminder` marks a user message written by Daiku.
    `partial` marks the draft of a reply that was cut off: it is shown, never an answer, and a resumed run
    calls the model again.
    """

    type: ClassVar[str] = "message"
    role: Literal["user", "assistant"]
    text: Text
    agent: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: JsonObject = {}
    seen: int | None = None
    reminder: Reminder | None = None
    partial: bool = False
    finish: FinishReason = "stop"
    """Why the reply ended; with `length` or `content_filter` it is incomplete."""


class Delta(Aside):
    type: ClassVar[str] = "delta"
    text: str


class Thinking(Aside):
    type: ClassVar[str] = "thinking"
    text: str


class ToolCallEvent(Wire):
    """Start of a tool call, or its denial, which its response follows at once. Written once per call."""

    type: ClassVar[str] = "tool_call"
    id: str
    tool: str
    args: JsonObject
    reasoning: str | None = None


class ToolOutput(Aside):
    type: ClassVar[str] = "tool_output"
    id: str
    text: str


class ToolResponse(Localizable):
    """Result of a tool call. The model reads the English text of `result`."""

    type: ClassVar[str] = "tool_response"
    id: str
    tool: str
    ok: bool
    result: Said
    duration_ms: int = 0
    data: JsonObject | None = None
    images: tuple[ToolImage, ...] = ()
    untrusted: bool = False
    outcome: Outcome = "failed"

    _outcome = model_validator(mode="before")(with_outcome)


ApprovalKind = Literal["edit", "command", "network", "mcp", "plan", "read", "memory"]
ApprovalDecision = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class ApprovalAsked(Localizable):
    """An approval request.

    `preview` is exactly what will happen (a diff or the command). `remember` describes the scope of
    "always"; empty if it cannot be remembered.
    """

    type: ClassVar[str] = "approval_asked"
    approval_id: str
    kind: ApprovalKind
    tool: str
    args: JsonObject
    preview: Text
    why: Text
    call_id: str = ""
    remember: Text = Text("")
    from_server: bool = False
    """True if an MCP server needs the approval itself, without a call of a model."""
    hunks: int = 0
    """Number of hunks of the preview to choose from; 0 if it is all or nothing."""


class ApprovalGiven(Wire):
    type: ClassVar[str] = "approval_given"
    approval_id: str
    decision: ApprovalDecision
    feedback: str | None = None
    unattended: bool = False
    """True if nobody was there: the decision is not the user's."""
    hunks: tuple[int, ...] | None = None
    """Approved hunks of the previewed edit (0-based, in the order of the diff); None: all."""


class InputAsked(Localizable):
    type: ClassVar[str] = "input_asked"
    input_id: str
    question: Text
    choices: tuple[Text, ...] = ()
    call_id: str = ""
    from_server: bool = False
    """True if an MCP server asks, not the model."""

    def chosen(self, answer: str) -> int | None:
        """Return the 0-based index of the choice that `answer` names, or None."""
        typed = answer.strip().casefold()
        renderings_of_choices = (
            {rendering.casefold() for rendering in renderings(choice)} for choice in self.choices
        )
        return next((at for at, texts in enumerate(renderings_of_choices) if typed in texts), None)


class InputGiven(Wire):
    type: ClassVar[str] = "input_given"
    input_id: str
    text: str
    unattended: bool = False
    """True if nobody was there: the answer is not the user's."""


class PlanEvent(Wire):
    type: ClassVar[str] = "plan"
    plan: Plan


class PlanDeleted(LineEvent):
    """Deletion of a plan by the user: no list shows it, and no run of the session can use it."""

    type: ClassVar[str] = "plan_deleted"
    line: ClassVar[Line | None] = Line("trash", Label("Plan deleted: {name}", "計画を削除しました: {name}"))
    plan_id: str
    name: str


class Edit(Wire):
    type: ClassVar[str] = "edit"
    files: tuple[FileStat, ...]
    checkpoint_id: str
    call_id: str = ""
    diff: str = ""


class CheckpointEvent(Wire):
    type: ClassVar[str] = "checkpoint"
    checkpoint_id: str
    files: tuple[str, ...]


class Notice(Localizable):
    """A message to the user.

    The model receives `rules`, which stay until the session ends, and the changed facts of `environment`.
    `attempt` counts model calls that failed in a row; the last notice applies.
    """

    type: ClassVar[str] = "notice"
    level: Literal["info", "warning", "error"]
    text: Text
    attempt: int = 0
    rules: tuple[RulesText, ...] = ()
    environment: tuple[EnvironmentFact, ...] = ()


Event: TypeAlias = (
    RunStarted
    | RunFinished
    | AgentStart
    | AgentEnd
    | HandoffStart
    | HandoffEnd
    | MessageEvent
    | Delta
    | Thinking
    | ToolCallEvent
    | ToolOutput
    | ToolResponse
    | ApprovalAsked
    | ApprovalGiven
    | InputAsked
    | InputGiven
    | PlanEvent
    | PlanDeleted
    | Edit
    | CheckpointEvent
    | Review
    | Restored
    | Usage
    | Notice
    | Failure
    | Compacted
    | Pruned
    | Todo
    | Bullet
    | Reflected
)

EVENTS: dict[str, type[Event]] = {cls.type: cls for cls in get_args(Event)}
EPHEMERAL = frozenset({"delta", "thinking", "tool_output"})
"""Event types that are shown and never stored; a durable event repeats their content."""
