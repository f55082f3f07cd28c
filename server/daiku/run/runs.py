"""The run service: every front starts, steers and ends runs through it."""

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
from daiku.playbook.background import Afterwards
from daiku.run.answers import asks, check_answer, record_answer
from daiku.run.ending import run_to_end
from daiku.run.live import LiveRun, ModelTold, NestedWork, RunTree
from daiku.run.ports.guards import let_in
from daiku.run.ports.routed import prepared
from daiku.run.recalling import remembering
from daiku.run.recorded.history import events_of, last_start, state_of
from daiku.run.recorded.stored_run import end_on_record, from_record, reopen
from daiku.run.request import RunRequest, continue_request, fit_images, last_continuation, locate_grant
from daiku.run.rules.budget import Budget
from daiku.run.rules.state.fold import fold
from daiku.run.rules.state.state import PERSON, State
from daiku.run.run_budget import RunBudget
from daiku.run.run_log import Listener, RunLog, open_log
from daiku.run.services import RunServices
from daiku.run.starting import left_budget, lost_on_the_way, news_of_resumed, opening_events, others_here
from daiku.team.agent import Agent
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.tool import TaskWork
from daiku.trace.journal import UNDER_WAY

logger = logging.getLogger(__name__)

TITLE_LIMIT = 60
MOST_KEPT = 64
"""Sessions whose folded state is kept; of another one the journal is read again."""


async def _hand_over(parent: LiveRun, call: str, agent: str, request: str) -> ToolResult:
    from daiku.run.nested.handoff import hand_over  # when used

    return await hand_over(parent, call, agent, request)


def _tasks(parent: LiveRun, call: str) -> TaskWork:
    from daiku.run.nested.taskloop import TaskWork  # when used

    return TaskWork(parent, call)


NESTED = NestedWork(_hand_over, _tasks)


@dataclass(slots=True)
class _Past:
    """The folded state of a session, as of `seq`: a chat does not read its whole past every turn."""

    seq: int
    state: State = field(default_factory=State)


class Runs:
    """The runs of one workspace in this process. Methods raise DaikuError for what we expect."""

    def __init__(self, services: RunServices) -> None:
        self.services = services
        self._live: dict[str, LiveRun] = {}
        self._tasks: dict[str, asyncio.Task[State]] = {}
        """Of the runs at the top; the nested ones are part of them."""
        self._past: dict[str, _Past] = {}
        self.afterwards = Afterwards(services, self._live)

    async def run(self, request: RunRequest, listen: Listener) -> RunResult:
        """Run `request` to its end, showing every chunk. Raises UsageError before anything is journaled."""
        begin = await prepared(self.services, await fit_images(request))
        request, agent = begin.request, remembering(self.services, begin.request.agent)
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
            first = await opening_events(services, agent, begin, state, session, model)
            limits = request.limits or services.config.limits
            tree = self._tree(Budget(limits), request.approvals, request.attended)
            live = LiveRun(log, tree, place=await locate_grant(request.grant, services.workspace))
            return await self._drive(live, (*first, *others_here(services, session)))
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
        """Continue a paused or interrupted run; repeat the result of a completed one.

        One that ended early is continued by a new run, maybe with another `model`. `agent`: a program's own.
        Raises UsageError: unknown, under way, nested, or its agent is missing."""
        services = self.services
        session = services.journal.session_of_run(run)
        run = last_continuation(chunks := services.journal.chunks(session), run)
        own = [c for c in chunks if c.run == run]
        if own[0].parent is not None:
            raise _usage(
                text("runs.part_of", run=run, other=own[0].parent), text("runs.resume", run=own[0].parent)
            )
        ended = next((c.event for c in own if isinstance(c.event, RunFinished)), None)
        undone = ended is not None and not has_answer(ended.status) and last_start(chunks).run == run
        if undone and (again := continue_request(own, fold(events_of(chunks)))) is not None:
            agent, model = services.agents.find_for_run(own[0].agent, agent, run), model or again.model
            more = replace(again, agent=agent, model=model, approvals=approvals, attended=attended)
            return await self.run(more, listen)
        state = fold(events_of(chunks, until_run=run))
        if ended is not None:
            log = from_record(services, chunks, run, state)
            return log.result().model_copy(update={"last_seq": chunks[-1].seq})
        agent = remembering(services, services.agents.find_for_run(own[0].agent, agent, run))
        log = open_log(services, agent, run, session, state, listen)
        services = log.services
        lock = services.journal.lock(session)
        if services.journal.chunks(session, chunks[-1].seq):  # its process wrote on until it lost the lock
            lock.release()
            return await self.resume(run, listen, approvals, attended=attended, model=model, agent=agent)
        if services.trace is not None:
            services.trace.resume(run, chunks)
        lost = lost_on_the_way(services, session, state, own)
        try:
            services.journal.note_status(session, "running")
            news = await news_of_resumed(services, agent, state, approvals, attended=attended)
            tree = self._tree(left_budget(state), approvals, attended)
            return await self._drive(LiveRun(log, tree), (*lost, *news), again=True)
        finally:
            lock.release()

    async def _drive(self, live: LiveRun, first: tuple[Event, ...], *, again: bool = False) -> RunResult:
        """Record the `first` events, run the loop as a task, and make sure that the run ends in one status."""
        self._live[live.run] = live
        try:
            live.record(*first)
        except BaseException:
            del self._live[live.run]
            raise
        self.afterwards.begins(live.run, live.log.session)
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
                self.afterwards.learn(live.log.session, live.run)
        if not task.cancelled() and isinstance(broken := task.exception(), DaikuError):  # it can be resumed
            return live.log.result().model_copy(update={"status": "failed", "error": broken.failure})
        return live.log.result()

    def _note_result(self, log: RunLog, *, abandoned: bool = False) -> None:
        """Keep how the run stands: for lists of conversations, for the next run of its session."""
        result = log.result()
        try:
            self.services.journal.note_status(log.session, "running" if abandoned else result.status)
        except DaikuError:
            logger.exception("how run %s stands was not recorded", log.run)
        self._past[log.session] = _Past(result.last_seq, log.record.state)
        if len(self._past) > MOST_KEPT:
            del self._past[next(iter(self._past))]

    def _close_open_run(self, session: str, listen: Listener) -> State:
        """The conversation so far; a run that never ended is ended, as a new one begins."""
        journal = self.services.journal
        past = self._past.get(session)
        tail = journal.chunks(session, past.seq if past else 0)
        state = fold(events_of(tail), past.state if past else None)
        if state.request.begun and state.finished is None:
            chunks = journal.chunks(session)
            log = from_record(self.services, chunks, last_start(chunks).run, state, listen)
            end_on_record(log, chunks, listen)
            state = log.record.state
        return state

    def knows(self, run: str) -> bool:
        """Whether the run is under way here, nested ones included."""
        return run in self._live

    def told(self, run: str) -> ModelTold | None:
        """What the model of a run is told besides the conversation; None where it is not under way here."""
        return live.told if (live := self._live.get(run)) is not None else None

    def begin_pause(self, run: str) -> LiveRun:
        """Have the run, and the one around it, stop at the next boundary. Raises as `pause`."""
        live = self._need(run)
        while live.log.parent is not None:
            live = self._need(live.log.parent)
        live.pause()
        return live

    async def pause(self, run: str) -> RunResult:
        """Stop at the next boundary; the run can be resumed. Raises UsageError: it is not under way, or not here."""
        live = self.begin_pause(run)
        await asyncio.wait({self._tasks[live.run]})
        return live.log.result()

    def begin_cancel(self, run: str) -> LiveRun | None:
        """Have the run end with what it started; None where it is not under way here."""
        live = self._live.get(run)
        while live is not None and live.log.parent is not None:
            live = self._live.get(live.log.parent)
        if live is not None:
            live.cancel()
        return live

    async def cancel(self, run: str) -> RunResult:
        """End the run now, with what it started. A run that is not under way is ended on record."""
        if (live := self.begin_cancel(run)) is None:
            return self.cancel_on_record(run)
        await asyncio.wait({self._tasks[live.run]})
        return live.log.result()

    def cancel_on_record(self, run: str) -> RunResult:
        """End a run that is not under way. Raises UsageError where there is none."""
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
        """Add a message to a live run; its nested runs hear it if it asks no model. Raises GuardrailViolation."""
        await let_in(self.services, self._need(run), text)
        live, said = self._need(run), MessageEvent(role="user", text=Text(text), agent=agent)
        live.record(said)
        below = () if live.record.state.request.asks_model else tuple(self._live.values())
        for nested in (each for each in below if each.log.parent == run):
            nested.record(said)

    async def approve(
        self,
        run: str,
        approval_id: str,
        decision: ApprovalDecision,
        feedback: str | None = None,
        hunks: tuple[int, ...] | None = None,
        unattended: bool = False,
    ) -> None:
        """Answer an approval, also of a run that is not under way; `unattended`: no person did. Raises GuardrailViolation."""
        if feedback:
            await let_in(self.services, self._who_asks(run, approval_id), feedback)
        given = ApprovalGiven(
            approval_id=approval_id, decision=decision, feedback=feedback, hunks=hunks, unattended=unattended
        )
        self._answer(run, approval_id, given)

    async def answer(self, run: str, input_id: str, text: str) -> None:
        """Answer a question of the run; also of one that is not under way. Raises GuardrailViolation."""
        await let_in(self.services, self._who_asks(run, input_id), text)
        self._answer(run, input_id, InputGiven(input_id=input_id, text=text))

    def _who_asks(self, run: str, question: str) -> LiveRun | None:
        found = (each for each in self._live.values() if asks(each.record.state, question))
        return next(found, self._live.get(run))

    def _answer(self, run: str, question: str, event: ApprovalGiven | InputGiven) -> None:
        """Answer what `run` asked, or a nested run of it; under way, or on record."""
        if (live := self._who_asks(run, question)) is not None:
            check_answer(live.record.state, event)
            live.answer(event)
            return
        with reopen(self.services, run, question) as log:
            check_answer(log.record.state, event)
            record_answer(log, self.services.policy(log.record.state.request.mode, "ask", True), event)

    async def change_plan(self, plan: Plan) -> Plan:
        """Record the person's change of a plan; a run under way sees it. Raises UsageError."""
        session, run = self.services.journal.session_of_plan(plan.plan_id)
        await self.record_action(session, PlanEvent(plan=plan), run=run)
        return plan

    def last_run(self, session: str) -> str:
        """The session's last run that the person started. Raises UsageError where there is none."""
        return self.afterwards.last_run(session)

    async def record_action(self, session: str, *events: Event, run: str = "") -> None:
        """Record a person's action for the run in progress, else for `run`. Raises UsageError: busy elsewhere."""
        self.afterwards.record(session, events, run)

    async def keep_plan(self, plan: Plan, session: str | None) -> Plan:
        """Record a plan from elsewhere, in a new session without one. Raises UsageError."""
        journal = self.services.journal
        if session is None:
            session = journal.add_session(self.services.workspace_key)
            journal.note_status(session, "completed", title=plan.name[:TITLE_LIMIT])
        chunks = journal.chunks(session)
        run = chunks[-1].run if chunks else long_id("run")
        await self.record_action(session, PlanEvent(plan=plan), run=run)
        return plan

    def running(self) -> tuple[str, ...]:
        """The runs under way in this process, oldest first."""
        return tuple(run for run, live in self._live.items() if live.log.parent is None)

    async def stop_all(self) -> None:
        """Let go of every run without ending it on record: the next start finds it interrupted."""
        for live in tuple(self._live.values()):
            live.abandoned = True
            live.cancel()
        if tasks := tuple(self._tasks.values()):
            await asyncio.wait(tasks)
        await self.afterwards.stop()

    def _need(self, run: str) -> LiveRun:
        if (live := self._live.get(run)) is not None:
            return live
        session = self.services.journal.session_of_run(run)
        if self.services.journal.get_session(session).status in UNDER_WAY:
            raise _usage(text("runs.elsewhere", run=run), text("runs.do_it_there"), "busy")
        raise _usage(text("runs.not_under_way", run=run), text("runs.resume_or_ask", session=session))


def _usage(message: Text, hint: Text = NO_TEXT, kind: FailureKind = "usage") -> UsageError:
    return UsageError(Failure(kind=kind, message=message, hint=hint))
