"""Roles: agents that must reply in a fixed format; an unreadable reply is sent back with the error."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import cast

from pydantic import JsonValue

from daiku.core.replies.parse import ATTEMPTS, Unreadable, should_give_up
from daiku.core.run.reminders import promises
from daiku.core.state.context import is_rules
from daiku.core.textcalls.codecs import FormatProblem, TextProtocol, decode, encode
from daiku.dataclass import dataclass, replace
from daiku.domain.base import JsonObject
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
    mark_own,
)
from daiku.domain.tools import ToolSpec
from daiku.domain.work.handovers import Brief
from daiku.texts.text import NO_TEXT, Text, text


@dataclass(frozen=True, slots=True)
class Role:
    """The functions that read, check and continue an agent's fixed-format replies.
    All depend on the conversation alone, so that a resumed run goes on where it was.

    A model with tools of its own answers by them; one without writes the form. Whoever writes the form is understood
    either way. `read` gives the reply as it counts, with the calls that carry it out, or what is wrong with it;
    the flag says that the reply was cut off. `after_calls` gives what the role says or does next where no
    model needs to be asked for it: its last words, the next of its commands, or how it failed. `remind`
    gives what the model is told once more with this request only; empty for nothing. `accept_plain_text` is the
    result of a reply that stays in words although the form was asked for; None where words are none.
    `schema` is the JSON Schema of the form; a retry asks the model's server to hold the model to it.
    `failed` says how a reply that ends the run ends it, where that is not well. `unfit` says what in a reply that
    was read does not fit what the stage was given; empty for nothing. `has_result` says that the role has done something
    that words may conclude; before that, a second reply in words alone ends the run as failed.
    """

    read: Callable[[AssistantMessage, tuple[Message, ...], bool], AssistantMessage | Unreadable]
    after_calls: Callable[[tuple[Message, ...]], AssistantMessage | Failed | None]
    remind: Callable[[tuple[Message, ...], bool], str] = lambda _, __: ""
    accept_plain_text: Callable[[AssistantMessage], AssistantMessage] | None = None
    prose: Callable[[AssistantMessage, tuple[Message, ...]], AssistantMessage | Unreadable] = lambda said, _: (
        said
    )
    tools: tuple[ToolSpec, ...] = ()
    schema: JsonObject | None = None
    failed: Callable[[tuple[Message, ...], AssistantMessage], Failed | None] = lambda _, __: None
    unfit: Callable[[AssistantMessage, Brief | None], Text] = lambda _, __: NO_TEXT
    has_result: Callable[[tuple[Message, ...]], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Failed:
    """The role ends without success: its last words, and why."""

    text: Text
    failure: Failure


def messages_since_request(messages: Sequence[Message]) -> tuple[AssistantMessage | ToolMessage, ...]:
    """Return the messages after the person's last one: the work on that request. Messages with folder
    rules do not count as the person's."""
    found: list[AssistantMessage | ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, UserMessage):
            found.append(message)
        elif not is_rules(message):
            break
    return tuple(reversed(found))


def merge_role_calls(message: AssistantMessage, form: AssistantMessage | Unreadable) -> AssistantMessage:
    """Merge a reply's own tool calls with those that its role's format asks for, its own first. If the
    format is unreadable, the error is sent to the model with the next request."""
    if isinstance(form, Unreadable):
        if form.words_only or not message.text.strip():
            return message
        told: dict[str, JsonValue] = {**_told(message), "unread": form.problem}
        return message.model_copy(update={"opaque": {**message.opaque, "daiku": told}})
    own = [(call.tool, call.args) for call in message.calls]
    more = tuple(call for call in form.calls if (call.tool, call.args) not in own)
    return message.model_copy(
        update={
            "text": form.text if form.calls else message.text,
            "calls": (*message.calls, *more),
            "opaque": {**message.opaque, **form.opaque},
        }
    )


def _told(message: AssistantMessage) -> JsonObject:
    told = message.opaque.get("daiku")
    return told if isinstance(told, dict) else {}


def _unread(messages: Sequence[Message]) -> str:
    """Return the note on a form next to calls that could not be read; empty if there is none."""
    here = messages_since_request(messages)
    spoke = next((m for m in reversed(here) if isinstance(m, AssistantMessage)), None)
    problem = _told(spoke).get("unread") if spoke is not None else None
    return (
        f"Only the calls of your last reply were carried out; the rest of it was not: {problem}."
        if problem
        else ""
    )


async def stream_role_reply(
    role: Role,
    request: ModelRequest,
    ask: Callable[[ModelRequest], AsyncIterator[ModelEvent]],
    *,
    protocol: TextProtocol | None = None,
    brief: Brief | None = None,
    nested: bool = False,
) -> AsyncGenerator[ModelEvent]:
    """Stream the reply of a role, retrying a few times if it is unreadable, each time with the error of the
    previous one (R0.96–R0.101). With a text protocol, tools may be called in its format or in the role's. A model
    that has tools of its own answers by them: what it says in words counts, and is asked about once at most.
    The words of a `nested` role are its answer to the agent that asked it, also without a result.
    Raises DaikuError if the role failed, LLMRequestError of kind "format" after the last retry."""
    own = role.after_calls(request.messages)
    if own is not None:
        yield _of_its_own(own)  # what it says stays on record, whatever comes now
        if isinstance(own, Failed):
            raise DaikuError(own.failure)
        return
    usage, problems = Usage(), list[str]()
    may_conclude = nested or role.has_result(request.messages)
    written = asked = _written(role, request, protocol)
    while True:
        if problems:
            yield _retrying(problems[-1], len(problems))
        reply: Reply | None = None
        async with aclosing(cast("AsyncGenerator[ModelEvent]", ask(asked))) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    reply, usage = piece, usage.plus(piece.usage)
                elif not isinstance(piece, TextDelta):  # a form is shown once it is understood
                    yield piece
        assert reply is not None, "a stream ends with a Reply or raises"
        read = _understood(
            role, reply, request, protocol, brief, again=bool(problems), may_conclude=may_conclude
        )
        if isinstance(read, AssistantMessage):
            for event in _as_read(read, reply, usage):
                yield event
            if not read.calls and (ended := role.failed(request.messages, read)) is not None:
                raise DaikuError(ended.failure)
            return
        problems.append(read.problem)
        in_vain = read.words_only and len(problems) > 1 and not may_conclude
        if in_vain or should_give_up(problems):
            if read.words_only:  # it has no form, yet it is said
                yield Reply(AssistantMessage(text=reply.message.text), usage, reply.finish)
            raise _unusable(problems[-1])
        asked = _again(role, written, reply, read.problem, by_tools=_by_tools(request, protocol))


def _of_its_own(said: AssistantMessage | Failed) -> Reply:
    """Build the reply that the role gives without the model."""
    message = AssistantMessage(text=said.text) if isinstance(said, Failed) else said
    return Reply(mark_own(message), Usage(), "tool_calls" if message.calls else "stop")


def _by_tools(request: ModelRequest, protocol: TextProtocol | None) -> bool:
    """Return True if the model has tools and calls them natively."""
    return protocol is None and bool(request.tools)


def _understood(
    role: Role,
    reply: Reply,
    request: ModelRequest,
    protocol: TextProtocol | None,
    brief: Brief | None,
    *,
    again: bool,
    may_conclude: bool,
) -> AssistantMessage | Unreadable:
    """Return the reply as the run records it. If the model answers by tools, its role judges a reply in words; else the
    form is requested first. On a retry (`again`), words count as they are if they `may_conclude` the run."""
    read, said = _read(role, reply, request, protocol, brief), reply.message
    by_tools = _by_tools(request, protocol)
    if isinstance(read, AssistantMessage):
        return read if again else _kept(role, read, request.messages)
    if by_tools and not said.text.strip() and not said.calls:
        return said  # the run asks about silence itself
    if not read.words_only:
        return read
    if by_tools and not again:
        concluded = role.prose(said, request.messages)
        return concluded if may_conclude or isinstance(concluded, Unreadable) else read
    if not may_conclude:
        return read
    if again and role.accept_plain_text is not None:
        return role.accept_plain_text(said)
    return said if by_tools else read


def _kept(role: Role, read: AssistantMessage, messages: tuple[Message, ...]) -> AssistantMessage | Unreadable:
    """Return the reply, unless it only promises a call and so would end the run as failed."""
    gives_up = not read.calls and role.failed(messages, read) is not None
    return Unreadable(text("roles.only_promised")) if gives_up and promises(read.text) else read


def _retrying(what: str, count: int) -> Restarted:
    reason = text("roles.asked_again", problem=what, count=count, most=ATTEMPTS - 1)
    return Restarted(reason, count, 0)


def _unusable(problem: str) -> LLMRequestError:
    return LLMRequestError(
        Failure(
            kind="format",
            message=text("roles.unreadable", problem=problem),
            hint=text("llm.try_another_model"),
        )
    )


def _as_read(read: AssistantMessage, reply: Reply, usage: Usage) -> tuple[ModelEvent, ...]:
    """Return the events of a readable reply."""
    whole = Reply(_in_place(read, reply), usage, "tool_calls" if read.calls else reply.finish)
    # Our own sentences are not streamed: a front shows them in the person's language once they are recorded.
    return (TextDelta(read.text), whole) if read.text and not read.text.id else (whole,)


def _again(role: Role, written: ModelRequest, reply: Reply, problem: str, *, by_tools: bool) -> ModelRequest:
    """Build the retry of a request: with the reply and its problem, as the results of its calls if it made some."""
    how = "" if by_tools else ", in the form that was asked for"
    told = f"Your reply could not be used: {problem}. Answer again{how}."
    results: tuple[Message, ...] = tuple(
        ToolMessage(call_id=call.id, tool=call.tool, ok=False, text=told) for call in reply.message.calls
    )
    asked = results or (UserMessage(text=told, kind="note"),)
    schema = None if results else role.schema
    return replace(written, messages=(*written.messages, reply.message, *asked), schema=schema)


def _in_place(read: AssistantMessage, reply: Reply) -> AssistantMessage:
    """Return the role's reading of a reply, with the reply's position in its script if it has one."""
    place = {key: value for key, value in reply.message.opaque.items() if key == PLACE_KEY}
    return read.model_copy(update={"opaque": {**place, **read.opaque}})


def _written(role: Role, request: ModelRequest, protocol: TextProtocol | None) -> ModelRequest:
    """Build the request for the model; its reminder is in no later request."""
    told = role.remind(request.messages, _by_tools(request, protocol))
    parts = (_unread(request.messages), told)
    if reminder := "\n\n".join(part for part in parts if part):
        request = replace(request, messages=(*request.messages, UserMessage(text=reminder, kind="note")))
    return request if protocol is None else encode(request, protocol)


def _read(
    role: Role, reply: Reply, request: ModelRequest, protocol: TextProtocol | None, brief: Brief | None
) -> AssistantMessage | Unreadable:
    """Read the reply in the role's form, else in the form of the text protocol. A call in the text protocol takes
    precedence over prose that the role accepts."""
    message, messages, cut = reply.message, request.messages, reply.finish == "length"
    read = _fitting(role, role.read(message, messages, cut), brief)
    if protocol is None or (isinstance(read, AssistantMessage) and read.calls):
        return read
    decoded = decode(message, protocol, finish=reply.finish, tools=request.tools)
    if isinstance(decoded, FormatProblem) or (decoded.text == message.text and not decoded.calls):
        return read
    again = _fitting(role, role.read(decoded, messages, cut), brief)
    return again if isinstance(again, AssistantMessage) else read


def _fitting(
    role: Role, read: AssistantMessage | Unreadable, brief: Brief | None
) -> AssistantMessage | Unreadable:
    problem = role.unfit(read, brief) if isinstance(read, AssistantMessage) else ""
    return Unreadable(problem) if problem else read
