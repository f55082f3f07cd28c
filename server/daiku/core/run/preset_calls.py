"""The state machine of a run that was given its calls: each is made in turn, until one fails."""

from __future__ import annotations

from daiku.core.state.machine import EndRun, MakeCall
from daiku.core.state.state import State
from daiku.domain.messages import ToolMessage
from daiku.texts.text import text


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
