"""A role that answers in a form of its own: its reply is read, and asked for again while it cannot be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from daiku.core.attempts import ATTEMPTS, WAIT
from daiku.core.codecs import FormatProblem, TextProtocol, decode, encode
from daiku.core.context import is_rules
from daiku.core.parse import Unreadable
from daiku.domain.errors import DaikuError, Failure, LLMRequestError
from daiku.domain.messages import (
    PLACE_KEY,
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
    marked_own,
)


@dataclass(frozen=True, slots=True)
class Role:
    """Both are functions of the conversation alone, so that a resumed run goes on where it was.

    `read` gives the reply as it counts, with the calls that carry it out, or what is wrong with it;
    the flag says that the reply was cut off. `go_on` gives what the role says or does next where no
    model needs to be asked for it: its last words, the next of its commands, or how it failed. `remind`
    gives what the model is told once more with this request only; empty for nothing.
    """

    read: Callable[[AssistantMessage, tuple[Message, ...], bool], AssistantMessage | Unreadable]
    go_on: Callable[[tuple[Message, ...]], AssistantMessage | Failed | None]
    remind: Callable[[tuple[Message, ...]], str] = lambda _: ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The role ends without success: its last words, and why."""

    text: str
    failure: Failure


def since_asked(messages: Sequence[Message]) -> tuple[AssistantMessage | ToolMessage, ...]:
    """The messages after the person's last word: what the role did about it. Rules of a folder that came
    in between are no word of the person's."""
    found: list[AssistantMessage | ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, UserMessage):
            found.append(message)
        elif not is_rules(message):
            break
    return tuple(reversed(found))


async def in_role(
    role: Role,
    request: ModelRequest,
    ask: Callable[[ModelRequest], AsyncIterator[ModelEvent]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    *,
    protocol: TextProtocol | None = None,
) -> AsyncGenerator[ModelEvent]:
    """As a model's stream, with at most five replies two seconds apart, each told what was wrong with
    the one before (R0.96–R0.101). With a text protocol tools can be asked for in its form as well as
    in the role's own. Raises DaikuError where the role failed, LLMRequestError of kind "format" after the
    last reply."""
    own = role.go_on(request.messages)
    if isinstance(own, Failed):
        yield TextDelta(own.text)
        yield Reply(marked_own(AssistantMessage(text=own.text)), Usage(), "stop")
        raise DaikuError(own.failure)
    if own is not None:
        if own.text:
            yield TextDelta(own.text)
        yield Reply(marked_own(own), Usage(), "tool_calls" if own.calls else "stop")
        return
    usage, problem = Usage(), ""
    written = asked = _written(role, request, protocol)
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
        read = _read(role, reply, request.messages, protocol)
        if isinstance(read, AssistantMessage):
            if read.text:
                yield TextDelta(read.text)
            yield Reply(_in_place(read, reply), usage, "tool_calls" if read.calls else reply.finish)
            return
        problem = read.problem
        if attempt < ATTEMPTS:
            yield Restarted(f"Error occurred: {problem}. Retrying in {WAIT:g} seconds...", attempt, WAIT)
            await sleep(WAIT)
            asked = _again(written, reply, problem)
    raise LLMRequestError(
        Failure(
            kind="format",
            message=f"All retry attempts failed: the reply could not be read ({problem}).",
            hint="Try again, or choose another model.",
        )
    )


def _again(written: ModelRequest, reply: Reply, problem: str) -> ModelRequest:
    """The request once more, with the reply and what was wrong with it."""
    told = f"Your reply could not be used: {problem}. Answer again, in the form that was asked for."
    return replace(written, messages=(*written.messages, reply.message, UserMessage(text=told)))


def _in_place(read: AssistantMessage, reply: Reply) -> AssistantMessage:
    """What a role made of a reply, with the reply's place in its script, where it has one."""
    place = {key: value for key, value in reply.message.opaque.items() if key == PLACE_KEY}
    return read.model_copy(update={"opaque": {**place, **read.opaque}})


def _written(role: Role, request: ModelRequest, protocol: TextProtocol | None) -> ModelRequest:
    """The request as the model gets it; what it is reminded of is in no later request."""
    if reminder := role.remind(request.messages):
        request = replace(request, messages=(*request.messages, UserMessage(text=reminder)))
    return request if protocol is None else encode(request, protocol)


def _read(
    role: Role, reply: Reply, messages: tuple[Message, ...], protocol: TextProtocol | None
) -> AssistantMessage | Unreadable:
    """The reply in the role's form, else in the text protocol's. Prose that the role would take may hold
    a call in the protocol's form: then that counts."""
    message, cut = reply.message, reply.finish == "length"
    read = role.read(message, messages, cut)
    if protocol is None or (isinstance(read, AssistantMessage) and read.calls):
        return read
    known = {m.call_id: m.text for m in messages if isinstance(m, ToolMessage)}
    decoded = decode(message, protocol, finish=reply.finish, known=known)
    if isinstance(decoded, FormatProblem) or (decoded.text == message.text and not decoded.calls):
        return read
    again = role.read(decoded, messages, cut)
    return again if isinstance(again, AssistantMessage) else read
