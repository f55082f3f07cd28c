"""Ports of the loop, and the preview of a call for approval."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure, GuardrailViolation
from daiku.domain.events import ApprovalAsked, ApprovalGiven, InputAsked, InputGiven
from daiku.domain.messages import Message, ModelEvent, Usage
from daiku.domain.tools import ToolCall, ToolResult
from daiku.run.rules.decide import Rules
from daiku.run.rules.state.machine import Recorder
from daiku.run.rules.state.state import State
from daiku.texts.rules.visible import show_hidden
from daiku.texts.text import NO_TEXT, Text


@dataclass(frozen=True, slots=True)
class ApprovalPreview:
    """Preview of a call for the user.

    Preview, meaning of "always" (empty: not offered), number of hunks, and reason.
    """

    text: Text
    remember: Text = NO_TEXT
    hunks: int = 0
    why: Text = NO_TEXT


def approval_preview(call: ToolCall, text: str, remember: str, why: Text = NO_TEXT) -> ApprovalPreview:
    """Build the preview of a call with hidden characters visible; if there are any, hunks cannot be chosen."""
    from daiku.edits.rules.changes.choose import count_choices  # when used

    visible = show_hidden(text)
    hunks = count_choices(call.tool, text) if visible == text else 0
    return ApprovalPreview(visible, show_hidden(remember), hunks, why)


class BlockedReply(GuardrailViolation):
    """A guardrail blocked a reply.

    `usage`: its cost. `told`: correction for a retry, empty if the run ends.
    """

    def __init__(self, failure: Failure, usage: Usage, correction: Text) -> None:
        super().__init__(failure)
        self.usage, self.told = usage, correction


class Ports(Protocol):
    """What the loop needs from outside."""

    @property
    def rules(self) -> Rules: ...

    @property
    def agent(self) -> str: ...

    def paused(self) -> bool:
        """Return True if the run should stop at the next boundary, to be resumed later."""
        ...

    def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        """Yield the pieces of the model's next reply. Raises BlockedReply, DaikuError."""
        ...

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult: ...

    async def preview(self, call: ToolCall, record: Recorder) -> ApprovalPreview | ToolResult | None:
        """Return the preview for the user, an error, or None if the guard now allows the call."""
        ...

    async def trial(self, call: ToolCall, record: Recorder) -> ToolResult | Text:
        """Run `call` with its writes discarded. Return its result if it wrote nothing, else a reason to ask."""
        ...

    async def settle(self, call: ToolCall, record: Recorder) -> ToolResult | None:
        """Return the result of an interrupted call; None if its effect is unknown."""
        ...

    async def approval(self, question: ApprovalAsked) -> ApprovalGiven: ...

    async def answer(self, question: InputAsked) -> InputGiven: ...

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        """Return a summary that replaces `messages`, and its usage if a model was used."""
        ...
