"""A role that answers in a form of its own: its reply is read, and asked for again while it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import cast

from daiku.core.attempts import ATTEMPTS, WAIT
from daiku.core.parse import Unreadable
from daiku.domain.errors import Failure, LLMRequestError
from daiku.domain.messages import (
    AssistantMessage,
    Message,
    ModelEvent,
    ModelRequest,
    Reply,
    Restarted,
    TextDelta,
    Usage,
    UserMessage,
)


@dataclass(frozen=True, slots=True)
class Role:
    """Both are functions of the conversation alone, so that a resumed run goes on where it was.

    `read` gives the reply as it counts, with the calls that carry it out, or what is wrong with it;
    the flag says that the reply was cut off. `close` gives the role's last words where no model
    needs to be asked for them.
    """

    read: Callable[[AssistantMessage, tuple[Message, ...], bool], AssistantMessage | Unreadable]
    close: Callable[[tuple[Message, ...]], AssistantMessage | None]


async def in_role(
    role: Role,
    request: ModelRequest,
    ask: Callable[[ModelRequest], AsyncIterator[ModelEvent]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[ModelEvent]:
    """As a model's stream, with at most five replies two seconds apart, each told what was wrong with
    the one before (R0.96–R0.101). Raises LLMRequestError of kind "format" after the last."""
    closing = role.close(request.messages)
    if closing is not None:
        yield TextDelta(closing.text)
        yield Reply(closing, Usage(), "stop")
        return
    usage, asked, problem = Usage(), request, ""
    for attempt in range(1, ATTEMPTS + 1):
        reply: Reply | None = None
        pieces = cast("AsyncGenerator[ModelEvent]", ask(asked))
        try:
            async for piece in pieces:
                match piece:
                    case Reply():
                        reply = piece
                    case TextDelta():
                        pass  # a form is not for reading: what it says is shown once it is understood
                    case _:
                        yield piece
        finally:
            await pieces.aclose()
        assert reply is not None, "a stream ends with a Reply or raises"
        usage = usage.plus(reply.usage)
        read = role.read(reply.message, request.messages, reply.finish == "length")
        if isinstance(read, AssistantMessage):
            if read.text:
                yield TextDelta(read.text)
            yield Reply(read, usage, "tool_calls" if read.calls else reply.finish)
            return
        problem = read.problem
        if attempt < ATTEMPTS:
            yield Restarted(f"Error occurred: {problem}. Retrying in {WAIT:g} seconds...", attempt, WAIT)
            await sleep(WAIT)
            told = UserMessage(
                text=f"Your reply could not be used: {problem}. Answer again, in the form that was asked for."
            )
            asked = replace(asked, messages=(*request.messages, reply.message, told))
    raise LLMRequestError(
        Failure(
            kind="format",
            message=f"All retry attempts failed: the reply could not be read ({problem}).",
            hint="Try again, or choose another model.",
        )
    )
