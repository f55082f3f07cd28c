"""Guardrails of one run: checks of its request, calls, and replies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Mapping
from itertools import chain
from typing import cast

from daiku.dataclass import dataclass, field, replace
from daiku.domain.base import long_id
from daiku.domain.errors import Failure, GuardrailViolation
from daiku.domain.events import Event, MessageEvent, Notice
from daiku.domain.guardrails import GuardrailAnswer
from daiku.domain.messages import (
    AssistantMessage,
    ModelEvent,
    Reply,
    Restarted,
    ThinkingDelta,
    Usage,
    mark_own,
)
from daiku.domain.runs import ContextItem, Route
from daiku.domain.tools import ToolCall, ToolResult
from daiku.guard.guardrails.guardrail import PASS, build_failure
from daiku.guard.guardrails.tokens import TokenGuard
from daiku.guard.rules.guardrails.written import call_text
from daiku.run.live import LiveRun
from daiku.run.request import RunRequest
from daiku.run.rules.outside import Guard
from daiku.run.rules.ports import BlockedReply
from daiku.run.services import RunServices
from daiku.team.agent import HANDOFF, Agent
from daiku.texts.text import NO_TEXT, Text, as_text, joined, text


@dataclass(slots=True)
class RunGuards:
    """Guardrails of a run: `shared` ones, and the agent's `own`.

    In a `nested` run, schemas of `shared` ones do not apply.
    """

    shared: tuple[Guard, ...]
    own: tuple[Guard, ...]
    nested: bool
    _refusals: dict[str, ToolResult | None] = field(default_factory=dict[str, "ToolResult | None"])
    """Results by call id; a call that waits for approval is checked only once."""

    @property
    def all(self) -> tuple[Guard, ...]:
        return (*self.shared, *self.own)

    @property
    def buffers_replies(self) -> bool:
        """True if a reply is buffered until it has passed."""
        return any(guard.judges_output for guard in self.all)

    async def request(
        self, request: str, context: tuple[ContextItem, ...] = ()
    ) -> tuple[Failure | Notice, ...]:
        """Check the request and its context; return a failure that ends the run, a warning, or nothing."""
        guards = self.own if self.nested else self.all
        texts = [item.text for item in context if item.text]
        checks = (guard.validate_input(request) for guard in guards)
        context_checks = (guard.screen_input(each) for guard in guards for each in texts)
        return _to_events(await _combine(chain(checks, context_checks)))

    async def check_message(self, message: str) -> tuple[Failure | Notice, ...]:
        """Check a user message to a run in progress."""
        return _to_events(await _combine(guard.screen_input(message) for guard in self.all))

    async def reply(self, reply_text: str, *, last: bool) -> GuardrailAnswer:
        """Check the text of a reply; the `last` one is the run's answer."""
        schema_guards = self.own if self.nested else self.all
        return await _combine(
            guard.validate_output(reply_text)
            if last and guard in schema_guards
            else guard.screen_output(reply_text)
            for guard in self.all
        )

    async def refusal(self, call: ToolCall, warn: Callable[[Text], None]) -> ToolResult | None:
        """Return the result of a blocked `call`, or None if it may run. Warnings are reported once."""
        if not self.all:
            return None
        if call.id in self._refusals:
            return self._refusals[call.id]
        call_as_text = call_text(call)
        answer = await _combine(guard.screen_output(call_as_text) for guard in self.all)
        if answer["action"] == "warn":
            warn(_format_warning(answer["reason"]))
        why = text("guardrails.not_called", why=as_text(answer["reason"]))
        blocked = answer["action"] == "block"
        result = self._refusals[call.id] = ToolResult(outcome="denied", text=why) if blocked else None
        return result


def guards_of(services: RunServices, agent: Agent, *, nested: bool) -> RunGuards:
    """Return the guardrails for a run of `agent`."""
    shared = _content_guards(services.guardrails)
    if agent.part is not None and agent.part.repeats:
        from daiku.guard.guardrails.similarity import SimilarityGuard  # when used

        shared = tuple(guard for guard in shared if not isinstance(guard, SimilarityGuard))
    return RunGuards(shared, _content_guards(agent.guardrails), nested)


def _content_guards(guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
    """Return the guardrails that check content; token guards are handled by `token_guards`."""
    return tuple(
        guard if hasattr(guard, "screen_output") else _TwoMethodGuard(guard)
        for guard in guards
        if not isinstance(guard, TokenGuard)
    )


@dataclass(frozen=True, slots=True)
class _TwoMethodGuard:
    """Adapter for a guardrail without screen_input and screen_output; it validates all content."""

    guard: Guard

    @property
    def judges_output(self) -> bool:
        return True

    async def validate_input(self, data: object) -> GuardrailAnswer:
        return await self.guard.validate_input(data)

    async def validate_output(self, data: object) -> GuardrailAnswer:
        return await self.guard.validate_output(data)

    screen_input = validate_input
    screen_output = validate_output


async def check_user_message(services: RunServices, live: LiveRun | None, message: str) -> None:
    """Check a user message for a run; `live` if it is in progress here. Raises GuardrailViolation."""
    own = live.log.agent.guardrails if live is not None else ()
    for event in await RunGuards(
        _content_guards(services.guardrails), _content_guards(own), nested=False
    ).check_message(message):
        is_blocked = isinstance(event, Failure)
        if live is not None:
            live.record(Notice(level="warning", text=event.message) if is_blocked else event)
        if is_blocked:
            raise GuardrailViolation(event)


async def guard_reply(
    guards: RunGuards, pieces: AsyncIterator[ModelEvent], warn: Callable[[Text], None]
) -> AsyncGenerator[ModelEvent]:
    """Yield a reply's pieces, buffered until it has passed if a guardrail checks outputs.

    Raises BlockedReply.
    """
    buffered: list[ModelEvent] = []
    buffers_replies = guards.buffers_replies  # read once: it may read files, and there are hundreds of pieces
    source = cast("AsyncGenerator[ModelEvent]", pieces)
    try:
        async for piece in source:
            match piece:
                case Reply():
                    checked = await _check_reply(guards, piece, warn)
                    thinking_blocked = checked.message.thinking != piece.message.thinking
                    for each in buffered:
                        if not (thinking_blocked and isinstance(each, ThinkingDelta)):
                            yield each
                    yield checked
                case Restarted():
                    buffered.clear()
                    yield piece
                case _ if buffers_replies:
                    buffered.append(piece)
                case _:
                    yield piece
    finally:
        await source.aclose()


async def _check_reply(guards: RunGuards, reply: Reply, warn: Callable[[Text], None]) -> Reply:
    message = reply.message
    answer = await guards.reply(message.text, last=not message.calls)
    if answer["action"] == "block":
        correction = (
            text("guardrails.answer_again", why=as_text(answer["reason"])) if guards.nested else NO_TEXT
        )
        raise BlockedReply(build_failure(answer["reason"]), reply.usage, correction)
    if answer["action"] == "warn":
        warn(_format_warning(answer["reason"]))
    if message.thinking and (await guards.reply(message.thinking, last=False))["action"] == "block":
        return replace(reply, message=message.model_copy(update={"thinking": ""}))
    return reply


async def _combine(answers: Iterable[Awaitable[GuardrailAnswer]]) -> GuardrailAnswer:
    """Return the first block, or all warnings in one. Checks run one after the other."""
    warnings: list[str] = []
    for each in answers:
        answer = await each
        if answer["action"] == "block":
            return answer
        if answer["action"] == "warn":
            warnings.append(answer["reason"])
    return {"action": "warn", "reason": joined("sentences", warnings)} if warnings else PASS


def _to_events(answer: GuardrailAnswer) -> tuple[Failure | Notice, ...]:
    match answer["action"]:
        case "block":
            return (build_failure(answer["reason"]),)
        case "warn":
            return (Notice(level="warning", text=_format_warning(answer["reason"])),)
        case "pass":
            return ()


def _format_warning(reason: str) -> Text:
    return text("guardrails.warned", why=as_text(reason))


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request ready to run: agent, results of guardrails and router, and events before the first reply."""

    request: RunRequest
    guard_events: tuple[Failure | Notice, ...] = ()
    routing_usage: Usage | None = None
    opening: tuple[Event, ...] = ()

    @property
    def is_blocked(self) -> bool:
        """True if a guardrail ends the run before any agent receives the request."""
        return any(isinstance(event, Failure) for event in self.guard_events)


async def prepare_request(services: RunServices, request: RunRequest) -> PreparedRequest:
    """Check the request and route it. Raises UsageError: no such agent, or no such router model."""
    agent = request.agent if isinstance(request.agent, Agent) else services.agents.find(request.agent)
    guard_events = await guards_of(services, agent, nested=False).request(request.text, request.context)
    prepared = PreparedRequest(replace(request, agent=agent), guard_events)
    if prepared.is_blocked or services.router is None or not _may_route(request, agent):
        return prepared
    candidates = _routable_agents(services, agent)
    route = await services.router.route(
        request.text,
        agents={name: each.description for name, each in candidates.items()},
        model=services.model,
    )
    chosen = [candidates[name] for name in route.agents if name in candidates]
    return await _assign(replace(prepared, routing_usage=route.usage), agent, chosen, route)


def _may_route(request: RunRequest, agent: Agent) -> bool:
    """Return True if the router may choose the agent: a new request that names none."""
    from daiku.team.table import COORDINATOR  # when used

    has_content = request.calls or request.brief is not None or request.told
    return not has_content and (agent.part is None or agent.name == COORDINATOR.name)


def _routable_agents(services: RunServices, agent: Agent) -> Mapping[str, Agent]:
    """Return the agents by name that a request to `agent` may go to."""
    from daiku.team.table import AGENTS, COORDINATOR  # when used

    builtin: Mapping[str, Agent] = AGENTS if agent.name == COORDINATOR.name else {}
    router_agents = getattr(services.router, "given", {})
    custom = {name: each for name, each in router_agents.items() if isinstance(each, Agent)}
    handoffs = {each.name: each for each in agent.handoffs}
    return {**builtin, **services.agents.own, **custom, **handoffs, agent.name: agent}


async def _assign(
    prepared: PreparedRequest, agent: Agent, chosen: list[Agent], route: Route
) -> PreparedRequest:
    """Give the run to one agent, or have `agent` combine the results of several hand-offs."""
    others = [each for each in chosen if each.name != agent.name]
    if not others:
        return prepared
    names = ", ".join(each.name for each in others)
    method = text("routing.by_model") if route.by == "model" else text("routing.by_rule")
    notice = Notice(level="info", text=text("routing.to", names=names, how=method))
    if len(chosen) == 1:
        target = chosen[0]
        target_events = await RunGuards((), target.guardrails, nested=False).request(prepared.request.text)
        return replace(
            prepared,
            request=replace(prepared.request, agent=target),
            guard_events=(*prepared.guard_events, *target_events, notice),
        )
    existing = {each.name for each in agent.handoffs}
    if agent.part is None:
        agent = agent.with_(
            handoffs=(*agent.handoffs, *(each for each in others if each.name not in existing))
        )
    calls = tuple(
        ToolCall(
            id=long_id("call"), tool=HANDOFF, args={"agent": each.name, "request": prepared.request.text}
        )
        for each in others
    )
    opaque = mark_own(AssistantMessage(calls=calls)).opaque
    message = MessageEvent(role="assistant", text=NO_TEXT, agent=agent.name, calls=calls, opaque=opaque)
    return replace(
        prepared,
        request=replace(prepared.request, agent=agent),
        guard_events=(*prepared.guard_events, notice),
        opening=(message, Usage()),
    )
