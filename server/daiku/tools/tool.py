"""What a tool is: a name, typed arguments, an effect, a coroutine; and what it is handed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from pydantic import BaseModel, ConfigDict

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.domain.events import Event
from daiku.domain.tools import Effect, ToolResult
from daiku.domain.work.documents import Document
from daiku.domain.work.patches import Patch
from daiku.domain.work.plans import Plan, Step
from daiku.run.rules.calls.toolsets import ToolSet
from daiku.team.rules.proof.evidence import Evidence
from daiku.texts.text import NO_TEXT, Text

if TYPE_CHECKING:
    from daiku.edits.rules.changes.choose import ChosenHunks
    from daiku.edits.rules.changes.scope import EditPlace
    from daiku.run.rules.outside import Checkpoints, Editor, Workspace
    from daiku.settings.config import Config
    from daiku.tools.face import Face
    from daiku.workspace.outputs import Outputs


class Args(BaseModel):
    """Base of every tool's arguments: unknown keys are told to the model."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class AnyArgs(Args):
    """Arguments of a tool that brings its own JSON Schema (`Tool.schema`): they were checked against it."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    def as_json(self) -> JsonObject:
        """The arguments as they were given."""
        return dict(self.model_extra or {})


class Answer(NamedTuple):
    """What a person answered; `choice` is which of the offered choices that was (0-based), None where none."""

    text: str
    choice: int | None = None


Ask = Callable[[Text, tuple[Text, ...]], Awaitable[Answer]]
"""Puts a question (with choices, or none) to the person in the middle of a call."""


def _no_tools() -> ToolSet:
    return ToolSet(())


def _no_plan() -> Plan | None:
    return None


class TaskWork(Protocol):
    """What may be done with a plan, the tasks of a step and independent pieces of work, by nested runs."""

    async def plan(self, goal: str) -> ToolResult: ...

    async def generate(self, step_id: str) -> ToolResult: ...

    async def run(self, step_id: str, task_list: tuple[JsonObject, ...]) -> ToolResult: ...

    async def side_by_side(
        self, pieces: tuple[tuple[str, str, str], ...], *, only_apart: bool = False
    ) -> ToolResult:
        """Each piece is an agent's name, a request to it, and the step that it is about (may be empty);
        `only_apart`: nothing is done where no copies of the project can be made."""
        ...

    async def explore(self, questions: tuple[str, ...]) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """All that a call may touch. `emit` adds an event to the run (tool_output, plan, edit, …)."""

    session: str
    run: str
    call_id: str
    workspace: Workspace
    checkpoints: Checkpoints
    config: Config
    emit: Callable[[Event], None]
    editor: Editor | None = None
    plans: Callable[[], tuple[Plan, ...]] = tuple
    done: Callable[[], Evidence] = Evidence
    """What the run really did so far, and the proofs that still hold."""
    refused_edits: Callable[[Plan, Step], tuple[str, ...]] = lambda _plan, _step: ()
    """Files of a step's edits that were refused, and that nothing made up for."""
    replans: Callable[[], Plan | None] = _no_plan
    """The plan that this run is to make anew, finished steps kept."""
    asked: str = ""
    """What the run was asked, as it was put."""
    hand_over: Callable[[str, str], Awaitable[ToolResult]] | None = None
    """An agent's answer to a request; what it handed over is `handover` of the result's data."""
    tasks: TaskWork | None = None
    extra_cfg: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """What whoever made the agent gave it for its tools, such as a connection (R1.20)."""
    place: EditPlace | None = None
    """The call was let through unasked because its edit stays at this place; None: it is not bound to one."""
    may_cd: bool = True
    """False for runs whose commands all work in the project's folder (R0.85)."""
    wanted: ChosenHunks | None = None
    """Of the edit that was shown, the person wants only this; None: all of it."""
    masked: bool = False
    """True if the approval level alone allowed this command: the sandbox hides files of secrets from it."""
    unseen: bool = False
    """True if nobody saw this command: git finds no closed file in the history."""
    ask: Ask | None = None
    """None where nobody is there to be asked."""
    consented: bool = False
    """True where the user allowed this very call after seeing what it does."""
    toolset: Callable[[], ToolSet] = _no_tools
    """What the model was sent, and what it can find."""
    outputs: Outputs | None = None
    """Where whole outputs of commands are kept; None: they are not."""
    may_reach: Callable[[str], bool] | None = None
    """The hosts that a page may lead on to; None: as the settings say."""
    document: Document | None = None
    """The document, or the part of one, that the run works on."""
    personal: bool = True
    """False in the run of a work item, whose words others read: it does not tell what a person keeps for themselves, and
    its commits do nothing on a forge."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What exactly will happen: the text shown to the person (a diff or the command line), and the
    words for what "always" would allow (empty: cannot be remembered). `patch`: the edit itself."""

    text: str
    remember: Text = NO_TEXT
    patch: Patch | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A capability (R1.36). `run` raises only the unexpected; what went wrong is a ToolResult.

    `args` is validated before the call (R1.37), in pydantic's lax mode. `preview` computes what an
    approval shows, or a failing ToolResult when the call cannot work at all. `trial` runs the call where its writes are
    discarded: its result if it wrote nothing, else why a person has to be asked (empty: nothing was tried). `timeout` in seconds,
    0 for tools that bound themselves. `resumes`: run again after a restart, the call goes on where it was.
    `description` is what a model is told of it, else the docstring of `args`; `face` what people see.

    A tool that is only known at run time (MCP) has `AnyArgs`, its arguments' JSON Schema in `schema`,
    and its own name for a face.
    """

    name: str
    effect: Effect
    args: type[Args]
    run: Callable[[Any, ToolContext], Awaitable[ToolResult]]
    parallel: bool = False
    preview: Callable[[Any, ToolContext], Awaitable[Preview | ToolResult]] | None = None
    trial: Callable[[Any, ToolContext], Awaitable[ToolResult | Text]] | None = None
    timeout: float = 0
    resumes: bool = False
    schema: JsonObject | None = None
    description: str = ""
    face: Face | None = None
    inner: bool = False
    """True where only agents that name it may use it."""
    bounds_itself: bool = False
    """True where the tool cuts its result itself, to the length that the call asks for."""


def failed(text: str) -> ToolResult:
    """A call that could not be carried out: `text` says what was wrong and what would be right."""
    return ToolResult(ok=False, text=text)
