"""The ports of the loop: what it needs of the world, and what a person is shown of a call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from daiku.dataclass import dataclass
from daiku.domain.errors import Failure, GuardrailViolation
from daiku.domain.events import ApprovalAsked, ApprovalGiven, InputAsked, InputGiven
from daiku.domain.messages import Message, ModelEvent, Usage
from daiku.domain.tools import ToolCall, ToolResult
from daiku.run.rules.decide import Rules
from daiku.run.rules.state.recorder import Recorder
from daiku.run.rules.state.state import State
from daiku.texts.rules.visible import show_hidden
from daiku.texts.text import NO_TEXT, Text


@dataclass(frozen=True, slots=True)
class ApprovalPreview:
    """What a person is shown of a call: preview, meaning of "always" (empty: none), number of hunks, and reason."""

    text: Text
    remember: Text = NO_TEXT
    hunks: int = 0
    why: Text = NO_TEXT


def approval_preview(call: ToolCall, text: str, remember: str, why: Text = NO_TEXT) -> ApprovalPreview:
    """Build the preview of a call with hidden characters visible; if there are any, hunks cannot be chosen."""
    from daiku.edits.rules.changes.choose import count_choices  # when used

    shown = show_hidden(text)
    hunks = count_choices(call.tool, text) if shown == text else 0
    return ApprovalPreview(shown, show_hidden(remember), hunks, why)


class BlockedReply(GuardrailViolation):
    """A guardrail blocked a reply. `usage`: its cost; `told`: note for a retry, empty if the run ends."""

    def __init__(self, failure: Failure, usage: Usage, told: Text) -> None:
        super().__init__(failure)
        self.usage, self.told = usage, told


class Ports(Protocol):
    """What the loop needs of the world."""

    @property
    def rules(self) -> Rules: ...

    @property
    def agent(self) -> str: ...

    def paused(self) -> bool:
        """True when the run should stop at the next boundary, to be resumed later."""
        ...

    def reply(self, state: State) -> AsyncIterator[ModelEvent]:
        """The pieces of the model's next reply. Raises BlockedReply, DaikuError."""
        ...

    async def call(self, call: ToolCall, record: Recorder) -> ToolResult: ...

    async def preview(self, call: ToolCall, record: Recorder) -> ApprovalPreview | ToolResult | None:
        """Return what the person is shown, an error, or None if the guard now allows the call."""
        ...

    async def trial(self, call: ToolCall, record: Recorder) -> ToolResult | Text:
        """Run `call` with its writes discarded. Return its result if it wrote nothing, else a reason to ask."""
        ...

    async def settle(self, call: ToolCall, record: Recorder) -> ToolResult | None:
        """Return the result of a call that was interrupted; None where nothing shows how far it got."""
        ...

    async def approval(self, asked: ApprovalAsked) -> ApprovalGiven: ...

    async def answer(self, asked: InputAsked) -> InputGiven: ...

    async def summarise(self, messages: tuple[Message, ...]) -> tuple[str, Usage | None]:
        """A summary that takes the place of `messages`, and what it cost where a model was asked."""
        ...
