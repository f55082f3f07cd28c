"""Run service: every front starts, steers, and ends runs through it."""

from __future__ import annotations

import asyncio
import logging

from daiku.dataclass import dataclass, field, replace
from daiku.domain.base import long_id
from daiku.domain.errors import DaikuError, Failure, FailureKind, UsageError
from daiku.domain.events import (
    ApprovalDecision,
    ApprovalGiven,
    Event,
    InputGiven,
    MessageEvent,
    PlanEvent,
    RunFinished,
)
from daiku.domain.runs import ApprovalMode, RunResult, has_answer
from daiku.domain.tools import ToolResult
from daiku.domain.work.plans import Plan
from daiku.playbook.background import BackgroundLearner
from daiku.run.ending import run_to_end
from daiku.run.live import (
    LiveRun,
    ModelPrompt,
    NestedWork,
    RunTree,
    check_answer,
    has_question,
    record_answer,
)
from daiku.run.ports.guards import check_user_message, prepare_request
from daiku.run.recalling import with_memory_tools
from daiku.run.recorded.history import end_on_record, events_of, from_record, last_start, reopen, state_of
from daiku.run.request import RunRequest, continue_request, fit_images, last_continuation, locate_grant
from daiku.run.rules.budget import Budget
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import PERSON, State
from daiku.run.run_budget import RunBudget
from daiku.run.run_log import Listener, RunLog, open_log
from daiku.run.services import RunServices
from daiku.run.starting import (
    concurrent_run_notices,
    data_loss_notices,
    environment_change_notices,
    opening_events,
    remaining_budget,
)
from daiku.team.agent import Agent
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.tool import TaskWork
from daiku.trace.journal import UNDER_WAY

logger = logging.getLogger(__name__)

TITLE_LIMIT = 60
"""Characters of a session title, at most."""
MOST_CACHED = 64
"""Sessions whose folded state is cached, at most; other sessions are folded from the journal."""


async def _start_handoff(parent: LiveRun, call: str, agent: str, request: str) -> ToolResult:
    from daiku.run.nested.handoff import hand_over  # when used

    return await hand_over(parent, call, agent, request)


def _start_tasks(parent: LiveRun, call: str) -> TaskWork:
    from daiku.run.nested.taskloop import NestedTaskWork  # when used

    return NestedTaskWork(parent, call)


NESTED = NestedWork(_start_handoff, _start_tasks)


@dataclass(slots=True)
class _CachedState:
    """Cached state of a session as of `seq`, so that a turn reads only new chunks."""

    seq: int
    state: State = field(default_factory=State)


class Runs:
    """The runs of one workspace in this process. Methods raise DaikuError for expected failures."""

    def __init__(self, services: RunServices) -> None:
        self.services = services
        self._live: dict[str, LiveRun] = {}
        self._tasks: dict[str, asyncio.Task[State]] = {}
        """Tasks of top-level runs; nested runs are part of them."""
        self._cached: dict[str, _CachedState] = {}
        self.learner = BackgroundLearner(services, self._live)

    async def run(self, request: RunRequest, listen: Listener) -> RunResult:
        """Run `request` to its end, showing every chunk. Raises UsageError before anything is journaled."""
        start = await prepare_request(self.services, await fit_images(request))
        request, agent = start.request, with_memory_tools(self.services, start.request.agent)
        services = self.services.of(agent)
        model = None if request.calls else services.model_of(agent, request.model)
        if request.session is not None:
            services.journal.get_session(request.session)
        session = request.session or services.journal.add_session(services.workspace_key)
        lock = services.journal.lock(session)
        try:
            state = self._close_open_run(session, listen) if request.session else State()
            log = open_log(services, agent, long_id("run"), session, state, listen)
            title = (request.title or request.text).strip().split("\n", 1)[0][:TITLE_LIMIT]
            services.journal.note_status(session, "running", model.name if model else "", title)
            opening = await opening_events(services, agent, start, state, session, model)
            limits = request.limits or services.config.limits
            tree = self._tree(Budget(limits), request.approvals, request.attended)
            live = LiveRun(log, tree, place=await locate_grant(request.grant, services.workspace))
            return await self._drive(live, (*opening, *concurrent_run_notices(services, session)))
        finally:
            lock.release()

    def _tree(self, budget: Budget, approvals: ApprovalMode, attended: bool) -> RunTree:
        attended = attended and approvals != "none"
        return RunTree(RunBudget(budget), approvals, attended, self._live, NESTED)

    async def resume(
        self,
        run: str,
        listen: Listener,
        approvals: ApprovalMode = "ask",
        *,
        attended: bool = True,
        model: str = "",
        agent: Agent | None = None,
    ) -> RunResult:
        """Continue a paused or interrupted run; return the result of a completed one again.

        A new run continues one that ended early, with `model` if given. `agent`: one of the calling program. Raises
        UsageError if the run is unknown, in progress, or nested, or its agent is missing.
        """
        services = self.services
        session = services.journal.session_of_run(run)
        run = last_continuation(chunks := services.journal.chunks(session), run)
        own = [c for c in chunks if c.run == run]
        if own[0].parent is not None:
            hint = text("runs.resume", run=own[0].parent)
            raise _usage_error(text("runs.part_of", run=run, other=own[0].parent), hint)
        finished = next((c.event for c in own if isinstance(c.event, RunFinished)), None)
        is_open = finished is not None and not has_answer(finished.status) and last_start(chunks).run == run
        if is_open and (continuation := continue_request(own, fold(events_of(chunks)))) is not None:
            agent, model = services.agents.find_for_run(own[0].agent, agent, run), model or continuation.model
            request = replace(continuation, agent=agent, model=model, approvals=approvals, attended=attended)
            return await self.run(request, listen)
        state = fold(events_of(chunks, until_run=run))
        if finished is not None:
            log = from_record(services, chunks, run, state)
            return log.result().model_copy(update={"last_seq": chunks[-1].seq})
        agent = with_memory_tools(services, services.agents.find_for_run(own[0].agent, agent, run))
        log = open_log(services, agent, run, session, state, listen)
        services = log.services
        lock = services.journal.lock(session)
        if services.journal.chunks(session, chunks[-1].seq):  # its process wrote until it lost the lock
            lock.release()
            return await self.resume(run, listen, approvals, attended=attended, model=model, agent=agent)
        if services.trace is not None:
            services.trace.resume(run, chunks)
        notices = data_loss_notices(services, session, state, own)
        try:
            services.journal.note_status(session, "running")
            changes = await environment_change_notices(services, agent, state, approvals, attended=attended)
            tree = self._tree(remaining_budget(state), approvals, attended)
            return await self._drive(LiveRun(log, tree), (*notices, *changes), again=True)
        finally:
            lock.release()

    async def _drive(self, live: LiveRun, opening: tuple[Event, ...], *, again: bool = False) -> RunResult:
        """Record the `opening` events, run the loop as a task, and ensure one terminal status."""
        self._live[live.run] = live
        try:
            live.record(*opening)
        except BaseException:
            del self._live[live.run]
            raise
        self.learner.begin_run(live.run, live.log.session)
        task = self._tasks[live.run] = asyncio.create_task(run_to_end(live, again=again))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            live.cancel()
            await asyncio.wait({task})
            raise
        finally:
            del self._live[live.run], self._tasks[live.run]
            self._note_result(live.log, abandoned=live.abandoned)
            if live.record.state.finished is not None:
                self.learner.learn(live.log.session, live.run)
        # Storage failed: the run can be resumed.
        if not task.cancelled() and isinstance(error := task.exception(), DaikuError):
            return live.log.result().model_copy(update={"status": "failed", "error": error.failure})
        return live.log.result()

    def _note_result(self, log: RunLog, *, abandoned: bool = False) -> None:
        """Store the run's status for session lists, and its state for the session's next run."""
        result = log.result()
        try:
            self.services.journal.note_status(log.session, "running" if abandoned else result.status)
        except DaikuError:
            logger.exception("how run %s stands was not recorded", log.run)
        self._cached[log.session] = _CachedState(result.last_seq, log.record.state)
        if len(self._cached) > MOST_CACHED:
            del self._cached[next(iter(self._cached))]

    def _close_open_run(self, session: str, listen: Listener) -> State:
        """Return the session's state; a run that never ended is ended first."""
        journal = self.services.journal
        cached = self._cached.get(session)
        tail = journal.chunks(session, cached.seq if cached else 0)
        state = fold(events_of(tail), cached.state if cached else None)
        if state.request.begun and state.finished is None:
            chunks = journal.chunks(session)
            log = from_record(self.services, chunks, last_start(chunks).run, state, listen)
            end_on_record(log, chunks, listen)
            state = log.record.state
        return state

    def is_live(self, run: str) -> bool:
        """Return True if the run is in progress in this process, nested runs included."""
        return run in self._live

    def model_prompt(self, run: str) -> ModelPrompt | None:
        """Return the system prompt of a run's model; None if the run is not in progress here."""
        return live.model_prompt if (live := self._live.get(run)) is not None else None

    def begin_pause(self, run: str) -> LiveRun:
        """Ask the run's top-level run to stop at the next boundary. Raises as `pause`."""
        live = self._require_live(run)
        while live.log.parent is not None:
            live = self._require_live(live.log.parent)
        live.pause()
        return live

    async def pause(self, run: str) -> RunResult:
        """Stop at the next boundary; the run can be resumed. Raises UsageError: not in progress here."""
        live = self.begin_pause(run)
        await asyncio.wait({self._tasks[live.run]})
        return live.log.result()

    def begin_cancel(self, run: str) -> LiveRun | None:
        """Cancel the run's top-level run and everything that it started; None if it is not in progress here."""
        live = self._live.get(run)
        while live is not None and live.log.parent is not None:
            live = self._live.get(live.log.parent)
        if live is not None:
            live.cancel()
        return live

    async def cancel(self, run: str) -> RunResult:
        """End the run and what it started now. A run that is not in progress is ended in the journal."""
        if (live := self.begin_cancel(run)) is None:
            return self.cancel_on_record(run)
        await asyncio.wait({self._tasks[live.run]})
        return live.log.result()

    def cancel_on_record(self, run: str) -> RunResult:
        """End a run that is not in progress, in the journal. Raises UsageError: unknown run."""
        journal = self.services.journal
        session = journal.session_of_run(run)
        lock = journal.lock(session)
        try:
            chunks = journal.chunks(session)
            log = from_record(self.services, chunks, run, state_of(chunks, run))
            if log.record.state.finished is None:
                end_on_record(log, chunks)
                self._note_result(log)
            return log.result()
        finally:
            lock.release()

    async def steer(self, run: str, text: str, agent: str = PERSON) -> None:
        """Add a message to a live run, and to its nested runs if it uses no model.

        Raises GuardrailViolation.
        """
        await check_user_message(self.services, self._require_live(run), text)
        live, message = self._require_live(run), MessageEvent(role="user", text=Text(text), agent=agent)
        live.record(message)
        receivers = () if live.record.state.request.asks_model else tuple(self._live.values())
        for nested in (each for each in receivers if each.log.parent == run):
            nested.record(message)

    async def approve(
        self,
        run: str,
        approval_id: str,
        decision: ApprovalDecision,
        feedback: str | None = None,
        hunks: tuple[int, ...] | None = None,
        unattended: bool = False,
    ) -> None:
        """Answer an approval, also of a run that is not in progress. `unattended`: no user decided.

        Raises GuardrailViolation.
        """
        if feedback:
            await check_user_message(self.services, self._find_asker(run, approval_id), feedback)
        answer = ApprovalGiven(
            approval_id=approval_id, decision=decision, feedback=feedback, hunks=hunks, unattended=unattended
        )
        self._answer(run, approval_id, answer)

    async def answer(self, run: str, input_id: str, text: str) -> None:
        """Answer a question, also of a run that is not in progress. Raises GuardrailViolation."""
        await check_user_message(self.services, self._find_asker(run, input_id), text)
        self._answer(run, input_id, InputGiven(input_id=input_id, text=text))

    def _find_asker(self, run: str, question: str) -> LiveRun | None:
        askers = (each for each in self._live.values() if has_question(each.record.state, question))
        return next(askers, self._live.get(run))

    def _answer(self, run: str, question: str, event: ApprovalGiven | InputGiven) -> None:
        """Answer a question of `run` or of a run nested in it, live or in the journal."""
        if (live := self._find_asker(run, question)) is not None:
            check_answer(live.record.state, event)
            live.answer(event)
            return
        with reopen(self.services, run, question) as log:
            check_answer(log.record.state, event)
            record_answer(log, self.services.policy(log.record.state.request.mode, "ask", True), event)

    async def change_plan(self, plan: Plan) -> Plan:
        """Record the user's change of a plan; a live run reads it. Raises UsageError."""
        session, run = self.services.journal.session_of_plan(plan.plan_id)
        await self.record_action(session, PlanEvent(plan=plan), run=run)
        return plan

    def last_run(self, session: str) -> str:
        """Return the session's last top-level run. Raises UsageError if there is none."""
        return self.learner.last_run(session)

    async def record_action(self, session: str, *events: Event, run: str = "") -> None:
        """Record a user's action for the live run, else for `run`.

        Raises UsageError: busy in another process.
        """
        self.learner.record(session, events, run)

    async def keep_plan(self, plan: Plan, session: str | None) -> Plan:
        """Record a plan from another source, in a new session unless one is given. Raises UsageError."""
        journal = self.services.journal
        if session is None:
            session = journal.add_session(self.services.workspace_key)
            journal.note_status(session, "completed", title=plan.name[:TITLE_LIMIT])
        chunks = journal.chunks(session)
        run = chunks[-1].run if chunks else long_id("run")
        await self.record_action(session, PlanEvent(plan=plan), run=run)
        return plan

    def running(self) -> tuple[str, ...]:
        """Return the live top-level runs, oldest first."""
        return tuple(run for run, live in self._live.items() if live.log.parent is None)

    async def stop_all(self) -> None:
        """Stop every run without a terminal status; the next start finds them interrupted."""
        for live in tuple(self._live.values()):
            live.abandoned = True
            live.cancel()
        if tasks := tuple(self._tasks.values()):
            await asyncio.wait(tasks)
        await self.learner.stop()

    def _require_live(self, run: str) -> LiveRun:
        if (live := self._live.get(run)) is not None:
            return live
        session = self.services.journal.session_of_run(run)
        if self.services.journal.get_session(session).status in UNDER_WAY:
            raise _usage_error(text("runs.elsewhere", run=run), text("runs.do_it_there"), "busy")
        raise _usage_error(text("runs.not_under_way", run=run), text("runs.resume_or_ask", session=session))


def _usage_error(message: Text, hint: Text = NO_TEXT, kind: FailureKind = "usage") -> UsageError:
    return UsageError(Failure(kind=kind, message=message, hint=hint))
