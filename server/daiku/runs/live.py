"""One run under way: the loop's ports, wired to journal, model, tools and the person."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from daiku.agents.agent import Agent
from daiku.agents.table import find_agent
from daiku.api.localised import localised, spoken
from daiku.core.changes.choose import wanted_of
from daiku.core.changes.scope import EditPlace, inside
from daiku.core.guard.guard import Verdict, remembered, verdict
from daiku.core.proof.gate import next_open
from daiku.core.replies.parse import Unreadable
from daiku.core.run.budget import opened
from daiku.core.run.decide import Rules, nothing_left
from daiku.core.run.loop import Card, card
from daiku.core.run.plan_outcome import plan_standing
from daiku.core.run.preset_calls import next_preset_call
from daiku.core.run.reminders import keeps_last_word
from daiku.core.state.conversation import words_of
from daiku.core.state.machine import Move
from daiku.core.state.recorder import Recorder
from daiku.core.state.state import State
from daiku.core.text.visible import seen
from daiku.domain.base import long_id
from daiku.domain.chunks import Chunk
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    Event,
    InputAsked,
    InputGiven,
    Notice,
    ToolCallEvent,
)
from daiku.domain.messages import (
    Message,
    ModelEvent,
    Usage,
)
from daiku.domain.runs import ApprovalMode, RunResult, RunStatus
from daiku.domain.tools import ToolCall, ToolResult, ToolSpec
from daiku.domain.work.handovers import Brief
from daiku.runs.consenting import Settling, wants_servers
from daiku.runs.folder_rules import Ruling
from daiku.runs.replies import Replies
from daiku.runs.run_budget import Metered, Purse
from daiku.runs.waiting import Questions, may_be_asked, still_asked
from daiku.runs.wiring import Wiring
from daiku.tools.tool import Answer, Preview, TaskWork, ToolContext
from daiku.trace.export import Tracing

log = logging.getLogger(__name__)


class LiveRun:
    """A run in this process. Implements the loop's Ports."""

    def __init__(
        self,
        wiring: Wiring,
        agent: Agent,
        run: str,
        session: str,
        state: State,
        listen: Callable[[Chunk], None],
        approvals: ApprovalMode,
        purse: Purse | None = None,
        *,
        attended: bool = True,
    ) -> None:
        self.run = run
        self.session = session
        self.approvals: ApprovalMode = approvals
        self.attended = attended and approvals != "none"
        """Whether a person is there: where none is, what asks for one is refused at once."""
        self.record = Recorder(state, self._write)
        self.task: asyncio.Task[State] | None = None
        self.abandoned = False
        self.wiring = wiring
        self._agent = agent
        self._purse = purse
        self._listen = listen
        self._writer = wiring.journal.writer(session)
        self.tracing = Tracing()
        self.parent: str | None = None
        self.depth = 0
        self.kept_rounds = 0
        """Rounds that are kept for the last words of the runs around this one."""
        self.known: dict[str, LiveRun] = {}
        self.hand_over: Callable[[LiveRun, str, str, str], Awaitable[ToolResult]] | None = None
        self.task_work: Callable[[LiveRun, str], TaskWork] | None = None
        self._pausing = False
        self.place: EditPlace | None = None
        """Where an edit was asked for by pointing: there it is not asked about again."""
        self._at_place: set[str] = set()
        self._questions = Questions(self.attended, self._waiting)

    def _write(self, events: tuple[Event, ...]) -> list[Event]:
        # Here, so that what is on record is what was shown; what the model reads is in other events.
        say = localised if self._agent.machine is None else spoken
        told = tuple(say(event, self.wiring.words) for event in events)
        surely = False
        for event in events:
            if isinstance(event, ToolCallEvent):
                surely = surely or self._acts_outside(event.tool)
        chunks = self._writer.write(self.run, self.parent, self._agent.name, told, surely=surely)
        for chunk in chunks:
            self.tracing(chunk)
            self._listen(chunk)
        return [chunk.event for chunk in chunks]

    def _acts_outside(self, tool: str) -> bool:
        """Whether a call of `tool` does what checkpoints cannot take back: it must not be done again after a
        power cut, so its start is on the disk before it begins."""
        spec = self._replies.tools.get(tool)
        return spec is None or spec.effect in ("command", "network", "mcp")

    # -- set-up ---------------------------------------------------------------------------

    def prepare(self) -> None:
        """Resolve model, prompt and tools from the state's mode and model. Raises DaikuError."""
        state, wiring = self.record.state, self.wiring
        self.purse = self._purse or Purse(
            opened(
                state.request.asked_limits, state.spending.usage, state.spending.rounds + state.nested.rounds
            )
        )
        model = (
            Metered(wiring.model(state.request.model), self.purse, self._warn)
            if state.request.asks_model
            else None
        )
        self._replies = Replies(
            self.run,
            self.session,
            self._agent,
            wiring,
            self.record,
            model,
            self._settling() if state.request.asks_model else None,
        )
        self._ruling = Ruling(wiring, self.record)
        self._policy = wiring.policy(state.request.mode, self.approvals, self.attended)
        machine = None if state.calls.preset else self._agent.machine
        self.rules = Rules(
            spec=self._spec,
            verdict=self._verdict,
            read=wiring.registry.read,
            compact_at=self._replies.compact_at,
            tokens=self._replies.tokens,
            objection=self._objection,
            unfinished=nothing_left if machine is None else machine.unfinished,
            machine=self._next_move if not state.request.asks_model else None,
        )

    def _settling(self) -> Settling | None:
        servers = self.wiring.servers
        if not servers or not wants_servers(servers, self._agent, self.record.state.request.mode):
            return None
        return Settling(servers, self.record, self.approval, self.attended)

    def _next_move(self, state: State) -> Move:
        if state.calls.preset:
            return next_preset_call(state)
        assert self._agent.machine is not None, "a run without a model has a machine"
        return self._agent.machine.next_move(state, self.approvals, self.purse.no_more())

    def _objection(self, state: State) -> str:
        """Why what a stage of work hands back cannot be passed on."""
        if self.parent is None or self._agent.stage is None:
            return ""
        found = self._agent.stage.hand_back(state)
        return found.problem if isinstance(found, Unreadable) else ""

    def brief(self, agent: str, request: str) -> Brief:
        """What a nested run of `agent` is given."""
        machine, state = self._agent.machine, self.record.state
        if machine is not None:
            return machine.brief(state, agent, request)
        plan = next_open(state.plans.all) if find_agent(agent).machine is not None else None
        return Brief(request=request, plan=plan, said=words_of(state))

    def past(self) -> list[Chunk]:
        """What the journal holds of this session."""
        return self.wiring.journal.chunks(self.session)

    def child(self, agent: Agent, run: str, state: State, wiring: Wiring | None = None) -> LiveRun:
        """A nested run of `agent` in the same session: same listener, approvals, budget and trace; with
        `wiring` it works somewhere else."""
        nested = LiveRun(
            wiring or self.wiring,
            agent,
            run,
            self.session,
            state,
            self._listen,
            self.approvals,
            purse=self.purse,
            attended=self.attended,
        )
        nested.parent, nested.depth = self.run, self.depth + 1
        nested.kept_rounds = self.kept_rounds + keeps_last_word(self.record.state)
        nested.known, nested.tracing = self.known, self.tracing
        nested.hand_over, nested.task_work = self.hand_over, self.task_work
        return nested

    def _warn(self, text: str) -> None:
        self.record(Notice(level="warning", text=text))

    @property
    def agent(self) -> str:
        return self._agent.name

    def _spec(self, name: str) -> ToolSpec | None:
        return self._replies.tools.get(name)

    def _verdict(self, call: ToolCall, tainted: bool) -> Verdict:
        policy = replace(self._policy, tainted=tainted, pointed_at=call.id in self._at_place)
        return verdict(call, self._replies.tools[call.tool], policy)

    def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        return self._replies.reply(state)

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        return await self._replies.summarise(messages)

    # -- tools ----------------------------------------------------------------------------

    def _context(self, call: ToolCall, record: Recorder) -> ToolContext:
        wiring = self.wiring
        return ToolContext(
            session=self.session,
            run=self.run,
            call_id=call.id,
            workspace=wiring.workspace,
            checkpoints=wiring.checkpoints,
            config=wiring.config,
            emit=record,
            editor=wiring.editor,
            may_cd=self._agent.may_cd,
            plans=lambda: record.state.plans.all,
            done=lambda: record.state.done,
            asked=record.state.request.prompt,
            replans=lambda: None if record.state.request.brief is None else record.state.request.brief.plan,
            place=self.place if call.id in self._at_place else None,
            wanted=wanted_of(record.state.questions.approvals.get(call.id), record.state.questions.decisions),
            ask=partial(self._ask, call) if self.attended else None,
            hand_over=partial(self.hand_over, self, call.id) if self.hand_over is not None else None,
            tasks=self.task_work(self, call.id) if self.task_work is not None else None,
        )

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        if call.tool not in self._replies.tools and self.wiring.registry.resolve(call.tool):
            return ToolResult(
                ok=False,
                text=f"{call.tool} is not offered in mode {record.state.request.mode!r}.",
            )
        result = await self.wiring.registry.call(call, self._context(call, record))
        if call.tool in self._replies.tools and self._verdict(call, record.state.tainted).outside:
            result = result.model_copy(update={"untrusted": True})
        self._ruling(call, result)
        return result

    async def preview(self, call: ToolCall, record: Recorder) -> Card | ToolResult | None:
        preview = await self.wiring.registry.preview(call, self._context(call, record))
        if isinstance(preview, ToolResult):
            return preview
        if preview is None:
            return card(call, ToolCall.model_dump_json(call, include={"tool", "args"}, indent=1), "")
        if self._stays_at_place(call, preview):
            return None
        key = self._verdict(call, record.state.tainted).key
        return card(call, preview.text, (preview.remember or remembered(key)) if key else "")

    def _stays_at_place(self, call: ToolCall, preview: Preview) -> bool:
        """True where the edit is the one that was asked for by pointing, and the guard allows it for that."""
        if self.place is None or preview.patch is None or not inside(preview.patch, self.place):
            return False
        self._at_place.add(call.id)
        if self._verdict(call, self.record.state.tainted).answer == "allow":
            return True
        self._at_place.discard(call.id)
        return False

    # -- the person -----------------------------------------------------------------------

    def paused(self) -> bool:
        return self._pausing

    def pause(self) -> None:
        """Stop at the next boundary, nested runs too; waits for a person end at once."""
        self._pausing = True
        self._questions.pause()
        for nested in tuple(self.known.values()):
            if nested.parent == self.run:
                nested.pause()

    def abandon(self) -> None:
        """Stop now without ending the run on record; it can be resumed as interrupted."""
        self.abandoned = True
        if self.task is not None:
            self.task.cancel()

    async def approval(self, asked: ApprovalAsked) -> ApprovalGiven:
        return await self._questions.approval(asked)

    async def answer(self, asked: InputAsked) -> InputGiven:
        return await self._questions.answer(asked)

    @contextmanager
    def _waiting(self) -> Generator[None]:
        """Inside, the conversation stands as one that waits for a person, for whoever lists it."""
        touch = self.wiring.journal.touch
        touch(self.session, "waiting")
        try:
            yield
        finally:
            here = (live for live in (self, *self.known.values()) if live.session == self.session)
            if not self.abandoned and not any(live.asks for live in here):
                touch(self.session, "running")

    @property
    def asks(self) -> bool:
        """Whether a question of this run is open."""
        return self._questions.any

    async def _ask(self, call: ToolCall, question: str, choices: tuple[str, ...]) -> Answer:
        """A tool's own question in the middle of its call (a server's form)."""
        input_id = long_id("input")
        asked = InputAsked(
            input_id=input_id,
            question=seen(question),
            choices=tuple(map(seen, choices)),
            call_id=f"{call.id}:{input_id}",
            from_server=True,
        )
        self.record(asked)
        given = await self.answer(asked)
        if given.input_id not in self.record.state.questions.answers:
            self.record(given)
        return Answer(given.text, asked.chosen(given.text))

    def given(self, event: ApprovalGiven | InputGiven) -> None:
        """Record the person's word and let the run that waits for it go on."""
        if isinstance(event, ApprovalGiven):
            self._remember(event)
        self.record(event)
        self._questions.give(event)

    def _remember(self, event: ApprovalGiven) -> None:
        if event.decision not in ("allow_always", "reject_always"):
            return
        state = self.record.state
        asked = next(a for a in state.questions.approvals.values() if a.approval_id == event.approval_id)
        call = next((c for c in state.calls.pending if c.id == asked.call_id), None)
        key = self._verdict(call, state.tainted).key if call is not None else ""
        if key:
            answer = "allow" if event.decision == "allow_always" else "reject"
            self.wiring.grants.remember(self.wiring.workspace_key, key, answer)

    def show_again(self) -> None:
        """Show what still waits for the person once more, as it was journaled (after a restart)."""
        state = self.record.state
        for chunk in still_asked(state, self.past()) if may_be_asked(state) else ():
            self._listen(chunk)

    # -- the end --------------------------------------------------------------------------

    def result(self) -> RunResult:
        """How the run stands now."""
        state = self.record.state
        finished = state.finished
        status: RunStatus = finished.status if finished is not None else "paused"
        return RunResult(
            run_id=self.run,
            session_id=self.session,
            status=status,
            text=finished.text if finished is not None else state.conversation.text,
            usage=finished.usage if finished is not None else state.spending.usage,
            last_seq=self._writer.last_seq,
            error=state.failure,
            plan=plan_standing(state),
            unattended=state.unattended,
        )
