"""One run under way: the loop's ports, wired to journal, model, tools and the person."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from daiku.agents.agent import Agent, find_agent
from daiku.agents.coordinator import summary_order, system_prompt
from daiku.agents.role import Role, in_role
from daiku.core.budget import opened
from daiku.core.choosing import wanted_of
from daiku.core.context import transcript
from daiku.core.conversation import words_of
from daiku.core.decide import Rules, nothing_left
from daiku.core.editplace import EditPlace, inside
from daiku.core.gate import next_open
from daiku.core.guard import Verdict, remembered, verdict
from daiku.core.loop import Card, card
from daiku.core.parse import Unreadable
from daiku.core.ports import Workspace
from daiku.core.prefix import first_divergence
from daiku.core.state import Recorder, State
from daiku.core.visible import seen
from daiku.core.words.events import localised, spoken
from daiku.core.worked import touched_plan
from daiku.domain.base import long_id
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import (
    ApprovalAsked,
    ApprovalGiven,
    Chunk,
    Event,
    InputAsked,
    InputGiven,
    Notice,
)
from daiku.domain.handovers import Brief
from daiku.domain.messages import (
    Message,
    ModelEvent,
    ModelRequest,
    Reply,
    Usage,
    UserMessage,
)
from daiku.domain.runs import ApprovalMode, RunResult, RunStatus
from daiku.domain.tools import ToolCall, ToolResult, ToolSpec
from daiku.llm.tokens import estimate_request
from daiku.runs.consenting import Settling, wants_servers
from daiku.runs.given import next_given
from daiku.runs.purse import Metered, Purse
from daiku.runs.ruling import Ruling
from daiku.runs.waiting import Waits, may_be_asked, still_asked
from daiku.runs.wiring import Wiring
from daiku.tools.registry import ToolRegistry
from daiku.tools.tool import Preview, TaskWork, ToolContext
from daiku.trace.export import Tracing

log = logging.getLogger(__name__)

COMPACT_SHARE = 0.8
"""Part of the model's window that may be full before old messages are condensed."""
NOBODY = "Nobody is there to approve this."
NOBODY_ANSWERS = "Nobody is there to answer. Decide yourself and say what you assumed."
RESULT_SHARE = 2000
"""Characters of one result that the model is shown for a summary."""


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
        self._wiring = wiring
        self._agent = agent
        self._purse = purse
        self._listen = listen
        self._writer = wiring.journal.writer(session)
        self.tracing = Tracing()
        self.parent: str | None = None
        self.depth = 0
        self.known: dict[str, LiveRun] = {}
        self.hand_over: Callable[[LiveRun, str, str, str], Awaitable[ToolResult]] | None = None
        self.task_work: Callable[[LiveRun, str], TaskWork] | None = None
        self._sent: ModelRequest | None = None
        self._pausing = False
        self.place: EditPlace | None = None
        """Where an edit was asked for by pointing: there it is not asked about again."""
        self._at_place: set[str] = set()
        self._approvals = Waits[ApprovalGiven]()
        self._inputs = Waits[InputGiven]()

    def _write(self, events: tuple[Event, ...]) -> list[Event]:
        # Here, so that what is on record is what was shown; what the model reads is in other events.
        say = localised if self._agent.drive is None else spoken
        told = tuple(say(event, self._wiring.words) for event in events)
        chunks = self._writer.write(self.run, self.parent, self._agent.name, told)
        for chunk in chunks:
            self.tracing(chunk)
            self._listen(chunk)
        return [chunk.event for chunk in chunks]

    # -- set-up ---------------------------------------------------------------------------

    def prepare(self) -> None:
        """Resolve model, prompt and tools from the state's mode and model. Raises DaikuError."""
        state, wiring = self.record.state, self._wiring
        self.purse = self._purse or Purse(
            opened(state.asked_limits, state.usage, state.rounds + state.nested_rounds)
        )
        self._drive = next_given if state.given else self._agent.drive
        self._model = None if self._drive else Metered(wiring.model(state.model), self.purse, self._warn)
        servers = wiring.servers
        wanted = servers and not self._drive and wants_servers(servers, self._agent, state.mode)
        self._settle = (
            Settling(servers, self.record, self.approval, self.attended) if servers and wanted else None
        )
        self._ruling = Ruling(wiring, self.record)
        self._offer()
        self._policy = wiring.policy(state.mode, self.approvals, self.attended)
        self.rules = Rules(
            spec=self._spec,
            verdict=self._verdict,
            read=wiring.registry.read,
            compact_at=int(self._model.context * COMPACT_SHARE) if self._model else 0,
            tokens=self._tokens,
            objection=self._objection,
            unfinished=self._agent.unfinished if self._drive is self._agent.drive else nothing_left,
        )

    def _objection(self, state: State) -> str:
        """Why what a stage of work hands back cannot be passed on."""
        if self.parent is None or self._agent.hand_back is None:
            return ""
        found = self._agent.hand_back(state)
        return found.problem if isinstance(found, Unreadable) else ""

    def brief(self, agent: str, request: str) -> Brief:
        """What a nested run of `agent` is given."""
        make, state = self._agent.brief, self.record.state
        if make is not None:
            return make(state, agent, request)
        team = find_agent(agent).drive is not None
        plan = next_open(state.plans) if team else None
        return Brief(request=request, plan=plan, said=words_of(state))

    @property
    def driven(self) -> bool:
        """True where no model of its own is asked."""
        return self._agent.drive is not None

    @property
    def wiring(self) -> Wiring:
        return self._wiring

    @property
    def registry(self) -> ToolRegistry:
        return self._wiring.registry

    def past(self) -> list[Chunk]:
        """What the journal holds of this session."""
        return self._wiring.journal.chunks(self.session)

    def child(self, agent: Agent, run: str, state: State, wiring: Wiring | None = None) -> LiveRun:
        """A nested run of `agent` in the same session: same listener, approvals, budget and trace; with
        `wiring` it works somewhere else."""
        nested = LiveRun(
            wiring or self._wiring,
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
        nested.known, nested.tracing = self.known, self.tracing
        nested.hand_over, nested.task_work = self.hand_over, self.task_work
        return nested

    def _warn(self, text: str) -> None:
        self.record(Notice(level="warning", text=text))

    def _offer(self) -> None:
        state, wiring = self.record.state, self._wiring
        self._tools = self._agent.offered(wiring.registry.specs(), state.mode)
        self._by_name = {spec.name: spec for spec in self._tools}
        told = self._settle.servers.prompt() if self._settle is not None else ""
        self._system = system_prompt(
            self._agent, state.mode, wiring.roots, bool(self._tools), told, trusted=wiring.trusted
        )
        self._offered = self._settle.servers.version if self._settle is not None else 0

    @property
    def workspace(self) -> Workspace:
        """The files that this run may see and change."""
        return self._wiring.workspace

    @property
    def agent(self) -> str:
        return self._agent.name

    def _spec(self, name: str) -> ToolSpec | None:
        return self._by_name.get(name)

    def _verdict(self, call: ToolCall, tainted: bool) -> Verdict:
        policy = replace(self._policy, tainted=tainted, pointed_at=call.id in self._at_place)
        return verdict(call, self._by_name[call.tool], policy)

    # -- the model ------------------------------------------------------------------------

    async def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        if self._settle is not None:
            await self._settle()
            if self._settle.servers.version != self._offered:
                self._offer()
        request = ModelRequest(
            model="",
            system=self._system,
            messages=state.messages,
            tools=self._tools,
            session=self.session,
        )
        self._note_divergence(request)
        if self._model is None:
            if (
                self.purse.refused is not None and not state.given
            ):  # no stage of the work could ask its model either
                raise DaikuError(self.purse.refused)
            assert self._drive is not None, "a run without a model is driven"
            yield self._drive(state, self.approvals)
            return
        role = self._agent.role
        pieces = self._model.stream(request) if role is None else self._in_role(role, self._model, request)
        async for piece in pieces:
            yield self._canonical(piece) if isinstance(piece, Reply) else piece

    def _note_divergence(self, request: ModelRequest) -> None:
        place = first_divergence(self._sent, request) if self._sent is not None else ""
        if place:
            log.info("%s: a provider's cache is of use only up to %s", self.run, place)
        self._sent = request

    def _in_role(self, role: Role, model: Metered, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        async def ask(asked: ModelRequest) -> AsyncIterator[ModelEvent]:
            async for piece in model.stream(asked):
                yield self._canonical(piece) if isinstance(piece, Reply) else piece

        if model.tool_protocol == "native":
            return in_role(role, request, ask)
        return in_role(role, request, ask, protocol=model.tool_protocol)

    def _canonical(self, reply: Reply) -> Reply:
        calls = reply.message.calls
        if all(call.tool in self._by_name for call in calls):
            return reply
        resolve = self._wiring.registry.resolve
        named = tuple(call.model_copy(update={"tool": resolve(call.tool) or call.tool}) for call in calls)
        return replace(reply, message=reply.message.model_copy(update={"calls": named}))

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        if self._model is None:
            return "", None
        asked = UserMessage(text=transcript(messages, RESULT_SHARE))
        request = ModelRequest(model="", system=summary_order(), messages=(asked,), session=self.session)
        async for piece in self._model.stream(request):
            if isinstance(piece, Reply):
                return piece.message.text, piece.usage
        return "", None

    def _tokens(self, messages: Sequence[Message]) -> int:
        return estimate_request(
            ModelRequest(
                model=self.record.state.model.rpartition("/")[2],
                system=self._system,
                messages=tuple(messages),
                tools=self._tools,
            )
        )

    # -- tools ----------------------------------------------------------------------------

    def _context(self, call: ToolCall, record: Recorder) -> ToolContext:
        wiring = self._wiring
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
            plans=lambda: record.state.plans,
            done=lambda: record.state.done,
            asked=record.state.prompt,
            replans=lambda: None if record.state.brief is None else record.state.brief.plan,
            place=self.place if call.id in self._at_place else None,
            wanted=wanted_of(record.state.approvals.get(call.id), record.state.decisions),
            ask=partial(self._ask, call) if self.attended else None,
            hand_over=partial(self.hand_over, self, call.id) if self.hand_over is not None else None,
            tasks=self.task_work(self, call.id) if self.task_work is not None else None,
        )

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult:
        if call.tool not in self._by_name and self._wiring.registry.resolve(call.tool):
            return ToolResult(
                ok=False,
                text=f"{call.tool} is not offered in mode {record.state.mode!r}.",
            )
        result = await self._wiring.registry.call(call, self._context(call, record))
        if call.tool in self._by_name and self._verdict(call, record.state.tainted).outside:
            result = result.model_copy(update={"untrusted": True})
        self._ruling(call, result)
        return result

    async def preview(self, call: ToolCall, record: Recorder) -> Card | ToolResult | None:
        preview = await self._wiring.registry.preview(call, self._context(call, record))
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
        self._approvals.pause()
        self._inputs.pause()
        for nested in tuple(self.known.values()):
            if nested.parent == self.run:
                nested.pause()

    def abandon(self) -> None:
        """Stop now without ending the run on record; it can be resumed as interrupted."""
        self.abandoned = True
        if self.task is not None:
            self.task.cancel()

    async def approval(self, asked: ApprovalAsked) -> ApprovalGiven:
        if not self.attended:
            return ApprovalGiven(
                approval_id=asked.approval_id, decision="reject_once", feedback=NOBODY, unattended=True
            )
        with self._waiting():
            return await self._approvals.answer(asked.approval_id)

    async def answer(self, asked: InputAsked) -> InputGiven:
        if not self.attended:
            return InputGiven(input_id=asked.input_id, text=NOBODY_ANSWERS, unattended=True)
        with self._waiting():
            return await self._inputs.answer(asked.input_id)

    @contextmanager
    def _waiting(self) -> Generator[None]:
        """Inside, the conversation stands as one that waits for a person, for whoever lists it."""
        touch = self._wiring.journal.touch
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
        return self._approvals.any or self._inputs.any

    async def _ask(self, call: ToolCall, question: str, choices: tuple[str, ...]) -> str:
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
        if given.input_id not in self.record.state.answers:
            self.record(given)
        return given.text

    def given(self, event: ApprovalGiven | InputGiven) -> None:
        """Record the person's word and let the run that waits for it go on."""
        if isinstance(event, ApprovalGiven):
            self._remember(event)
            self.record(event)
            self._approvals.give(event.approval_id, event)
            return
        self.record(event)
        self._inputs.give(event.input_id, event)

    def _remember(self, event: ApprovalGiven) -> None:
        if event.decision not in ("allow_always", "reject_always"):
            return
        state = self.record.state
        asked = next(a for a in state.approvals.values() if a.approval_id == event.approval_id)
        call = next((c for c in state.pending if c.id == asked.call_id), None)
        key = self._verdict(call, state.tainted).key if call is not None else ""
        if key:
            answer = "allow" if event.decision == "allow_always" else "reject"
            self._wiring.grants.remember(self._wiring.workspace_key, key, answer)

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
        failure = state.failure
        return RunResult(
            run_id=self.run,
            session_id=self.session,
            status=status,
            text=finished.text if finished is not None else state.text,
            usage=finished.usage if finished is not None else state.usage,
            last_seq=self._writer.last_seq,
            error=None
            if failure is None
            else Failure(
                kind=failure.kind,
                message=failure.message,
                hint=failure.hint,
                retryable=failure.retryable,
            ),
            plan=plan.standing() if (plan := touched_plan(state)) is not None else None,
            unattended=state.unattended,
        )
