"""Tool calls in the text of replies: requests for models without native tools, and replies parsed for calls."""

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
    """Stream of one reply whose text may contain tool calls.

    An unreadable reply is sent back to the model with a correction, up to `retries` times. With native tools it is
    sent back once, then accepted as an answer. With `strict`, text without a call is not a reply in a text protocol,
    unless the request asks for text.
    """

    provider: Provider
    protocol: ToolProtocol
    retries: int = 1
    strict: bool = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """Stream the reply like `Provider.stream`, with tool calls removed from the text."""
        has_text_protocol = self.protocol != "native"
        encoded = request if self.protocol == "native" else encode(request, self.protocol)
        offered = OfferedTools(request.callable_tools)
        usage = Usage()
        tries = 1 + (1 if self.protocol == "native" else self.retries)
        for attempt in range(1, tries + 1):
            reply: Reply | None = None
            reply_filter = ReplyFilter(lambda: HumanText(offered, text_protocol=has_text_protocol))
            pieces = self.provider.stream(encoded)
            try:
                async for event in pieces:
                    if isinstance(event, TextDelta) and reply_filter.passes(event.text):
                        yield event
                        continue
                    for filtered in reply_filter.events_of(event):
                        if isinstance(filtered, Reply):
                            reply = filtered
                        else:
                            yield filtered
            finally:
                await pieces.aclose()
            assert reply is not None, "a stream ends with a Reply or raises"
            usage = usage.plus(reply.usage)
            parsed = self._parse_reply(reply, request, last=attempt == tries)
            if isinstance(parsed, AssistantMessage):
                # Daiku's own texts are not streamed.
                prose = None if reply.message.text.id else reply_filter.prose
                if prose and (unshown := prose.unshown_text(parsed.text)):
                    yield TextDelta(unshown)
                yield _final_reply(reply, parsed, usage)
                return
            logger.info(
                "reply %d of %d of %s was not read: %s", attempt, tries, request.model, parsed.problem
            )
            if attempt < tries:
                unreadable = text("llm.reply_unreadable", what=parsed.problem)
                yield Restarted(joined("sentences", [unreadable, text("llm.asking_again")]), attempt, 0.0)
                encoded = _with_correction(encoded, reply, parsed)
        raise LLMRequestError(
            Failure(
                kind="format",
                message=text(
                    "llm.not_the_protocol", model=request.model, protocol=self.protocol, count=tries
                ),
                hint=text("llm.choose_tool_protocol"),
            )
        )

    def _parse_reply(
        self, reply: Reply, request: ModelRequest, *, last: bool
    ) -> AssistantMessage | FormatProblem:
        is_complete = reply.message.calls or reply.finish == "content_filter"
        if reply.message.text.id or (self.protocol == "native" and is_complete):
            return reply.message
        parsed = decode(
            reply.message,
            self.protocol,
            finish=reply.finish,
            tools=request.callable_tools,
            again=last,
            strict=self.strict and not request.in_words,
        )
        is_cut = reply.finish == "length"
        gives_up = last or is_cut if self.protocol == "native" else last and is_cut
        if isinstance(parsed, FormatProblem) and gives_up:
            return mark_unreadable(reply.message)
        return parsed


def apply_schema(request: ModelRequest, has_support: bool) -> ModelRequest:
    """Return the request without tools and with its schema in the conversation, as servers do not show it to models.

    Without support, return it without its schema.
    """
    if not has_support:
        return replace(request, schema=None)
    schema = json.dumps(request.schema, ensure_ascii=False)
    note = UserMessage(text=f"Answer with one JSON value that fits this JSON Schema:\n{schema}", kind="note")
    return replace(request, messages=(*request.messages, note), tools=(), deferred=())


def _final_reply(reply: Reply, message: AssistantMessage, usage: Usage) -> Reply:
    finish = "tool_calls" if message.calls and reply.finish == "stop" else reply.finish
    return Reply(message, usage, finish)


def _with_correction(request: ModelRequest, reply: Reply, problem: FormatProblem) -> ModelRequest:
    correction: tuple[Message, ...] = (reply.message, UserMessage(text=problem.message, kind="note"))
    return replace(request, messages=(*request.messages, *correction))
