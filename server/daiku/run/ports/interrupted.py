"""Recovery of interrupted edits: files and checkpoints show whether they were made."""

from __future__ import annotations

from daiku.domain.events import CheckpointEvent, Edit, Event, ToolCallEvent
from daiku.domain.tools import ToolCall, ToolResult
from daiku.domain.work.patches import Patch
from daiku.edits.rules.changes.diff import render_patch, stat
from daiku.run.run_log import RunLog
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import text
from daiku.tools.files.make_edit import STORED_DIFF


async def settle_edit(call: ToolCall, log: RunLog) -> ToolResult | None:
    """Return the result of an interrupted edit, and record it if it was made; None if that is unknown."""
    events = _events_since(call, log)
    if any(isinstance(event, Edit) for event in events):
        return ToolResult(ok=True, text=text("calls.edit_made"))
    checkpoints = [event.checkpoint_id for event in events if isinstance(event, CheckpointEvent)]
    if not checkpoints:  # a checkpoint precedes each change
        return ToolResult(outcome="not_run", text=text("calls.edit_not_made"))
    changes = await log.services.checkpoints.compare(checkpoints[-1])
    if changes is None:
        return None
    applied, missing = changes
    if not applied.files:
        return ToolResult(outcome="not_run", text=text("calls.edit_not_made"))
    diff = truncate_middle(render_patch(applied), STORED_DIFF)
    files = tuple(stat(change) for change in applied.files)
    log.record(Edit(files=files, checkpoint_id=checkpoints[-1], call_id=call.id, diff=diff))
    if not missing.files:
        return ToolResult(ok=True, text=text("calls.edit_made"))
    return ToolResult(
        text=text("calls.edit_partly_made", made=_list_paths(applied), left=_list_paths(missing))
    )


def _list_paths(patch: Patch) -> str:
    return ", ".join(change.path for change in patch.files)


def _events_since(call: ToolCall, log: RunLog) -> list[Event]:
    """Return the run's events after the start of a call."""
    events = [chunk.event for chunk in log.read_chunks() if chunk.run == log.run]
    starts = (
        at for at, event in enumerate(events) if isinstance(event, ToolCallEvent) and event.id == call.id
    )
    return events[next(starts, 0) + 1 :]
