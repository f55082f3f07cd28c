"""Tools for models without them: the request written out as text, the reply's calls read back from it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace

from daiku.core.attempts import ATTEMPTS, WAIT
from daiku.core.codecs import FormatProblem, TextProtocol, decode, encode
from daiku.core.humantext import HumanText
from daiku.domain.errors import Failure, LLMRequestError
from daiku.domain.messages import (
    AssistantMessage,
    Message,
    ModelEvent,
    ModelRequest,
    Reply,
    Restarted,
    TextDelta,
    ToolMessage,
    Usage,
    UserMessage,
)
from daiku.llm.heard import heard
from daiku.llm.provider import Provider


@dataclass(frozen=True, slots=True)
class Exchange:
    """One reply in a text protocol. A reply that cannot be read goes back to the model with what is
    wrong with it, a bounded number of times."""

    provider: Provider
    protocol: TextProtocol
    sleep: Callable[[float], Awaitable[None]]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """As a provider's `stream`; only what is for the person comes as text."""
        known = {m.call_id: m.text for m in request.messages if isinstance(m, ToolMessage)}
        written = encode(request, self.protocol)
        usage = Usage()
        for attempt in range(1, ATTEMPTS + 1):
            reply: Reply | None = None
            said = HumanText()
            pieces = heard(self.provider.stream(written))
            try:
                async for event in pieces:
                    match event:
                        case TextDelta(text):
                            if shown := said.feed(text):
                                yield TextDelta(shown)
                        case Reply():
                            reply = event
                        case Restarted():
                            said = HumanText()
                            yield event
                        case _:
                            yield event
            finally:
                await pieces.aclose()
            assert reply is not None, "a stream ends with a Reply or raises"
            usage = usage.plus(reply.usage)
            read = decode(reply.message, self.protocol, finish=reply.finish, known=known)
            if isinstance(read, AssistantMessage):
                yield _closed(reply, read, usage)
                return
            if attempt < ATTEMPTS:
                again = f"Asking again ({attempt} of {ATTEMPTS - 1})."
                yield Restarted(f"The reply could not be read: {read.problem}. {again}", attempt, WAIT)
                await self.sleep(WAIT)
                written = _told(written, reply, read)
        raise LLMRequestError(
            Failure(
                kind="format",
                message=f"{request.model} did not keep to the {self.protocol} protocol in {ATTEMPTS} tries.",
                hint="Choose a model that can use tools, or the other tool_protocol.",
            )
        )


def _closed(reply: Reply, message: AssistantMessage, usage: Usage) -> Reply:
    finish = "tool_calls" if message.calls and reply.finish == "stop" else reply.finish
    return Reply(message, usage, finish)


def _told(written: ModelRequest, reply: Reply, problem: FormatProblem) -> ModelRequest:
    more: tuple[Message, ...] = (reply.message, UserMessage(text=problem.message))
    return replace(written, messages=(*written.messages, *more))
