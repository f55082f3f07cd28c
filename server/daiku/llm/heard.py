"""What a provider streams, its thoughts told apart from the answer wherever a template puts them in the text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from dataclasses import replace
from typing import assert_never, cast

from daiku.core.refs import placed
from daiku.core.thoughts import Piece, ThoughtSplitter, may_hold_thoughts, split_thoughts
from daiku.domain.messages import (
    AssistantMessage,
    ModelEvent,
    Reply,
    Restarted,
    TextDelta,
    ThinkingDelta,
)

THOUGHT_AFTER_ALL = "What was shown so far was the model's thinking, not its answer."


async def heard(stream: AsyncIterator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
    """`stream` with thoughts as thinking, in its deltas and in its Reply: everything behind it sees the
    answer only. `Restarted` comes where what was shown turns out to be a thought."""
    pieces = cast("AsyncGenerator[ModelEvent]", stream)
    splitter = ThoughtSplitter()
    try:
        async for event in pieces:
            if isinstance(event, TextDelta):
                if splitter.plain(event.text):
                    yield event
                    continue
                for told in _told(splitter.feed(event.text)):
                    yield told
            elif isinstance(event, Reply):
                for told in _told(splitter.close()):
                    yield told
                yield replace(event, message=_with_places(answered(event.message)))
            else:
                yield event
    finally:
        await pieces.aclose()


def answered(message: AssistantMessage) -> AssistantMessage:
    """The reply with what it only thought in `thinking`; itself where it thought nothing in its text."""
    if not may_hold_thoughts(message.text):
        return message
    answer, thought = split_thoughts(message.text)
    if answer == message.text:
        return message
    thinking = "\n\n".join(part for part in (message.thinking, thought) if part)
    return message.model_copy(update={"text": answer, "thinking": thinking})


def _with_places(message: AssistantMessage) -> AssistantMessage:
    """The reply with references to its calls by number made to references by id, which no model knows."""
    calls = placed(message.calls)
    return message if calls == message.calls else message.model_copy(update={"calls": calls})


def _told(pieces: Iterable[Piece]) -> Iterable[ModelEvent]:
    for piece in pieces:
        match piece.kind:
            case "answer":
                yield TextDelta(piece.text)
            case "thought":
                yield ThinkingDelta(piece.text)
            case "void":
                yield Restarted(THOUGHT_AFTER_ALL, 1, 0.0)
                yield ThinkingDelta(piece.text)
            case _:
                assert_never(piece.kind)
