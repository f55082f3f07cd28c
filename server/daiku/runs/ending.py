"""Run the loop until a run ends, and record the end where it is cancelled, timed out or failed."""

from __future__ import annotations

import asyncio
import logging

from daiku.core.run import loop
from daiku.core.run.plan_outcome import ending
from daiku.core.state.state import State
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import Event, ToolResponse
from daiku.domain.runs import TerminalStatus
from daiku.runs.live import LiveRun
from daiku.runs.ports.run_ports import RunPorts
from daiku.runs.run_log import RunLog, prompt_notices
from daiku.runs.waiting import Paused
from daiku.texts.text import text

log = logging.getLogger(__name__)

CANCELLED = "This call was cancelled by the person; it may have had an effect."
CUT_SHORT = "This call was cut short as the run ended; it may have had an effect."


async def run_to_end(live: LiveRun, *, again: bool) -> State:
    """Go on with the run until it is finished or paused, and see to it that it ends in one status. `again`: what
    it waits for is shown once more. Raises DaikuError where not even its end can be recorded."""
    seconds = live.record.state.request.limits.max_seconds
    bound = asyncio.timeout(seconds or None)
    live.task = asyncio.current_task()
    if live.cancelled:  # before it began
        _end_cancelled(live)
        return live.record.state
    try:
        async with bound:
            with live.log.services.prompts.active():
                ports = RunPorts(live)
                live.log.record(
                    *prompt_notices(live.log.services.prompts.failed())
                )  # as its system prompt was filled in
                if again:
                    live.log.show_open_questions()
                return await loop.run(live.record, ports)
    except Paused:
        return live.record.state
    except TimeoutError:
        if not bound.expired():
            raise
        end(live.log, "limit", time_limit_failure(seconds))
    except asyncio.CancelledError:
        _end_cancelled(live)
    except DaikuError as error:
        end(live.log, "failed", error.failure)
    except Exception:  # the run boundary: one of the three places that catch all
        log.exception("run %s failed", live.run)
        end(live.log, "failed", unexpected())
    return live.record.state


def _end_cancelled(live: LiveRun) -> None:
    if not live.abandoned:
        end(live.log, "cancelled", None)


def end(log: RunLog, status: TerminalStatus, failure: Failure | None) -> None:
    """Close the run on record: what is under way gets its response, then the one terminal status."""
    state = log.record.state
    if state.finished is not None:
        return
    open_calls = [c for c in state.calls.pending if c.id in state.calls.started]
    closing: list[Event] = [
        ToolResponse(
            id=c.id,
            tool=c.tool,
            ok=False,
            outcome="cancelled" if status == "cancelled" else "interrupted",
            result=CANCELLED if status == "cancelled" else CUT_SHORT,
        )
        for c in open_calls
    ]
    if failure is not None:
        closing.append(failure)
    log.record(*closing, *ending(state, status))


def time_limit_failure(seconds: int) -> Failure:
    return Failure(
        kind="limit",
        message=text("limits.time_is_up", seconds=seconds),
        hint=text("limits.raise", setting="max_seconds"),
    )


def unexpected() -> Failure:
    return Failure(kind="internal", message=text("runs.unexpected"), hint=text("runs.see_log"))
