"""The events of a reply with its thinking moved out of the text, wherever a chat template puts it."""

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
_LOOKED_AT = re.compile(r"[<\[◁\n](?:(?<!\[)|(?=[/A-Z_]|$))")
"""What `ThoughtSplitter` or `HumanText` has to see at once within a line: all begins with one of a few signs,
so that a text without them is known at a glance."""


class ReplyFilter:
    """The events of one reply as they come: thoughts as thinking, in the deltas and in the Reply, so that
    everything behind it sees the answer only. `Restarted` comes where what was shown turns out to be a
    thought. With `for_person`, which begins a reply anew, only what is for the person comes as text."""

    __slots__ = ("_calm", "_for_person", "_passed", "_splitter", "prose")

    def __init__(self, for_person: Callable[[], HumanText] | None = None) -> None:
        self._for_person = for_person
        self.prose = for_person() if for_person else None
        self._splitter = ThoughtSplitter()
        self._calm = False  # text without marks is shown as it is
        self._passed: list[str] = []  # it was shown, and the two above have not seen it yet

    def passes(self, text: str) -> bool:
        """Return whether a delta can be shown unprocessed, by a cheap check that holds for most deltas. If
        not, it must go through `events_of`."""
        if not self._calm or _LOOKED_AT.search(text):
            return False
        self._passed.append(text)
        return True

    def events_of(self, event: ModelEvent) -> Sequence[ModelEvent]:
        """Return the filtered events for an event that `passes` did not accept."""
        if self._passed:
            self._catch_up("".join(self._passed))
        match event:
            case TextDelta(text):
                shown = self._events(self._splitter.feed(text))
                self._calm = self._splitter.is_calm and (self.prose is None or self.prose.can_pass_through)
                return shown
            case Reply():
                message = _with_result_ids(separate_thinking(event.message))
                reply = event if message is event.message else replace(event, message=message)
                return (*self._events(self._splitter.close()), reply)
            case _:
                return (event,)

    def _catch_up(self, text: str) -> None:
        self._passed.clear()
        self._splitter.feed(text)
        if self.prose is not None:
            self.prose.feed(text)

    def _events(self, pieces: Iterable[ThoughtPiece]) -> list[ModelEvent]:
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
    """`stream` through a `ReplyFilter`, for a reply whose calls come apart from its text."""
    reply_filter = ReplyFilter()
    try:
        async for event in stream:
            if isinstance(event, TextDelta) and reply_filter.passes(event.text):
                yield event
                continue
            for shown in reply_filter.events_of(event):
                yield shown
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


def _with_result_ids(message: AssistantMessage) -> AssistantMessage:
    """The reply with references to its calls by number made to references by id, which no model knows."""
    calls = resolve_positions(message.calls)
    return message if calls == message.calls else message.model_copy(update={"calls": calls})
