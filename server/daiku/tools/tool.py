"""Tools: a name, typed arguments, an effect, and a coroutine; and the context of a call."""

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
from daiku.run.rules.calls.findtools import ToolSet
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
    """Base of all tool arguments. Unknown keys are an error that is reported to the model."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class AnyArgs(Args):
    """Arguments of a tool with its own JSON Schema (`Tool.schema`), already validated against it."""

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    def as_json(self) -> JsonObject:
        """Return the arguments unchanged."""
        return dict(self.model_extra or {})


class Answer(NamedTuple):
    """The user's answer; `choice`: the index of the chosen option, None for free text."""

    text: str
    choice: int | None = None


Ask = Callable[[Text, tuple[Text, ...]], Awaitable[Answer]]
"""Asks the user a question, with choices or none, during a call."""


def _build_empty_toolset() -> ToolSet:
    return ToolSet(())


def _find_no_plan() -> Plan | None:
    return None


class TaskWork(Protocol):
    """Nested runs for a plan, the tasks of a step, and independent pieces of work."""

    async def plan(self, goal: str) -> ToolResult: ...

    async def generate(self, step_id: str) -> ToolResult: ...

    async def run(self, step_id: str, task_list: tuple[JsonObject, ...]) -> ToolResult: ...

    async def side_by_side(
        self, pieces: tuple[tuple[str, str, str], ...], *, only_apart: bool = False
    ) -> ToolResult:
        """Run pieces in parallel: each an agent's name, a request, and its plan step (may be empty).

        `only_apart`: do nothing if no copies of the project can be made.
        """
        ...

    async def explore(self, questions: tuple[str, ...]) -> ToolResult: ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Everything that a call may use. `emit` adds an event to the run (tool_output, plan, edit, …)."""

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
    """Evidence of the run's work so far, and the proofs that still hold."""
    refused_edits: Callable[[Plan, Step], tuple[str, ...]] = lambda _plan, _step: ()
    """Files of a step's refused edits for which no later edit compensated."""
    replans: Callable[[], Plan | None] = _find_no_plan
    """The plan that this run revises. Completed steps stay."""
    asked: str = ""
    """The run's original request."""
    hand_over: Callable[[str, str], Awaitable[ToolResult]] | None = None
    """Returns an agent's answer to a request; the handoff itself is `handover` in the result's data."""
    tasks: TaskWork | None = None
    extra_cfg: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """Objects that the agent's creator passes to its tools, such as a connection (R1.20)."""
    place: EditPlace | None = None
    """The edit was allowed without approval because it stays at this place; None: not restricted."""
    may_cd: bool = True
    """False if all commands must run in the project's folder (R0.85)."""
    wanted: ChosenHunks | None = None
    """The hunks of the shown edit that the user chose; None: all of them."""
    masked: bool = False
    """True if the approval level alone allowed this command: the sandbox hides files of secrets."""
    unseen: bool = False
    """True if nobody saw this command: git finds no closed file in the history."""
    ask: Ask | None = None
    """None if no user is there."""
    consented: bool = False
    """True if the user allowed this call after seeing its effect."""
    toolset: Callable[[], ToolSet] = _build_empty_toolset
    """The tools that the model was sent, and those that it can find."""
    outputs: Outputs | None = None
    """Store of complete command outputs; None: they are not stored."""
    may_reach: Callable[[str], bool] | None = None
    """Returns True for a host that a page may redirect to; None: as the settings say."""
    document: Document | None = None
    """The run's document, or the part of one."""
    personal: bool = True
    """False in a work item's run, whose text others read: it must not contain the user's private data, and
    its commits must have no effect on a forge."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The exact effect of a call: the text shown to the user (a diff or a command line).

    `remember`: what "always" would allow (empty: cannot be remembered). `patch`: the edit itself.
    """

    text: str
    remember: Text = NO_TEXT
    patch: Patch | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool (R1.36). `run` raises only unexpected errors; any other failure is a ToolResult.

    `args` is validated before the call (R1.37), in pydantic's lax mode. `preview` returns what an approval
    shows, or a failing ToolResult if the call cannot work. `trial` runs the call with its writes discarded:
    it returns the result if nothing was written, else the reason to ask the user (empty: no trial was
    possible). `timeout` in seconds, 0 for tools with a limit of their own. `resumes`: after a restart, the
    call continues where it was. `description` is sent to models, by default the docstring of `args`; `face`
    is for users.

    A tool that is known only at run time (MCP) has `AnyArgs`, its JSON Schema in `schema`, and its own name
    instead of a face.
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
    """True if only agents that name the tool may use it."""
    bounds_itself: bool = False
    """True if the tool cuts its result to the length that the call requests."""


def build_failure(text: str) -> ToolResult:
    """Return a failed result: `text` says what was wrong and what would be right."""
    return ToolResult(ok=False, text=text)
