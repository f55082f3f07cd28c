"""A run in this process: pause it, answer its questions, create its nested runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from daiku.dataclass import dataclass, field, replace
from daiku.domain.events import ApprovalGiven, InputGiven
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolResult
from daiku.run.answers import record_answer
from daiku.run.rules.reminders import reserves_final_round
from daiku.run.rules.state.recorder import Recorder
from daiku.run.rules.state.state import State
from daiku.run.run_budget import RunBudget
from daiku.run.run_log import RunLog, open_log
from daiku.run.services import RunServices
from daiku.run.waiting import PersonWaits
from daiku.team.agent import Agent
from daiku.tools.tool import TaskWork

if TYPE_CHECKING:
    from daiku.edits.rules.changes.scope import EditPlace
    from daiku.guard.rules.policy import Policy


@dataclass(frozen=True, slots=True)
class NestedWork:
    """How a call of a run starts others: by a handoff (parent, call, agent, request), or for plans and tasks."""

    hand_over: Callable[[LiveRun, str, str, str], Awaitable[ToolResult]]
    tasks: Callable[[LiveRun, str], TaskWork]


@dataclass(frozen=True, slots=True)
class RunTree:
    """Data shared with nested runs. Unless `attended`, questions are refused. `under_way`: live runs by id."""

    budget: RunBudget
    approvals: ApprovalMode
    attended: bool
    under_way: dict[str, LiveRun]
    nested: NestedWork


class ModelTold(NamedTuple):
    """What a run's model is told besides the conversation, and how many tokens it takes (0: not known)."""

    system: str
    context: int


@dataclass(eq=False, slots=True)
class LiveRun:
    """A run in progress here. `depth`: runs around it; `kept_rounds`: rounds reserved for their last words.
    `place`: where the person asked for an edit, which needs no approval."""

    log: RunLog
    tree: RunTree
    depth: int = 0
    kept_rounds: int = 0
    place: EditPlace | None = None
    abandoned: bool = False
    pausing: bool = False
    cancelled: bool = False
    task: asyncio.Task[State] | None = field(default=None, init=False)
    """What works for it; None until it has begun."""
    told: ModelTold | None = field(default=None, init=False)
    """None until it is known, and where no model is asked."""
    waits: PersonWaits = field(init=False)

    def __post_init__(self) -> None:
        self.waits = PersonWaits(self.tree.attended, self._shown_as_waiting)

    @property
    def run(self) -> str:
        return self.log.run

    @property
    def record(self) -> Recorder:
        return self.log.record

    def policy(self) -> Policy:
        """The guard's policy for this run."""
        services, tree = self.log.services, self.tree
        policy = services.policy(self.record.state.request.mode, tree.approvals, tree.attended)
        return replace(policy, tainted=self.record.state.tainted)

    def child(
        self,
        agent: Agent,
        run: str,
        state: State,
        services: RunServices | None = None,
        after: Callable[[State], None] | None = None,
    ) -> LiveRun:
        """Return a nested run in the same session. `after` is called with its state after each step."""
        log, where = self.log, services or self.log.services
        return LiveRun(
            open_log(where, agent, run, log.session, state, log.listener, self.run, after),
            self.tree,
            depth=self.depth + 1,
            kept_rounds=self.kept_rounds + reserves_final_round(self.record.state),
        )

    @property
    def is_pausing(self) -> bool:
        """Return True if it, or a run around it, has to stop at the next boundary."""
        around = self.tree.under_way.get(self.log.parent or "")
        return self.pausing or (around is not None and around.is_pausing)

    def pause(self) -> None:
        """Stop at the next boundary, nested runs too; waits for a person end at once."""
        self.pausing = True
        self.waits.pause()
        for nested in tuple(self.tree.under_way.values()):
            if nested.log.parent == self.run:
                nested.pause()

    def cancel(self) -> None:
        """End now; a run whose task has not begun ends as soon as it does, for only then can it record its end."""
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()

    def answer(self, event: ApprovalGiven | InputGiven) -> None:
        """Record the person's word and let the run that waits for it go on."""
        record_answer(self.log, self.policy(), event)
        self.waits.give(event)

    @contextmanager
    def _shown_as_waiting(self) -> Generator[None]:
        """Inside, the conversation is listed as one that waits for a person."""
        log, touch = self.log, self.log.services.journal.note_status
        touch(log.session, "waiting")
        try:
            yield
        finally:
            here = (live for live in (self, *self.tree.under_way.values()) if live.log.session == log.session)
            if not self.abandoned and not any(live.waits.any for live in here):
                touch(log.session, "running")
