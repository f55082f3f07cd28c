"""Recorder of a run's events, and the moves of a run driven by a state machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from daiku.domain.errors import Failure
from daiku.domain.events import Event
from daiku.domain.messages import ToolMessage
from daiku.domain.tools import ToolCall
from daiku.run.rules.state.fold import apply
from daiku.run.rules.state.state import State
from daiku.texts.text import NO_TEXT, Text, text


class Recorder:
    """Sends each event to `write` (journal, then display), then folds it; then calls `after` with the state."""

    __slots__ = ("_after", "_write", "state")

    def __init__(
        self,
        state: State,
        write: Callable[[tuple[Event, ...]], Iterable[Event]],
        after: Callable[[State], None] | None = None,
    ) -> None:
        self.state = state
        self._write = write
        self._after = after

    def __call__(self, *events: Event) -> None:
        """Record `events` in one write; the written (redacted) events are folded."""
        for event in self._write(events):
            self.state = apply(self.state, event)
        if self._after is not None:
            self._after(self.state)


class MakeCall(NamedTuple):
    """Make this call; `text` explains it to the user. `asks`: translated question and choices."""

    call: ToolCall
    text: Text = NO_TEXT
    asks: tuple[Text, ...] = ()


class EndRun(NamedTuple):
    """End the run with this final answer."""

    text: Text


Move: TypeAlias = MakeCall | EndRun | Failure
"""A Failure ends the run as failed."""


def next_preset_call(state: State) -> MakeCall | EndRun:
    """Return the next preset call; the end after the last one, or after the first that failed."""
    calls = state.calls.preset
    ids = {call.id for call in calls}
    results = [m for m in state.conversation.messages if isinstance(m, ToolMessage) and m.call_id in ids]
    if len(results) < len(calls) and all(m.ok for m in results):
        return MakeCall(calls[len(results)])
    if all(m.ok for m in results):
        return EndRun(text("runs.all_done", count=len(results)))
    return EndRun(text("runs.stopped_at_failure", done=len(results) - 1, count=len(calls)))
