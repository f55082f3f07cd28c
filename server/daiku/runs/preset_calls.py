"""A run that was handed its calls: they are carried out one by one, and no model is asked."""

from __future__ import annotations

from daiku.core.state.state import State
from daiku.domain.messages import AssistantMessage, Reply, ToolMessage, Usage


def next_given(state: State) -> Reply:
    """The next call that the run was given, or its closing words: after the last one, or after the
    first that failed. A function of the state, so that a resumed run goes on where it was."""
    calls = state.calls.preset
    ids = {call.id for call in calls}
    done = [m for m in state.conversation.messages if isinstance(m, ToolMessage) and m.call_id in ids]
    if len(done) < len(calls) and all(m.ok for m in done):
        return Reply(AssistantMessage(calls=(calls[len(done)],)), Usage(), "tool_calls")
    failed = next((m for m in done if not m.ok), None)
    if failed is None:
        text = f"All {len(done)} done."
    else:
        text = f"{len(done) - 1} of {len(calls)} done; stopped at the first that failed."
    return Reply(AssistantMessage(text=text), Usage(), "stop")
