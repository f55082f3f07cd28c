"""Roles: agents that must reply in a fixed format; an unreadable reply is sent back with the error."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import cast

from pydantic import JsonValue

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
from daiku.models.rules.replies.parse import MAX_ATTEMPTS, Unreadable, should_give_up
from daiku.models.rules.textcalls.codecs import FormatProblem, TextProtocol, decode, encode
from daiku.run.rules.reminders import announces_action
from daiku.run.rules.state.context import is_rules
from daiku.texts.text import NO_TEXT, Text, text


@dataclass(frozen=True, slots=True)
class Role:
    """Functions that read, check, and continue an agent's fixed-format replies.

    All are pure functions of the conversation, so that a resumed run continues at the same point.

    A model with tools answers by calling them; one without writes the form. The form is accepted from both.

    `read` returns the reply with the calls that carry it out, or its problem; the flag says that the reply was cut off.
    `after_calls` returns the next reply if no model is needed for it: the last words, the next command, or a failure.
    `remind` returns a note for this request only, empty for none.
    `accept_plain_text` returns the result of a second reply in words; None if words are no result.
    `prose` judges a reply in words of a model that answers by tools.
    `schema` is the JSON Schema of the form; a retry asks the model's server to hold the model to it.
    `failed` returns the failure of a reply that ends the run without success.
    `unfit` returns what in a readable reply does not fit the input of the stage, empty for nothing.
    `has_result` returns True if words may conclude the run; before that, a second reply in words ends it as failed.
    """

    read: Callable[[AssistantMessage, tuple[Message, ...], bool], AssistantMessage | Unreadable]
    after_calls: Callable[[tuple[Message, ...]], AssistantMessage | Failed | None] = lambda _: None
    remind: Callable[[tuple[Message, ...], bool], str] = lambda _, __: ""
    accept_plain_text: Callable[[AssistantMessage], AssistantMessage] | None = None
    prose: Callable[[AssistantMessage, tuple[Message, ...]], AssistantMessage | Unreadable] = (
        lambda reply, _: reply
    )
    tools: tuple[ToolSpec, ...] = ()
    schema: JsonObject | None = None
    failed: Callable[[tuple[Message, ...], AssistantMessage], Failed | None] = lambda _, __: None
    unfit: Callable[[AssistantMessage, Brief | None], Text] = lambda _, __: NO_TEXT
    has_result: Callable[[tuple[Message, ...]], bool] = lambda _: True


@dataclass(frozen=True, slots=True)
class Failed:
    """A role that ended without success: its last words, and the failure."""

    text: Text
    failure: Failure


def select_messages_since_request(messages: Sequence[Message]) -> tuple[AssistantMessage | ToolMessage, ...]:
    """Return the messages after the user's last one, without folder rules."""
    recent: list[AssistantMessage | ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, UserMessage):
            recent.append(message)
        elif not is_rules(message):
            break
    return tuple(reversed(recent))


def merge_role_calls(message: AssistantMessage, form: AssistantMessage | Unreadable) -> AssistantMessage:
    """Merge a reply's own tool calls with those of its role's format, its own first; report unreadable formats."""
    if isinstance(form, Unreadable):
        if form.words_only or not message.text.strip():
            return message
        data: dict[str, JsonValue] = {**_find_own_data(message), "unread": form.problem}
        return message.model_copy(update={"opaque": {**message.opaque, "daiku": data}})
    own = [(call.tool, call.args) for call in message.calls]
    more = tuple(call for call in form.calls if (call.tool, call.args) not in own)
    return message.model_copy(
        update={
            "text": form.text if form.calls else message.text,
            "calls": (*message.calls, *more),
            "opaque": {**message.opaque, **form.opaque},
        }
    )


def _find_own_data(message: AssistantMessage) -> JsonObject:
    data = message.opaque.get("daiku")
    return data if isinstance(data, dict) else {}


def _note_unread_form(messages: Sequence[Message]) -> str:
    """Return the note on a form next to calls that could not be read; empty if there is none."""
    recent = reversed(select_messages_since_request(messages))
    reply = next((message for message in recent if isinstance(message, AssistantMessage)), None)
    problem = _find_own_data(reply).get("unread") if reply is not None else None
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
    """Stream the reply of a role; retry an unreadable reply a few times with its error (R0.96–R0.101).

    A model with its own tools answers by them; plain words count after one question about them. A `nested` role may
    answer in words. Raises DaikuError if the role failed, LLMRequestError of kind "format" after the last retry.
    """
    if (own_reply := role.after_calls(request.messages)) is not None:
        yield _build_own_reply(own_reply)  # recorded even before an error
        if isinstance(own_reply, Failed):
            raise DaikuError(own_reply.failure)
        return
    usage, problems = Usage(), list[str]()
    may_conclude = nested or role.has_result(request.messages)
    first = current = _build_request(role, request, protocol)
    while True:
        if problems:
            yield _build_restart(problems[-1], len(problems))
        reply: Reply | None = None
        async with aclosing(cast("AsyncGenerator[ModelEvent]", ask(current))) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    reply, usage = piece, usage.plus(piece.usage)
                elif not isinstance(piece, TextDelta):  # a form is shown once it is readable
                    yield piece
        assert reply is not None, "a stream ends with a Reply or raises"
        parsed = _interpret_reply(
            role, reply, request, protocol, brief, is_retry=bool(problems), may_conclude=may_conclude
        )
        if isinstance(parsed, AssistantMessage):
            for event in _build_events(parsed, reply, usage):
                yield event
            if not parsed.calls and (ended := role.failed(request.messages, parsed)) is not None:
                raise DaikuError(ended.failure)
            return
        problems.append(parsed.problem)
        in_vain = parsed.words_only and len(problems) > 1 and not may_conclude
        if in_vain or should_give_up(problems):
            if parsed.words_only:  # replies without the form are recorded too
                yield Reply(AssistantMessage(text=reply.message.text), usage, reply.finish)
            raise _build_format_error(problems[-1])
        by_tools = _has_native_tools(request, protocol)
        current = _build_retry(role, first, reply, parsed.problem, by_tools=by_tools)


def _build_own_reply(answer: AssistantMessage | Failed) -> Reply:
    """Build the reply that the role gives without the model."""
    message = AssistantMessage(text=answer.text) if isinstance(answer, Failed) else answer
    return Reply(mark_own(message), Usage(), "tool_calls" if message.calls else "stop")


def _has_native_tools(request: ModelRequest, protocol: TextProtocol | None) -> bool:
    """Return True if the model has tools and calls them natively."""
    return protocol is None and bool(request.tools)


def _interpret_reply(
    role: Role,
    reply: Reply,
    request: ModelRequest,
    protocol: TextProtocol | None,
    brief: Brief | None,
    *,
    is_retry: bool,
    may_conclude: bool,
) -> AssistantMessage | Unreadable:
    """Return the reply for the record. Plain text is judged first, and may conclude on a retry (`is_retry`)."""
    read, message = _read_form(role, reply, request, protocol, brief), reply.message
    by_tools = _has_native_tools(request, protocol)
    if isinstance(read, AssistantMessage):
        return read if is_retry else _reject_promise(role, read, request.messages)
    if by_tools and not message.text.strip() and not message.calls:
        return message  # the run handles empty replies
    if not read.words_only:
        return read
    if by_tools and not is_retry:
        concluded = role.prose(message, request.messages)
        return concluded if may_conclude or isinstance(concluded, Unreadable) else read
    if not may_conclude:
        return read
    if is_retry and role.accept_plain_text is not None:
        return role.accept_plain_text(message)
    return message if by_tools else read


def _reject_promise(
    role: Role, read: AssistantMessage, messages: tuple[Message, ...]
) -> AssistantMessage | Unreadable:
    """Return the reply, unless it only promises a call and so would end the run as failed."""
    gives_up = not read.calls and role.failed(messages, read) is not None
    return Unreadable(text("roles.only_promised")) if gives_up and announces_action(read.text) else read


def _build_restart(what: str, count: int) -> Restarted:
    reason = text("roles.asked_again", problem=what, count=count, most=MAX_ATTEMPTS - 1)
    return Restarted(reason, count, 0)


def _build_format_error(problem: str) -> LLMRequestError:
    return LLMRequestError(
        Failure(
            kind="format",
            message=text("roles.unreadable", problem=problem),
            hint=text("llm.try_another_model"),
        )
    )


def _build_events(read: AssistantMessage, reply: Reply, usage: Usage) -> tuple[ModelEvent, ...]:
    """Return the events of a readable reply."""
    complete = Reply(_keep_position(read, reply), usage, "tool_calls" if read.calls else reply.finish)
    # Localized sentences are not streamed: a front shows them in the user's language once they are recorded.
    return (TextDelta(read.text), complete) if read.text and not read.text.id else (complete,)


def _build_retry(
    role: Role, first: ModelRequest, reply: Reply, problem: str, *, by_tools: bool
) -> ModelRequest:
    """Build the retry of the `first` request: with the reply and its problem, as the results of its calls if any."""
    form_note = "" if by_tools else ", in the form that was asked for"
    note = f"Your reply could not be used: {problem}. Answer again{form_note}."
    results: tuple[Message, ...] = tuple(
        ToolMessage(call_id=call.id, tool=call.tool, ok=False, text=note) for call in reply.message.calls
    )
    notes = results or (UserMessage(text=note, kind="note"),)
    schema = None if results else role.schema
    return replace(first, messages=(*first.messages, reply.message, *notes), schema=schema)


def _keep_position(read: AssistantMessage, reply: Reply) -> AssistantMessage:
    """Return the role's reading of a reply, with the reply's position in its script if it has one."""
    place = {key: value for key, value in reply.message.opaque.items() if key == PLACE_KEY}
    return read.model_copy(update={"opaque": {**place, **read.opaque}})


def _build_request(role: Role, request: ModelRequest, protocol: TextProtocol | None) -> ModelRequest:
    """Build the request for the model; its reminder is in no later request."""
    parts = (
        _note_unread_form(request.messages),
        role.remind(request.messages, _has_native_tools(request, protocol)),
    )
    if reminder := "\n\n".join(part for part in parts if part):
        request = replace(request, messages=(*request.messages, UserMessage(text=reminder, kind="note")))
    return request if protocol is None else encode(request, protocol)


def _read_form(
    role: Role, reply: Reply, request: ModelRequest, protocol: TextProtocol | None, brief: Brief | None
) -> AssistantMessage | Unreadable:
    """Read the reply in the role's form, else in the text protocol, whose calls precede accepted prose."""
    message, messages, cut = reply.message, request.messages, reply.finish == "length"
    read = _check_fit(role, role.read(message, messages, cut), brief)
    if protocol is None or (isinstance(read, AssistantMessage) and read.calls):
        return read
    decoded = decode(message, protocol, finish=reply.finish, tools=request.tools)
    if isinstance(decoded, FormatProblem) or (decoded.text == message.text and not decoded.calls):
        return read
    from_protocol = _check_fit(role, role.read(decoded, messages, cut), brief)
    return from_protocol if isinstance(from_protocol, AssistantMessage) else read


def _check_fit(
    role: Role, read: AssistantMessage | Unreadable, brief: Brief | None
) -> AssistantMessage | Unreadable:
    problem = role.unfit(read, brief) if isinstance(read, AssistantMessage) else ""
    return Unreadable(problem) if problem else read
