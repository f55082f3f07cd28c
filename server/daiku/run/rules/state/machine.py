"""Moves of a run driven by a state machine, and the machine of a run with preset calls."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from daiku.domain.errors import Failure
from daiku.domain.messages import ToolMessage
from daiku.domain.tools import ToolCall
from daiku.run.rules.state.state import State
from daiku.texts.text import NO_TEXT, Text, text


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
