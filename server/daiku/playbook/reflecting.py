"""A model looks at a run that has ended: the Reflector and the Curator are asked, within a budget of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pydantic import BaseModel

from daiku.dataclass import dataclass, field
from daiku.domain.base import long_id
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.events import AgentEnd, AgentStart, Event, RunFinished, RunStarted
from daiku.domain.held import CurationOperation, Lesson, Reflected, Reflection
from daiku.domain.messages import OWN_KEY, ModelEvent, ModelRequest, Reply, Usage, UserMessage
from daiku.domain.runs import RunLimits, TerminalStatus
from daiku.guard.rules.redact import redact_encoded
from daiku.playbook.agents import curator, reflector
from daiku.playbook.agents.curator import CURATOR
from daiku.playbook.agents.reflector import REFLECTOR
from daiku.playbook.rules.insights import run_text
from daiku.run.live import LiveRun
from daiku.run.rules.budget import Budget
from daiku.run.rules.outside import FoundLesson
from daiku.run.run_budget import Metered, RunBudget
from daiku.run.services import RunServices
from daiku.team.agent import Agent
from daiku.team.drafting.answer_form import AnswerForm
from daiku.team.role import stream_role_reply
from daiku.team.system_prompt import system_prompt
from daiku.texts.text import text

F = TypeVar("F", bound=BaseModel)
MOST_OUTPUT = 8_000
"""Tokens of one reply, with the thinking of models that think: what these agents say is short."""
MENDED = 2
"""Replies that may be asked for again because nobody can read them."""
LONGEST_REPLY = 100_000
"""Characters of a reply that are read."""
NEAR = 20
"""Lessons of the playbook that the Curator is shown."""
WAITS, WAIT_SECONDS = 20, 0.5
"""How often and how long is waited where another process writes to the session."""


class Looked(NamedTuple):
    """What came of a look at a run: whether anything new is on record, and why no model looked, where none did."""

    recorded: bool = False
    failure: Failure | None = None


@dataclass(slots=True)
class _Asked:
    """One of the two agents, as it is asked: what its replies used, and how it ended."""

    agent: Agent
    model: Metered
    used: list[Usage] = field(default_factory=list[Usage])
    failure: Failure | None = None
    ended: bool = False

    async def ask(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """The model's pieces; what they used is kept, also where what they say cannot be read."""
        async for piece in self.model.stream(request):
            if isinstance(piece, Reply):
                self.used.append(piece.usage)
                if _length(piece) > LONGEST_REPLY:
                    raise DaikuError(_unreadable(self.agent))
            yield piece

    def events(self, limits: RunLimits, *more: Event) -> tuple[Event, ...]:
        """The run that it worked in, as a whole."""
        usage = Usage()
        for each in self.used:
            usage = usage.plus(each)
        status: TerminalStatus = (
            "completed" if self.ended else "cancelled" if self.failure is None else "failed"
        )
        name = self.model.model.name
        return (
            RunStarted(prompt="", model=name, limits=limits),
            AgentStart(model=name),
            *self.used,
            *more,
            *(() if self.failure is None else (self.failure,)),
            AgentEnd(usage=usage),
            RunFinished(status=status, usage=usage),
        )


@dataclass(slots=True)
class _Look:
    """A look at one run under way: what is known so far, so that it can be kept whatever happens."""

    lessons: tuple[Lesson, ...]
    cited: tuple[str, ...]
    record: str
    asked: list[_Asked] = field(default_factory=list[_Asked])
    reflection: Reflection | None = None
    operations: tuple[CurationOperation, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reflecting:
    """Has a model look at runs that have ended. `live`: the runs of this process, by id."""

    services: RunServices
    live: Mapping[str, LiveRun]

    async def after(self, session: str, run: str) -> Looked:
        """Have a model look at a run, once, and keep in its session what came of it and what it cost. What is under way
        when it is cancelled is dropped; what it cost is on record. Raises UsageError: the session is gone."""
        chunks = await asyncio.to_thread(self.services.journal.chunks, session)
        own = run_text.chunks_of(chunks, run)
        if not self._wants(chunks, run):
            return Looked()
        look = _look_at(own)
        seconds = self.services.config.playbook.reflection_seconds
        failure: Failure | None = None
        try:
            async with asyncio.timeout(seconds):
                with self.services.prompts.active():
                    await self._look(look, _model_of(own))
        except TimeoutError:
            name = look.asked[-1].model.model.name
            why = text("playbook.reflection_slow", model=name, seconds=seconds, setting="reflection_seconds")
            failure = Failure(kind="timeout", message=why)
        except DaikuError as error:
            failure = _over() if error.failure.kind == "limit" else error.failure
        except asyncio.CancelledError:
            self._keep_at_once(session, run, look)
            raise
        if look.asked and failure is not None:
            look.asked[-1].failure = failure
        if any(each.used for each in look.asked):
            await self._keep(session, run, look)
        return Looked(look.reflection is not None, failure if look.reflection is None else None)

    async def wants(self, session: str, run: str) -> bool:
        """Return whether a model should look at a run. Raises UsageError: the session is gone."""
        return self._wants(await asyncio.to_thread(self.services.journal.chunks, session), run)

    def _wants(self, chunks: Sequence[Chunk], run: str) -> bool:
        own = run_text.chunks_of(chunks, run)
        looked = run_text.is_looked_at(chunks, run)
        return run_text.is_worth_a_look(own) and not looked and not self._plays_a_script(own)

    def _plays_a_script(self, own: Sequence[Chunk]) -> bool:
        """Whether a script would be asked whose lines are the run's; one that the settings name is asked."""
        named = self.services.config.agents.model_of(REFLECTOR.name)
        return not named and _model_of(own).startswith("scripted/")

    async def _look(self, look: _Look, model: str) -> None:
        settings = self.services.config.playbook
        limits = RunLimits(
            max_rounds=settings.reflections + 1 + MENDED,
            max_cost=settings.reflection_cost,
            max_tokens=settings.reflection_tokens,
        )
        shared = RunBudget(Budget(limits))
        asking = self._agent(REFLECTOR, model, shared, look)
        for _ in range(settings.reflections):
            request = reflector.reflector_request(look.record, look.lessons, look.cited, look.reflection)
            form = await self._answer(asking, request, reflector.ANSWER)
            again = reflector.reflection_of(form, look.lessons)
            same = look.reflection is not None and look.reflection.insights == again.insights
            look.reflection = again
            if same or not again.insights:
                break
        asking.ended = True
        if look.reflection is None or not look.reflection.insights:
            return
        known = await self._near(look.reflection.insights)
        asking = self._agent(CURATOR, model, shared, look)
        curation = await self._answer(
            asking, curator.curator_request(look.reflection.insights, known), curator.ANSWER
        )
        look.operations = curator.operations_of(curation, known)
        asking.ended = True

    def _agent(self, agent: Agent, name: str, shared: RunBudget, look: _Look) -> _Asked:
        """The agent with the model that the settings say, else that of the run. Raises LLMError, UsageError."""
        model = self.services.model_of(agent, self.services.config.agents.model_of(agent.name) or name)
        look.asked.append(asked := _Asked(agent, Metered(model, shared, lambda _: None)))
        return asked

    async def _near(self, insights: Sequence[str]) -> tuple[FoundLesson, ...]:
        """The lessons of the repository's playbook that are near to what was seen."""
        if self.services.playbooks is None:
            return ()
        return await self.services.playbooks.search("\n".join(insights), NEAR, personal=False)

    async def _answer(self, asked: _Asked, request: str, form: AnswerForm[F]) -> F:
        """What the agent answers. Raises DaikuError: it did not, or nobody can read it."""
        role = form.role
        native = asked.model.model.tool_protocol == "native"
        tools = role.tools if native else ()
        whole = ModelRequest(
            model="",
            system=system_prompt(
                asked.agent,
                (),
                bool(tools),
                offered=tuple(tool.name for tool in tools),
                traits=asked.model.model.traits,
                native=native,
            ),
            messages=(UserMessage(text=request),),
            tools=tools,
            max_output=MOST_OUTPUT,
        )
        protocol = None if asked.model.model.tool_protocol == "native" else asked.model.model.tool_protocol
        async for piece in stream_role_reply(role, whole, asked.ask, protocol=protocol):
            if isinstance(piece, Reply) and isinstance(said := piece.message.opaque.get(OWN_KEY), dict):
                clean = redact_encoded(json.dumps(said, ensure_ascii=False), self.services.redact)
                return form.kind.model_validate_json(clean)
        raise DaikuError(_unreadable(asked.agent))  # it was silent, or called what there is not

    async def _keep(self, session: str, run: str, look: _Look) -> None:
        for _ in range(WAITS):
            try:
                self._write(session, run, look)
            except UsageError as busy:
                if busy.failure.kind != "busy":
                    raise
                await asyncio.sleep(WAIT_SECONDS)
            else:
                return
        self._write(session, run, look)

    def _keep_at_once(self, session: str, run: str, look: _Look) -> None:
        """Keep what it cost, where the session can be written to without waiting."""
        try:
            if any(each.used for each in look.asked):
                self._write(session, run, look)
        except UsageError:
            pass

    def _write(self, session: str, run: str, look: _Look) -> None:
        """Write each agent's part as a run below the one that was looked at. Raises UsageError: another process has the
        session."""
        live = next((each for each in self.live.values() if each.log.session == session), None)
        lock = None if live is not None else self.services.journal.lock(session)
        try:
            writer = live.log.writer if live is not None else self.services.journal.writer(session)
            for at, asked in enumerate(look.asked):
                last = at == len(look.asked) - 1
                events = asked.events(asked.model.shared.budget.limits, *(_reflected(look) if last else ()))
                self._show(writer.write(long_id("run"), run, asked.agent.name, events))
        finally:
            if lock is not None:
                lock.release()

    def _show(self, chunks: Sequence[Chunk]) -> None:
        trace = self.services.trace
        if trace is not None:
            for chunk in chunks:
                trace(chunk)


def _look_at(own: Sequence[Chunk]) -> _Look:
    end = own[-1].event
    cited = end.used_bullets if isinstance(end, RunFinished) else ()
    return _Look(run_text.lessons_told(own), cited, run_text.text_of_run(own))


def _model_of(own: Sequence[Chunk]) -> str:
    first = own[0].event
    return first.model if isinstance(first, RunStarted) else ""


def _reflected(look: _Look) -> tuple[Reflected, ...]:
    """What is on record of what was seen. Where no Curator answered, each insight is a lesson of its own."""
    if look.reflection is None:
        return ()
    operations = look.operations
    if operations is None:
        operations = tuple(CurationOperation(type="ADD", content=each) for each in look.reflection.insights)
    return (Reflected(reflection=look.reflection, operations=operations),)


def _length(reply: Reply) -> int:
    """Characters of what a reply says and calls."""
    return len(reply.message.text) + sum(len(str(call.args)) for call in reply.message.calls)


def _unreadable(agent: Agent) -> Failure:
    return Failure(kind="format", message=text("playbook.reflection_unread", agent=agent.name))


def _over() -> Failure:
    names = "reflection_cost, reflection_tokens"
    return Failure(kind="limit", message=text("playbook.reflection_over", setting=names))
