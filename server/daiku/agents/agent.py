"""The Agent dataclass, with its Stage (work with a brief) and its Machine (runs without a model)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any, Literal

from daiku.agents.role import Role
from daiku.core.calls.toolnames import wire_name
from daiku.core.calls.toolsets import CALL, FIND, ToolSet, choose_tools
from daiku.core.replies.parse import Unreadable
from daiku.core.state.machine import Move
from daiku.core.state.state import State
from daiku.domain.errors import Failure
from daiku.domain.labels import Label
from daiku.domain.runs import ApprovalMode, Mode
from daiku.domain.tools import EditForm, Effect, ToolSpec
from daiku.domain.work.handovers import Brief, Handover

CARRIED_OUT: Mapping[Mode, frozenset[Effect]] = MappingProxyType(
    {
        "ask": frozenset({"none", "read", "network", "ask"}),
        "plan": frozenset({"none", "read", "network", "plan", "ask"}),
        "act": frozenset({"none", "read", "edit", "command", "network", "mcp", "plan", "ask"}),
    }
)
"""Which effects a mode lets be carried out. What a model is offered is the same in every mode."""
_WHAT_IT_DOES: Mapping[Effect, str] = MappingProxyType(
    {
        "edit": "changes files",
        "command": "runs commands or changes the repository",
        "mcp": "may change things outside, through an MCP server",
        "plan": "changes the plan",
    }
)


@dataclass(frozen=True, slots=True)
class Stage:
    """How an agent works as a stage of a chain: its input and its handover. Both functions are pure.

    `hand_back` reads from the state of its finished run what it hands over, or why nothing is fit for
    that. `request` is what it is told for a Brief (None: the request alone). `shows`: of the project's files
    it is shown those that were changed, or also those that its work names and a list of the others."""

    hand_back: Callable[[State], Handover | Unreadable]
    request: Callable[[Brief], str] | None = None
    shows: Literal["nothing", "changed", "named"] = "nothing"


@dataclass(frozen=True, slots=True)
class Machine:
    """What drives an agent's runs in place of a model. All three are pure.

    `next_move` also gets why no model can be asked any more (None: one can). `brief` is what it gives to a
    stage, for a state, the stage's agent and a request. `unfinished` says why a run that has said its last
    word has failed all the same."""

    next_move: Callable[[State, ApprovalMode, Failure | None], Move]
    brief: Callable[[State, str, str], Brief]
    unfinished: Callable[[State], Failure | None]


@dataclass(frozen=True, slots=True)
class Agent:
    """A role (R1.18–R1.21): a name, a label for people, a prompt template, what other
    agents are told that it does (only of a `delegate` they are told), the tools it may use (patterns), the form
    it answers in (None: words and tool calls), its part in a chain of work, what drives it in place of a model,
    and what becomes of its answer when it was handed a request (R1.33). One that `defers` is sent the schemas of
    a few tools, and finds the others by tools/find. Its tools get `extra_cfg` as it is (R1.20). Without `may_cd` its commands all work in the project's folder, with
    `knows_project` its prompt tells what the project's manifests say."""

    name: str
    label: Label
    prompt: str
    description: str
    delegate: bool = True
    tools: tuple[str, ...] = ("*",)
    role: Role | None = None
    stage: Stage | None = None
    machine: Machine | None = None
    defers: bool = False
    on_handoff_return: Callable[[str], str] = str
    may_cd: bool = True
    knows_project: bool = False
    extra_cfg: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def reads_brief(self) -> bool:
        """Return whether the agent's prompt is built from a Brief instead of the bare request."""
        return self.stage is not None and self.stage.request is not None

    def usable(self, specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
        """The tools of this agent whatever the mode, in the registry's order (stable for caches)."""
        return tuple(spec for spec in specs if any(fnmatchcase(spec.name, pattern) for pattern in self.tools))

    def allowed(self, specs: tuple[ToolSpec, ...], mode: Mode) -> tuple[ToolSpec, ...]:
        """Those of its tools that may be carried out in this mode."""
        return tuple(spec for spec in self.usable(specs) if spec.effect in CARRIED_OUT[mode])

    def sent(
        self, specs: tuple[ToolSpec, ...], window: int, edits: EditForm, large: Callable[[], bool]
    ) -> ToolSet:
        """Divide its tools into those that a model is sent and those that it has to find. `large`: whether the
        project is."""
        usable = self.usable(specs)
        if not self.defers:
            return ToolSet(tuple(spec for spec in usable if spec.name not in (FIND, CALL)))
        return choose_tools(usable, window=window, edits=edits, large=large())

    def why_refused(self, spec: ToolSpec, mode: Mode) -> str:
        """Why a call of a tool that there is was not carried out, and what to do instead."""
        name = wire_name(spec.name)
        if not self.usable((spec,)):
            return f"{name} was not run: it is none of your tools. Do the part that is yours with those."
        does = _WHAT_IT_DOES.get(spec.effect, "is not for this mode")
        if mode == "plan":
            return (
                f"{name} was not run: it {does}, and in plan mode nothing is changed. Look and read; when you know "
                f"what is to be done, propose it with {wire_name('plan/propose')} and end your turn."
            )
        return (
            f"{name} was not run: it {does}, and in {mode} mode nothing is changed. Answer in words; say what "
            "would have to be done, and that the person can switch to act mode for it."
        )


LOOKING = ("files/read", "files/list", "search/*", "editor/*")
"""The tools that look at the project's files and change nothing."""
HISTORY = ("git/status", "git/diff", "git/log")
"""The tools that look at the repository; whoever has a shell asks it."""
