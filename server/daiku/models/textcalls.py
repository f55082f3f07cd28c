"""Calls that a model writes into its text: a request written for models without tools, a reply parsed for calls."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator

from daiku.dataclass import dataclass, replace
from daiku.domain.config import ToolProtocol
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
    mark_unreadable,
)
from daiku.models.provider import Provider
from daiku.models.reply_filter import ReplyFilter
from daiku.models.rules.textcalls.codecs import FormatProblem, decode, encode
from daiku.models.rules.textcalls.humantext import HumanText
from daiku.models.rules.textcalls.parsed_calls import OfferedTools
from daiku.texts.text import joined, text

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TextCallStream:
    """One reply whose text may hold calls. One that cannot be read goes back to the model, `retries` times, with
    what is wrong with it; natively once, and what is still not read then is an answer. `strict`: words alone are no
    reply of a text protocol, unless the request asks for words."""

    provider: Provider
    protocol: ToolProtocol
    retries: int = 1
    strict: bool = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Stream the reply like `Provider.stream`, with tool calls taken out of the text."""
        own = self.protocol != "native"
        written = request if self.protocol == "native" else encode(request, self.protocol)
        offered = OfferedTools(request.callable_tools)
        usage = Usage()
        tries = 1 + (1 if self.protocol == "native" else self.retries)
        for attempt in range(1, tries + 1):
            reply: Reply | None = None
            reply_filter = ReplyFilter(lambda: HumanText(offered, own=own))
            pieces = self.provider.stream(written)
            try:
                async for event in pieces:
                    if isinstance(event, TextDelta) and reply_filter.passes(event.text):
                        yield event
                        continue
                    for shown in reply_filter.events_of(event):
                        if isinstance(shown, Reply):
                            reply = shown
                        else:
                            yield shown
            finally:
                await pieces.aclose()
            assert reply is not None, "a stream ends with a Reply or raises"
            usage = usage.plus(reply.usage)
            read = self._read(reply, request, last=attempt == tries)
            if isinstance(read, AssistantMessage):
                prose = None if reply.message.text.id else reply_filter.prose  # our own words come whole
                if prose and (left := prose.unshown_text(read.text)):
                    yield TextDelta(left)
                yield _final_reply(reply, read, usage)
                return
            logger.info("reply %d of %d of %s was not read: %s", attempt, tries, request.model, read.problem)
            if attempt < tries:
                unreadable = text("llm.reply_unreadable", what=read.problem)
                yield Restarted(joined("sentences", [unreadable, text("llm.asking_again")]), attempt, 0.0)
                written = _with_correction(written, reply, read)
        raise LLMRequestError(
            Failure(
                kind="format",
                message=text(
                    "llm.not_the_protocol", model=request.model, protocol=self.protocol, count=tries
                ),
                hint=text("llm.choose_tool_protocol"),
            )
        )

    def _read(self, reply: Reply, request: ModelRequest, *, last: bool) -> AssistantMessage | FormatProblem:
        whole = reply.message.calls or reply.finish == "content_filter"
        if reply.message.text.id or (self.protocol == "native" and whole):
            return reply.message
        read = decode(
            reply.message,
            self.protocol,
            finish=reply.finish,
            tools=request.callable_tools,
            again=last,
            strict=self.strict and not request.in_words,
        )
        cut = reply.finish == "length"
        given_up = last or cut if self.protocol == "native" else last and cut
        if isinstance(read, FormatProblem) and given_up:
            return mark_unreadable(reply.message)
        return read


def apply_schema(request: ModelRequest, has_support: bool) -> ModelRequest:
    """Return the request without tools, and with its schema in the conversation too, as servers show it to no model.
    Without support, return it without its schema."""
    if not has_support:
        return replace(request, schema=None)
    schema = json.dumps(request.schema, ensure_ascii=False)
    note = UserMessage(text=f"Answer with one JSON value that fits this JSON Schema:\n{schema}", kind="note")
    return replace(request, messages=(*request.messages, note), tools=(), deferred=())


def _final_reply(reply: Reply, message: AssistantMessage, usage: Usage) -> Reply:
    finish = "tool_calls" if message.calls and reply.finish == "stop" else reply.finish
    return Reply(message, usage, finish)


def _with_correction(written: ModelRequest, reply: Reply, problem: FormatProblem) -> ModelRequest:
    more: tuple[Message, ...] = (reply.message, UserMessage(text=problem.message, kind="note"))
    return replace(written, messages=(*written.messages, *more))
