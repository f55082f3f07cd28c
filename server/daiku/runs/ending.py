"""How a run is ended from outside its loop: cancelled, out of time, failed."""

from __future__ import annotations

from daiku.core.worked import touched_plan
from daiku.domain.errors import Failure
from daiku.domain.events import ErrorHappened, Event, RunFinished, ToolResponded
from daiku.domain.runs import TerminalStatus
from daiku.runs.live import LiveRun

CANCELLED = "This call was cancelled by the person; it may have had an effect."
CUT_SHORT = "This call was cut short as the run ended; it may have had an effect."


def end(live: LiveRun, status: TerminalStatus, failure: Failure | None) -> None:
    """Close the run on record: what is under way gets its response, then the one terminal status."""
    state = live.record.state
    if state.finished is not None:
        return
    open_calls = [c for c in state.pending if c.id in state.started]
    closing: list[Event] = [
        ToolResponded(
            id=c.id,
            tool=c.tool,
            ok=False,
            outcome="cancelled" if status == "cancelled" else "interrupted",
            result=CANCELLED if status == "cancelled" else CUT_SHORT,
        )
        for c in open_calls
    ]
    if failure is not None:
        closing.append(
            ErrorHappened(
                kind=failure.kind,
                message=failure.message,
                hint=failure.hint,
                retryable=failure.retryable,
            )
        )
    plan = touched_plan(state)
    finished = RunFinished(
        status=status,
        text=state.text,
        usage=state.usage,
        plan=plan.standing() if plan is not None else None,
    )
    live.record(*closing, finished)


def time_is_up(seconds: int) -> Failure:
    return Failure(
        kind="limit",
        message=f"The limit of time was reached ({seconds} s).",
        hint="Raise limits.max_seconds, or go on with a new request.",
    )


def unexpected() -> Failure:
    return Failure(
        kind="internal",
        message="Something unexpected went wrong.",
        hint="The log has the details (`Daiku: Show Log`, or logs/daiku.log).",
    )
