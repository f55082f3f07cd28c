"""What an agent is: data, not a class tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from daiku.agents.role import Role
from daiku.core.replies.parse import Unreadable
from daiku.core.run.decide import nothing_left
from daiku.core.state.state import State
from daiku.domain.errors import Failure
from daiku.domain.messages import Reply
from daiku.domain.runs import ApprovalMode, Mode
from daiku.domain.tools import Effect, ToolSpec
from daiku.domain.work.handovers import Brief, Handover

OFFERED: Mapping[Mode, frozenset[Effect]] = MappingProxyType(
    {
        "ask": frozenset({"none", "read", "network", "ask"}),
        "plan": frozenset({"none", "read", "network", "plan", "ask"}),
        "act": frozenset({"none", "read", "edit", "command", "network", "mcp", "plan", "ask"}),
    }
)
"""Which effects a mode offers: `ask` and `plan` only filter the tools (DESIGN 5)."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A role (R1.18–R1.21): a name, a prompt template, the tools it may use (patterns), the form it
    answers in (None: words and tool calls), what becomes of its answer when it was handed a request
    (R1.33), and `extra_cfg` kept whole for whoever wires something of
    their own.

    As a stage of work: `brief` is what it gives to a stage of its own (for a state, an agent and a
    request), `request` is what it is told for a Brief, `hand_back` what its finished run
    hands over, read from the state, or why there is nothing fit to be handed over. With `drive` it
    has no model of its own: its next reply is worked out from the state, and from why no model can be asked any more. `unfinished` says why a run
    that has said its last word has failed all the same. All five are pure. With
    `reads_code` its brief brings the changed files as they are, with `sees_files` it is told also those that
    its work names and what else there is, without `may_cd` its commands all work in the project's folder,
    with `knows_project` its prompt tells what the project's
    manifests say."""

    name: str
    prompt: str
    tools: tuple[str, ...] = ("*",)
    role: Role | None = None
    on_handoff_return: Callable[[str], str] = str
    brief: Callable[[State, str, str], Brief] | None = None
    request: Callable[[Brief], str] | None = None
    hand_back: Callable[[State], Handover | Unreadable] | None = None
    reads_code: bool = False
    sees_files: bool = False
    may_cd: bool = True
    knows_project: bool = False
    drive: Callable[[State, ApprovalMode, Failure | None], Reply] | None = None
    unfinished: Callable[[State], Failure | None] = nothing_left
    extra_cfg: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    def offered(self, specs: tuple[ToolSpec, ...], mode: Mode) -> tuple[ToolSpec, ...]:
        """The tools of this agent in this mode, in the registry's order (stable for caches)."""
        return tuple(
            spec
            for spec in specs
            if spec.effect in OFFERED[mode] and any(fnmatchcase(spec.name, pattern) for pattern in self.tools)
        )


LOOKING = ("files/read", "files/list", "search/*", "editor/*", "git/status", "git/diff", "git/log")
"""The tools that look at the project and change nothing."""
