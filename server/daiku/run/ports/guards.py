"""The guardrails of one run, asked about its request, its calls and its replies."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from itertools import chain
from typing import cast

from daiku.dataclass import dataclass, field, replace
from daiku.domain.errors import Failure, GuardrailViolation
from daiku.domain.events import Notice
from daiku.domain.guardrails import GuardrailAnswer
from daiku.domain.messages import ModelEvent, Reply, Restarted, ThinkingDelta
from daiku.domain.runs import ContextItem
from daiku.domain.tools import ToolCall, ToolResult
from daiku.guard.guardrails.guardrail import PASS, violation
from daiku.guard.guardrails.tokens import TokenGuard
from daiku.guard.rules.guardrails.written import call_text
from daiku.run.live import LiveRun
from daiku.run.rules.outside import Guard
from daiku.run.rules.ports import BlockedReply
from daiku.run.services import RunServices
from daiku.team.agent import Agent
from daiku.texts.text import NO_TEXT, Text, as_text, joined, text


@dataclass(slots=True)
class RunGuards:
    """Guardrails of a run: `shared` ones, whose schemas do not count in a `nested` run, and the agent's `own`."""

    shared: tuple[Guard, ...]
    own: tuple[Guard, ...]
    nested: bool
    _judged: dict[str, ToolResult | None] = field(default_factory=dict[str, "ToolResult | None"])
    """Calls that were judged already: a call that waits for a person is judged before that."""

    @property
    def all(self) -> tuple[Guard, ...]:
        return (*self.shared, *self.own)

    @property
    def hold_back(self) -> bool:
        """Whether nothing of a reply is shown before it has passed."""
        return any(guard.judges_output for guard in self.all)

    async def request(self, said: str, context: tuple[ContextItem, ...] = ()) -> tuple[Failure | Notice, ...]:
        """Judge the request and its context: return a failure that ends the run, a warning, or nothing."""
        asked = self.own if self.nested else self.all
        texts = [item.text for item in context if item.text]
        checks = (guard.validate_input(said) for guard in asked)
        more = (guard.screen_input(each) for guard in asked for each in texts)
        return _as_events(await _judged(chain(checks, more)))

    async def joining(self, said: str) -> tuple[Failure | Notice, ...]:
        """The same for what a person says while the run is under way."""
        return _as_events(await _judged(guard.screen_input(said) for guard in self.all))

    async def reply(self, said: str, *, last: bool) -> GuardrailAnswer:
        """Judge the text of a reply; the `last` one is what the run answers."""
        whole = self.own if self.nested else self.all
        return await _judged(
            guard.validate_output(said) if last and guard in whole else guard.screen_output(said)
            for guard in self.all
        )

    async def refusal(self, call: ToolCall, warn: Callable[[Text], None]) -> ToolResult | None:
        """Why `call` is not carried out (R1.51); None where it may be. What somebody warns of is told once."""
        if not self.all:
            return None
        if call.id in self._judged:
            return self._judged[call.id]
        said = call_text(call)
        answer = await _judged(guard.screen_output(said) for guard in self.all)
        if answer["action"] == "warn":
            warn(_warning(answer["reason"]))
        why = text("guardrails.not_called", why=as_text(answer["reason"]))
        blocked = answer["action"] == "block"
        found = self._judged[call.id] = ToolResult(outcome="denied", text=why) if blocked else None
        return found


def guards_of(services: RunServices, agent: Agent, *, nested: bool) -> RunGuards:
    """The guardrails of a run of `agent`."""
    shared = _of_content(services.guardrails)
    if agent.part is not None and agent.part.repeats:
        from daiku.guard.guardrails.similarity import SimilarityGuard  # when used

        shared = tuple(guard for guard in shared if not isinstance(guard, SimilarityGuard))
    return RunGuards(shared, _of_content(agent.guardrails), nested)


def _of_content(guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
    """Those that judge what is said; tokens are counted elsewhere."""
    return tuple(
        guard if hasattr(guard, "screen_output") else _OfTwo(guard)
        for guard in guards
        if not isinstance(guard, TokenGuard)
    )


@dataclass(frozen=True, slots=True)
class _OfTwo:
    """Somebody's own guardrail that only knows inputs and outputs: what else is said is one of these."""

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


async def let_in(services: RunServices, live: LiveRun | None, said: str) -> None:
    """Judge what a person says to a run, `live` where it is under way here. Raises GuardrailViolation."""
    own = live.log.agent.guardrails if live is not None else ()
    for event in await RunGuards(_of_content(services.guardrails), _of_content(own), nested=False).joining(
        said
    ):
        blocked = isinstance(event, Failure)
        if live is not None:
            live.record(Notice(level="warning", text=event.message) if blocked else event)
        if blocked:
            raise GuardrailViolation(event)


async def guarded(
    guards: RunGuards, pieces: AsyncIterator[ModelEvent], warn: Callable[[Text], None]
) -> AsyncGenerator[ModelEvent]:
    """Yield a reply's pieces, held back until it passed if a guardrail judges outputs. Raises BlockedReply."""
    held: list[ModelEvent] = []
    hold_back = guards.hold_back  # asked once: it may look at files, and there are hundreds of pieces
    source = cast("AsyncGenerator[ModelEvent]", pieces)
    try:
        async for piece in source:
            match piece:
                case Reply():
                    passed = await _passed(guards, piece, warn)
                    unfit = passed.message.thinking != piece.message.thinking
                    for each in held:
                        if not (unfit and isinstance(each, ThinkingDelta)):
                            yield each
                    yield passed
                case Restarted():
                    held.clear()
                    yield piece
                case _ if hold_back:
                    held.append(piece)
                case _:
                    yield piece
    finally:
        await source.aclose()


async def _passed(guards: RunGuards, reply: Reply, warn: Callable[[Text], None]) -> Reply:
    message = reply.message
    answer = await guards.reply(message.text, last=not message.calls)
    if answer["action"] == "block":
        told = text("guardrails.answer_again", why=as_text(answer["reason"])) if guards.nested else NO_TEXT
        raise BlockedReply(violation(answer["reason"]), reply.usage, told)
    if answer["action"] == "warn":
        warn(_warning(answer["reason"]))
    if message.thinking and (await guards.reply(message.thinking, last=False))["action"] == "block":
        return replace(reply, message=message.model_copy(update={"thinking": ""}))
    return reply


async def _judged(answers: Iterable[Awaitable[GuardrailAnswer]]) -> GuardrailAnswer:
    """The first block, else every warning in one. `answers` are begun one after the other."""
    warned: list[str] = []
    for each in answers:
        answer = await each
        if answer["action"] == "block":
            return answer
        if answer["action"] == "warn":
            warned.append(answer["reason"])
    return {"action": "warn", "reason": joined("sentences", warned)} if warned else PASS


def _as_events(answer: GuardrailAnswer) -> tuple[Failure | Notice, ...]:
    match answer["action"]:
        case "block":
            return (violation(answer["reason"]),)
        case "warn":
            return (Notice(level="warning", text=_warning(answer["reason"])),)
        case "pass":
            return ()


def _warning(reason: str) -> Text:
    return text("guardrails.warned", why=as_text(reason))
