"""The one vocabulary: everything that can happen in a session, each as an event with its data."""

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
    """First event of a run. `prompt` is what the person said; `images` and `context` came along with it. With `calls` the
    run carries these out, one by one, and asks no model. `driven`: its replies are worked out, and limits of a model's
    rounds do not bound them. `told` is what the agent reads in place of the prompt, made from `brief`; `tainted`: text
    from outside is in it. `rounds_before`: so many of `limits.max_rounds` the runs around it had used. `environment` is
    what holds around it, all of it: the model is told what it was not told before; so it is with what was `recalled`, and with the
    `lessons` of the playbook that fit its request, each of whose versions is told once in a session."""

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
    """The agent may change files of the project."""
    wording: str | None = None
    """The users' own words in `prompt`, where a template surrounds them."""


class RunFinished(Localizable):
    type: ClassVar[str] = "run_finished"
    status: TerminalStatus
    text: Text = Text("")
    usage: Usage = Usage()
    plan: PlanStanding | None = None
    """The plan that the run worked or changed, as it stands now."""
    used_bullets: tuple[str, ...] = ()
    """The lessons that its model, or that of a nested run, cited by their ids, of those that it was told."""
    reasons: tuple[UnverifiedReason, ...] = ()
    """Why the run is `completed_unverified`; empty with any other status."""
    unchecked: bool = False
    """Files were changed, and no test, build, or linter passed after the last change."""


class AgentStart(LineEvent):
    """The agent of a run begins: written with `run_started`, once, also where the run is resumed. `model` is what
    it was asked to use; empty where none is asked."""

    type: ClassVar[str] = "agent_start"
    model: str = ""


class AgentEnd(LineEvent):
    """The agent of a run has ended: written before `run_finished`, however the run ends. `usage` is what the agent
    used itself, without the agents that it handed work to."""

    type: ClassVar[str] = "agent_end"
    usage: Usage = Usage()


class HandoffStart(Wire):
    """A nested run begins: `run` is its id, `call_id` the call of the parent that it answers."""

    type: ClassVar[str] = "handoff_start"
    source: str = Field(alias="from")
    to: str
    request: str
    run: str = ""
    call_id: str = ""


class HandoffEnd(Localizable):
    """A nested run came back: how it ended, its words, what it hands over (None: nothing of a kind, or
    nothing that could be used), what it did (with the plans that it changed) and what it used (also of the lessons that
    it was told), and how much of what it wanted a person rejected. `problem` says why it is of no use."""

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
    """Its calls that were refused, and that nothing later made up for."""


Reminder = Literal["objection", "errors", "rounds", "last_word", "unfinished", "cut_off"]
"""Why Daiku itself speaks to the model: what it hands over cannot be used; its calls fail; its rounds run out; this
is its last reply; it ended its turn without an answer; its reply was cut off and has to go on."""


class MessageEvent(Localizable):
    """A whole message, durable: a user's (also steering), or a reply that closes its deltas.

    `calls` are what the reply wants done, before any guard; each gets one `tool_call` and one
    `tool_response`. `opaque` is the provider's own and must go back to it unchanged. `seen` is
    how many messages the reply was made from: what was said meanwhile comes after it. `reminder`: a
    user's message that is none of a person's, but Daiku's own word to the model. `partial` is the draft of a
    reply that was cut off: shown, never an answer; a resumed run asks the model again.
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
    """Why a reply ended; `length` and `content_filter` make it half an answer."""


class Delta(Aside):
    type: ClassVar[str] = "delta"
    text: str


class Thinking(Aside):
    type: ClassVar[str] = "thinking"
    text: str


class ToolCallEvent(Wire):
    """The call is under way (or refused: its response follows at once). Never written twice."""

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
    """What came of a call. The model reads the English of `result`."""

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
    """May this be done? `preview` is exactly what will happen (a diff or the command); `remember`
    says in words what "always" would mean, empty where it cannot be remembered."""

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
    """An MCP server needs this itself: no call of a model stands behind it."""
    hunks: int = 0
    """How many hunks of the preview can be chosen from; 0 where it is all or nothing."""


class ApprovalGiven(Wire):
    type: ClassVar[str] = "approval_given"
    approval_id: str
    decision: ApprovalDecision
    feedback: str | None = None
    unattended: bool = False
    """Nobody was there: this is no person's word."""
    hunks: tuple[int, ...] | None = None
    """Of the previewed edit, only these are wanted (0-based, in the order of the diff); None: all."""


class InputAsked(Localizable):
    type: ClassVar[str] = "input_asked"
    input_id: str
    question: Text
    choices: tuple[Text, ...] = ()
    call_id: str = ""
    from_server: bool = False
    """An MCP server asks, not the model."""

    def chosen(self, answer: str) -> int | None:
        """Which of the choices `answer` is (0-based); None where it is none of them."""
        given = answer.strip().casefold()
        shown = ({each.casefold() for each in renderings(choice)} for choice in self.choices)
        return next((at for at, texts in enumerate(shown) if given in texts), None)


class InputGiven(Wire):
    type: ClassVar[str] = "input_given"
    input_id: str
    text: str
    unattended: bool = False
    """Nobody was there: this is no person's answer."""


class PlanEvent(Wire):
    type: ClassVar[str] = "plan"
    plan: Plan


class PlanDeleted(LineEvent):
    """The person deleted a plan: it is in no list any more, and no run of the session knows it."""

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
    """A message to the person. The model is told of `rules`, which stay until the session ends, and of what has changed in
    `environment`. `attempt`: so many calls of a model failed in a row and it is called again; the last notice counts."""

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
"""Shown, never stored: what they said is in the event that closes them."""
