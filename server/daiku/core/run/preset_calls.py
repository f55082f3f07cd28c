"""The state machine of a run that was given its calls: each is made in turn, until one fails."""

from __future__ import annotations

from daiku.core.state.machine import EndRun, MakeCall
from daiku.core.state.state import State
from daiku.domain.messages import ToolMessage


def next_preset_call(state: State) -> MakeCall | EndRun:
    """The next of the calls; the end after the last one, or after the first that failed."""
    calls = state.calls.preset
    ids = {call.id for call in calls}
    done = [m for m in state.conversation.messages if isinstance(m, ToolMessage) and m.call_id in ids]
    if len(done) < len(calls) and all(m.ok for m in done):
        return MakeCall(calls[len(done)])
    if all(m.ok for m in done):
        return EndRun(f"All {len(done)} done.")
    return EndRun(f"{len(done) - 1} of {len(calls)} done; stopped at the first that failed.")
