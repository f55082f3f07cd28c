"""A run in progress in this process: pause it, answer its questions, create nested runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from daiku.dataclass import dataclass, field, replace
from daiku.domain.errors import Failure, UsageError
from daiku.domain.events import ApprovalGiven, InputGiven
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolResult
from daiku.run.rules.reminders import reserves_final_round
from daiku.run.rules.state.machine import Recorder
from daiku.run.rules.state.state import State
from daiku.run.run_budget import RunBudget
from daiku.run.run_log import RunLog, open_log
from daiku.run.services import RunServices
from daiku.run.waiting import PersonWaits
from daiku.team.agent import Agent
from daiku.texts.text import NO_TEXT, text
from daiku.tools.tool import TaskWork

if TYPE_CHECKING:
    from daiku.edits.rules.changes.scope import EditPlace
    from daiku.guard.rules.policy import Policy


def has_question(state: State, question: str) -> bool:
    """Return True if the run asked for the approval or input with this id."""
    approvals, inputs = state.questions.approvals.values(), state.questions.inputs.values()
    return any(a.approval_id == question for a in approvals) or any(i.input_id == question for i in inputs)


def check_answer(state: State, event: ApprovalGiven | InputGiven) -> None:
    """Raise UsageError unless the answer fits an open question of an unfinished run."""
    from daiku.edits.rules.changes.choose import explain_invalid_choice  # when used

    questions = state.questions
    if isinstance(event, ApprovalGiven):
        question = next((a for a in questions.approvals.values() if a.approval_id == event.approval_id), None)
        is_answered, problem = (
            event.approval_id in questions.decisions,
            NO_TEXT if question is None else explain_invalid_choice(question, event),
        )
    else:
        question = next((i for i in questions.inputs.values() if i.input_id == event.input_id), None)
        is_answered, problem = event.input_id in questions.answers, NO_TEXT
    if question is None:
        raise UsageError(Failure(kind="not_found", message=text("runs.not_asked")))
    if state.finished is not None:
        raise UsageError(Failure(kind="usage", message=text("runs.over", status=state.finished.status)))
    if is_answered:
        raise UsageError(Failure(kind="usage", message=text("runs.answered_already")))
    if problem:
        hint = text("runs.still_open")
        raise UsageError(Failure(kind="usage", message=problem, hint=hint))


def record_answer(log: RunLog, policy: Policy, event: ApprovalGiven | InputGiven) -> None:
    """Record the answer; permanent decisions are stored for the workspace."""
    if isinstance(event, ApprovalGiven) and event.decision in ("allow_always", "reject_always"):
        services, key = log.services, _grant_key(log, policy, event.approval_id)
        if key:
            answer = "allow" if event.decision == "allow_always" else "reject"
            services.grants.remember(services.workspace_key, key, answer)
    log.record(event)


def _grant_key(log: RunLog, policy: Policy, approval_id: str) -> str:
    """Return the key that stores the decision on a pending call; empty if it cannot be stored."""
    from daiku.guard.rules.guard import verdict  # when used

    state = log.record.state
    approval = next(a for a in state.questions.approvals.values() if a.approval_id == approval_id)
    call = next((c for c in state.calls.pending if c.id == approval.call_id), None)
    spec = log.services.registry.spec(call.tool) if call is not None else None
    return "" if call is None or spec is None or not approval.remember else verdict(call, spec, policy).key


@dataclass(frozen=True, slots=True)
class NestedWork:
    """Factories for nested runs: a hand-off (parent, call, agent, request), or work on plans and tasks."""

    hand_over: Callable[[LiveRun, str, str, str], Awaitable[ToolResult]]
    tasks: Callable[[LiveRun, str], TaskWork]


@dataclass(frozen=True, slots=True)
class RunTree:
    """Data that a run shares with its nested runs.

    Unless `attended`, questions are refused. `under_way`: live runs by id.
    """

    budget: RunBudget
    approvals: ApprovalMode
    attended: bool
    under_way: dict[str, LiveRun]
    nested: NestedWork


class ModelPrompt(NamedTuple):
    """The system prompt that a run's model receives, and its context window in tokens (0: unknown)."""

    system: str
    context: int


@dataclass(eq=False, slots=True)
class LiveRun:
    """A run in progress.

    `depth`: number of runs around it. `kept_rounds`: rounds reserved for their final answers. `place`: where
    the user asked for an edit, which needs no approval.
    """

    log: RunLog
    tree: RunTree
    depth: int = 0
    kept_rounds: int = 0
    place: EditPlace | None = None
    abandoned: bool = False
    pausing: bool = False
    cancelled: bool = False
    task: asyncio.Task[State] | None = field(default=None, init=False)
    """The run's asyncio task; None before it starts."""
    model_prompt: ModelPrompt | None = field(default=None, init=False)
    """None until the first request, and if no model is used."""
    waits: PersonWaits = field(init=False)

    def __post_init__(self) -> None:
        self.waits = PersonWaits(self.tree.attended, self._mark_waiting)

    @property
    def run(self) -> str:
        return self.log.run

    @property
    def record(self) -> Recorder:
        return self.log.record

    def policy(self) -> Policy:
        """Return the guard's policy for this run."""
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
        """Return a nested run in the same session. `after` is called with its state after each event."""
        log, services = self.log, services or self.log.services
        return LiveRun(
            open_log(services, agent, run, log.session, state, log.listener, self.run, after),
            self.tree,
            depth=self.depth + 1,
            kept_rounds=self.kept_rounds + reserves_final_round(self.record.state),
        )

    @property
    def is_pausing(self) -> bool:
        """True if it, or a run around it, has to stop at the next boundary."""
        around = self.tree.under_way.get(self.log.parent or "")
        return self.pausing or (around is not None and around.is_pausing)

    def pause(self) -> None:
        """Stop at the next boundary, with nested runs; pending questions are abandoned immediately."""
        self.pausing = True
        self.waits.pause()
        for nested in tuple(self.tree.under_way.values()):
            if nested.log.parent == self.run:
                nested.pause()

    def cancel(self) -> None:
        """End the run now. If its task has not started, it ends on start, where it can record its end."""
        self.cancelled = True
        if self.task is not None:
            self.task.cancel()

    def answer(self, event: ApprovalGiven | InputGiven) -> None:
        """Record the user's answer and wake the task that waits for it."""
        record_answer(self.log, self.policy(), event)
        self.waits.give(event)

    @contextmanager
    def _mark_waiting(self) -> Generator[None]:
        """Mark the session as waiting for the user inside the block."""
        log, set_status = self.log, self.log.services.journal.note_status
        set_status(log.session, "waiting")
        try:
            yield
        finally:
            in_session = (
                live for live in (self, *self.tree.under_way.values()) if live.log.session == log.session
            )
            if not self.abandoned and not any(live.waits.is_open for live in in_session):
                set_status(log.session, "running")
