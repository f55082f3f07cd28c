"""Role, stage, and state machine of Daiku's own agents."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure
from daiku.domain.labels import Label
from daiku.domain.runs import ApprovalMode

if TYPE_CHECKING:
    from daiku.domain.work.handovers import Brief, Handover
    from daiku.models.rules.replies.parse import Unreadable
    from daiku.run.rules.state.machine import Move
    from daiku.run.rules.state.state import State
    from daiku.team.role import Role


@dataclass(frozen=True, slots=True)
class Stage:
    """How an agent works as a stage of a chain: its input and its handover. Both functions are pure.

    `hand_back` reads the handover from a finished run, or why there is none; `request` builds the prompt from a Brief;
    `shows`: project files in the prompt, changed ones or also named ones.
    """

    hand_back: Callable[[State], Handover | Unreadable]
    request: Callable[[Brief], str] | None = None
    shows: Literal["nothing", "changed", "named"] = "nothing"


@dataclass(frozen=True, slots=True)
class Machine:
    """What drives an agent's runs in place of a model. All three are pure.

    `next_move` also gets why no model can be asked; `brief` builds a stage's input from state, agent, and request;
    `unfinished` returns why a run failed although it said its last word.
    """

    next_move: Callable[[State, ApprovalMode, Failure | None], Move]
    brief: Callable[[State, str, str], Brief]
    unfinished: Callable[[State], Failure | None]


@dataclass(frozen=True, slots=True)
class Part:
    """Parts of an agent that only Daiku's own agents have.

    `delegate`: others may hand requests to it, by its `description`; `role`: the form of its answers; `stage`: its part in
    a chain; `machine`: what replaces its model; `defers`: finds most tools by tools/find; without `may_cd` commands stay
    in the project's folder; `knows_project`: its prompt has manifest facts; `repeats`: rewrites a document, whose
    likeness to references a stage of its own checks.
    """

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
