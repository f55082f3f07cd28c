"""The moves of a run that is driven by a state machine, and the machine of a run whose calls were given."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from daiku.domain.errors import Failure
from daiku.domain.messages import ToolMessage
from daiku.domain.tools import ToolCall
from daiku.run.rules.state.state import State
from daiku.texts.text import NO_TEXT, Text, text


class MakeCall(NamedTuple):
    """Make this call; `text` tells the person why. `asks`: translated question and choices of a question."""

    call: ToolCall
    text: Text = NO_TEXT
    asks: tuple[Text, ...] = ()


class EndRun(NamedTuple):
    """End the run with these last words."""

    text: Text


Move: TypeAlias = MakeCall | EndRun | Failure
"""A Failure ends the run too: it cannot go on."""


def next_preset_call(state: State) -> MakeCall | EndRun:
    """The next of the calls; the end after the last one, or after the first that failed."""
    calls = state.calls.preset
    ids = {call.id for call in calls}
    done = [m for m in state.conversation.messages if isinstance(m, ToolMessage) and m.call_id in ids]
    if len(done) < len(calls) and all(m.ok for m in done):
        return MakeCall(calls[len(done)])
    if all(m.ok for m in done):
        return EndRun(text("runs.all_done", count=len(done)))
    return EndRun(text("runs.stopped_at_failure", done=len(done) - 1, count=len(calls)))
