"""Separation of thinking from the text of a reply, for chat templates that put both into the text."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import assert_never

from daiku.dataclass import replace
from daiku.domain.messages import AssistantMessage, ModelEvent, Reply, Restarted, TextDelta, ThinkingDelta
from daiku.models.rules.replies.thoughts import (
    ThoughtPiece,
    ThoughtSplitter,
    may_hold_thoughts,
    split_thoughts,
)
from daiku.models.rules.textcalls.humantext import HumanText
from daiku.run.rules.calls.refs import resolve_positions
from daiku.texts.text import Text, text

THOUGHT_AFTER_ALL = text("llm.thought_after_all")
_NEEDS_PROCESSING = re.compile(r"[<\[◁\n](?:(?<!\[)|(?=[/A-Z_]|$))")
"""Matches text that `ThoughtSplitter` or `HumanText` must process; other deltas pass unprocessed."""


class ReplyFilter:
    """Filter for the events of one reply that turns thinking in the text into ThinkingDelta events.

    Yields `Restarted` if text that was already shown turns out to be thinking. With `for_person`, which starts a new
    filter for visible text, only text meant for the user comes as text.
    """

    __slots__ = ("_calm", "_for_person", "_passed", "_splitter", "prose")

    def __init__(self, for_person: Callable[[], HumanText] | None = None) -> None:
        self._for_person = for_person
        self.prose = for_person() if for_person else None
        self._splitter = ThoughtSplitter()
        self._calm = False  # text without marks passes unchanged
        self._passed: list[str] = []  # already shown, but not yet fed to the splitter and `prose`

    def passes(self, text: str) -> bool:
        """Return True if a delta can be shown unprocessed. The check is cheap and true for most deltas.

        Otherwise pass the delta to `events_of`.
        """
        if not self._calm or _NEEDS_PROCESSING.search(text):
            return False
        self._passed.append(text)
        return True

    def events_of(self, event: ModelEvent) -> Sequence[ModelEvent]:
        """Return the filtered events for an event that `passes` did not accept."""
        if self._passed:
            self._catch_up("".join(self._passed))
        match event:
            case TextDelta(text):
                events = self._convert_pieces(self._splitter.feed(text))
                self._calm = self._splitter.can_pass_through and (
                    self.prose is None or self.prose.can_pass_through
                )
                return events
            case Reply():
                message = _resolve_references(separate_thinking(event.message))
                reply = event if message is event.message else replace(event, message=message)
                return (*self._convert_pieces(self._splitter.close()), reply)
            case _:
                return (event,)

    def _catch_up(self, text: str) -> None:
        self._passed.clear()
        self._splitter.feed(text)
        if self.prose is not None:
            self.prose.feed(text)

    def _convert_pieces(self, pieces: Iterable[ThoughtPiece]) -> list[ModelEvent]:
        out: list[ModelEvent] = []
        for piece in pieces:
            match piece.kind:
                case "answer":
                    text = piece.text if self.prose is None else self.prose.feed(piece.text)
                    if text:
                        out.append(TextDelta(text))
                case "thought":
                    out.append(ThinkingDelta(piece.text))
                case "void":
                    if self._for_person:
                        self.prose = self._for_person()
                    out += (Restarted(THOUGHT_AFTER_ALL, 1, 0.0), ThinkingDelta(piece.text))
                case _:
                    assert_never(piece.kind)
        return out


async def filter_reply(stream: AsyncGenerator[ModelEvent]) -> AsyncGenerator[ModelEvent]:
    """Filter a stream whose tool calls come apart from its text through a `ReplyFilter`."""
    reply_filter = ReplyFilter()
    try:
        async for event in stream:
            if isinstance(event, TextDelta) and reply_filter.passes(event.text):
                yield event
                continue
            for filtered in reply_filter.events_of(event):
                yield filtered
    finally:
        await stream.aclose()


def separate_thinking(message: AssistantMessage) -> AssistantMessage:
    """Move the thinking in a reply's text to `thinking`; return the same message if there is none."""
    if not may_hold_thoughts(message.text):
        return message
    answer, thought = split_thoughts(message.text)
    if answer == message.text:
        return message
    thinking = "\n\n".join(part for part in (message.thinking, thought) if part)
    return message.model_copy(update={"text": Text(answer), "thinking": thinking})


def _resolve_references(message: AssistantMessage) -> AssistantMessage:
    """Return the message with references to its calls by number replaced by call ids, which models do not know."""
    calls = resolve_positions(message.calls)
    return message if calls == message.calls else message.model_copy(update={"calls": calls})
