"""What only Daiku's own agents have: their part in a chain of work, and what drives them in place of a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure
from daiku.domain.labels import Label
from daiku.domain.runs import ApprovalMode

if TYPE_CHECKING:
    from daiku.agents.role import Role
    from daiku.core.replies.parse import Unreadable
    from daiku.core.state.machine import Move
    from daiku.core.state.state import State
    from daiku.domain.work.handovers import Brief, Handover


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
class Part:
    """What only Daiku's own agents have: their part in its work.

    A label for people, what other agents are told that it does (only of a `delegate` they are told), the form it
    answers in (None: words and tool calls), its part in a chain of work, what drives it in place of a model. One
    that `defers` is sent the schemas of a few tools, and finds the others by tools/find. Without `may_cd` its
    commands all work in the project's folder, with `knows_project` its prompt tells what the project's manifests
    say. One that `repeats` writes a document again, old words with new ones: how like the new ones are to references is
    looked at by a stage of its own."""

    label: Label
    description: str
    delegate: bool = True
    role: Role | None = None
    stage: Stage | None = None
    machine: Machine | None = None
    defers: bool = False
    may_cd: bool = True
    knows_project: bool = False
    repeats: bool = False
