"""Reflection on ended runs by a model: the Reflector, then the Curator, within a separate budget."""

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
from daiku.playbook.rules import run_text
from daiku.run.live import LiveRun
from daiku.run.rules.budget import Budget
from daiku.run.rules.outside import FoundLesson
from daiku.run.run_budget import Metered, RunBudget
from daiku.run.services import RunServices
from daiku.team.agent import Agent
from daiku.team.drafting.part_request import AnswerForm
from daiku.team.drafting.run_reflection import (
    CURATION_ANSWER,
    CURATOR,
    REFLECTION_ANSWER,
    REFLECTOR,
    build_curation_request,
    build_reflection_request,
    parse_operations,
    parse_reflection,
)
from daiku.team.role import stream_role_reply
from daiku.team.system_prompt import render_system_prompt
from daiku.texts.text import text

F = TypeVar("F", bound=BaseModel)
MOST_OUTPUT = 8_000
"""Maximum number of output tokens of one reply, including thinking."""
MOST_RETRIES = 2
"""Maximum number of retries of unreadable replies."""
LONGEST_REPLY = 100_000
"""Maximum length of a reply in characters."""
NEAR = 20
"""Number of lessons in the Curator's request."""
BUSY_RETRIES, BUSY_SECONDS = 20, 0.5
"""Number and interval in seconds of retries while another process writes to the session."""


class ReflectionResult(NamedTuple):
    """Result of a reflection: whether something was recorded, and the failure if no model reflected."""

    recorded: bool = False
    failure: Failure | None = None


@dataclass(slots=True)
class _AgentRun:
    """One of the two agents in a reflection, with the usage of its replies."""

    agent: Agent
    model: Metered
    usages: list[Usage] = field(default_factory=list[Usage])
    failure: Failure | None = None
    ended: bool = False

    async def ask(self, request: ModelRequest) -> AsyncIterator[ModelEvent]:
        """Yield the model's events, and count their usage, also if the reply is unreadable."""
        async for event in self.model.stream(request):
            if isinstance(event, Reply):
                self.usages.append(event.usage)
                if _count_characters(event) > LONGEST_REPLY:
                    raise DaikuError(_refuse_reply(self.agent))
            yield event

    def events(self, limits: RunLimits, *more: Event) -> tuple[Event, ...]:
        """Return the events of the agent's run."""
        usage = Usage()
        for each in self.usages:
            usage = usage.plus(each)
        status: TerminalStatus = (
            "completed" if self.ended else "cancelled" if self.failure is None else "failed"
        )
        name = self.model.model.name
        return (
            RunStarted(prompt="", model=name, limits=limits),
            AgentStart(model=name),
            *self.usages,
            *more,
            *(() if self.failure is None else (self.failure,)),
            AgentEnd(usage=usage),
            RunFinished(status=status, usage=usage),
        )


@dataclass(slots=True)
class _ReflectionState:
    """A reflection on one run in progress, so that it can be recorded whatever happens."""

    lessons: tuple[Lesson, ...]
    cited: tuple[str, ...]
    record: str
    agent_runs: list[_AgentRun] = field(default_factory=list[_AgentRun])
    reflection: Reflection | None = None
    operations: tuple[CurationOperation, ...] | None = None


@dataclass(frozen=True, slots=True)
class Reflections:
    """Reflects on ended runs with a model. `live`: the runs of this process, by id."""

    services: RunServices
    live: Mapping[str, LiveRun]

    async def reflect_on(self, session: str, run: str) -> ReflectionResult:
        """Reflect on a run, once, and record the result and the usage in its session.

        Cancellation drops the request in progress; its usage is recorded. Raises UsageError if the session
        was deleted.
        """
        chunks = await asyncio.to_thread(self.services.journal.chunks, session)
        run_chunks = run_text.select_chunks(chunks, run)
        if not self._needs_reflection(chunks, run):
            return ReflectionResult()
        state = _begin_reflection(run_chunks)
        seconds = self.services.config.playbook.reflection_seconds
        failure: Failure | None = None
        try:
            async with asyncio.timeout(seconds):
                with self.services.prompts.activate():
                    await self._reflect(state, _get_model(run_chunks))
        except TimeoutError:
            name = state.agent_runs[-1].model.model.name
            why = text("playbook.reflection_slow", model=name, seconds=seconds, setting="reflection_seconds")
            failure = Failure(kind="timeout", message=why)
        except DaikuError as error:
            failure = _refuse_over_budget() if error.failure.kind == "limit" else error.failure
        except asyncio.CancelledError:
            self._record_now(session, run, state)
            raise
        if state.agent_runs and failure is not None:
            state.agent_runs[-1].failure = failure
        if any(each.usages for each in state.agent_runs):
            await self._record(session, run, state)
        return ReflectionResult(state.reflection is not None, failure if state.reflection is None else None)

    async def needs_reflection(self, session: str, run: str) -> bool:
        """Return True if a run needs a reflection. Raises UsageError if the session was deleted."""
        return self._needs_reflection(await asyncio.to_thread(self.services.journal.chunks, session), run)

    def _needs_reflection(self, chunks: Sequence[Chunk], run: str) -> bool:
        run_chunks = run_text.select_chunks(chunks, run)
        is_done = run_text.has_reflection(chunks, run)
        return (
            run_text.needs_reflection(run_chunks) and not is_done and not self._uses_script_of_run(run_chunks)
        )

    def _uses_script_of_run(self, run_chunks: Sequence[Chunk]) -> bool:
        """Return True if the model would be the script that the run itself used."""
        configured = self.services.config.agents.model_of(REFLECTOR.name)
        return not configured and _get_model(run_chunks).startswith("scripted/")

    async def _reflect(self, state: _ReflectionState, model: str) -> None:
        settings = self.services.config.playbook
        limits = RunLimits(
            max_rounds=settings.reflections + 1 + MOST_RETRIES,
            max_cost=settings.reflection_cost,
            max_tokens=settings.reflection_tokens,
        )
        shared = RunBudget(Budget(limits))
        agent_run = self._add_agent(REFLECTOR, model, shared, state)
        for _ in range(settings.reflections):
            request = build_reflection_request(state.record, state.lessons, state.cited, state.reflection)
            form = await self._get_answer(agent_run, request, REFLECTION_ANSWER)
            reflection = parse_reflection(form, state.lessons)
            is_unchanged = state.reflection is not None and state.reflection.insights == reflection.insights
            state.reflection = reflection
            if is_unchanged or not reflection.insights:
                break
        agent_run.ended = True
        if state.reflection is None or not state.reflection.insights:
            return
        lessons = await self._find_similar(state.reflection.insights)
        agent_run = self._add_agent(CURATOR, model, shared, state)
        curation = await self._get_answer(
            agent_run, build_curation_request(state.reflection.insights, lessons), CURATION_ANSWER
        )
        state.operations = parse_operations(curation, lessons)
        agent_run.ended = True

    def _add_agent(self, agent: Agent, name: str, shared: RunBudget, state: _ReflectionState) -> _AgentRun:
        """Add an agent with its configured model, else with that of the run. Raises LLMError, UsageError."""
        model = self.services.model_of(agent, self.services.config.agents.model_of(agent.name) or name)
        state.agent_runs.append(agent_run := _AgentRun(agent, Metered(model, shared, lambda _: None)))
        return agent_run

    async def _find_similar(self, insights: Sequence[str]) -> tuple[FoundLesson, ...]:
        """Return the lessons of the repository's playbook that are similar to the insights."""
        if self.services.playbooks is None:
            return ()
        return await self.services.playbooks.search("\n".join(insights), NEAR, personal=False)

    async def _get_answer(self, agent_run: _AgentRun, request: str, form: AnswerForm[F]) -> F:
        """Return the agent's answer. Raises DaikuError if there is none, or if it is unreadable."""
        role = form.role
        tool_protocol = agent_run.model.model.tool_protocol
        native = tool_protocol == "native"
        tools = role.tools if native else ()
        complete_request = ModelRequest(
            model="",
            system=render_system_prompt(
                agent_run.agent,
                (),
                bool(tools),
                offered=tuple(tool.name for tool in tools),
                traits=agent_run.model.model.traits,
                native=native,
            ),
            messages=(UserMessage(text=request),),
            tools=tools,
            max_output=MOST_OUTPUT,
        )
        protocol = None if native else tool_protocol
        async for event in stream_role_reply(role, complete_request, agent_run.ask, protocol=protocol):
            if isinstance(event, Reply) and isinstance(answer := event.message.opaque.get(OWN_KEY), dict):
                redacted = redact_encoded(json.dumps(answer, ensure_ascii=False), self.services.redact)
                return form.kind.model_validate_json(redacted)
        raise DaikuError(_refuse_reply(agent_run.agent))  # no answer, or an unknown tool call

    async def _record(self, session: str, run: str, state: _ReflectionState) -> None:
        for _ in range(BUSY_RETRIES):
            try:
                self._write_runs(session, run, state)
            except UsageError as busy:
                if busy.failure.kind != "busy":
                    raise
                await asyncio.sleep(BUSY_SECONDS)
            else:
                return
        self._write_runs(session, run, state)

    def _record_now(self, session: str, run: str, state: _ReflectionState) -> None:
        """Record the usage if the session can be written without waiting."""
        try:
            if any(each.usages for each in state.agent_runs):
                self._write_runs(session, run, state)
        except UsageError:
            pass

    def _write_runs(self, session: str, run: str, state: _ReflectionState) -> None:
        """Record each agent's run below the run reflected on. Raises UsageError if the session is busy."""
        live = next((each for each in self.live.values() if each.log.session == session), None)
        lock = None if live is not None else self.services.journal.lock(session)
        try:
            writer = live.log.writer if live is not None else self.services.journal.writer(session)
            for at, agent_run in enumerate(state.agent_runs):
                is_last = at == len(state.agent_runs) - 1
                events = agent_run.events(
                    agent_run.model.shared.budget.limits, *(_build_events(state) if is_last else ())
                )
                self._send_to_trace(writer.write(long_id("run"), run, agent_run.agent.name, events))
        finally:
            if lock is not None:
                lock.release()

    def _send_to_trace(self, chunks: Sequence[Chunk]) -> None:
        trace = self.services.trace
        if trace is not None:
            for chunk in chunks:
                trace(chunk)


def _begin_reflection(run_chunks: Sequence[Chunk]) -> _ReflectionState:
    end = run_chunks[-1].event
    cited = end.used_bullets if isinstance(end, RunFinished) else ()
    return _ReflectionState(
        run_text.list_received_lessons(run_chunks), cited, run_text.format_run(run_chunks)
    )


def _get_model(run_chunks: Sequence[Chunk]) -> str:
    first = run_chunks[0].event
    return first.model if isinstance(first, RunStarted) else ""


def _build_events(state: _ReflectionState) -> tuple[Reflected, ...]:
    """Return the event of a reflection. Without the Curator's operations, each insight is an addition."""
    if state.reflection is None:
        return ()
    operations = state.operations
    if operations is None:
        operations = tuple(CurationOperation(type="ADD", content=each) for each in state.reflection.insights)
    return (Reflected(reflection=state.reflection, operations=operations),)


def _count_characters(reply: Reply) -> int:
    """Return the length of a reply's text and calls in characters."""
    return len(reply.message.text) + sum(len(str(call.args)) for call in reply.message.calls)


def _refuse_reply(agent: Agent) -> Failure:
    return Failure(kind="format", message=text("playbook.reflection_unread", agent=agent.name))


def _refuse_over_budget() -> Failure:
    names = "reflection_cost, reflection_tokens"
    return Failure(kind="limit", message=text("playbook.reflection_over", setting=names))
