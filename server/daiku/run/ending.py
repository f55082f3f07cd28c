"""The end of a run: completed, cancelled, timed out, or failed, and what it returns to its parent."""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from daiku.domain.errors import DaikuError, Failure
from daiku.domain.events import Event, HandoffEnd, ToolResponse
from daiku.domain.runs import TerminalStatus
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import Handover, NestedEvidence
from daiku.models.rules.replies.parse import Unreadable
from daiku.run.live import LiveRun
from daiku.run.ports.run_ports import RunPorts
from daiku.run.rules import loop
from daiku.run.rules.state.lessons import used_bullets
from daiku.run.rules.state.state import State
from daiku.run.rules.verdict import end_events
from daiku.run.run_log import RunLog, prompt_notices
from daiku.run.waiting import Paused
from daiku.team.agent import Agent
from daiku.team.rules.proof.attempts import is_refused
from daiku.team.rules.proof.evidence import to_handover
from daiku.texts.text import NO_TEXT, Text, text

log = logging.getLogger(__name__)

CANCELLED = "This call was cancelled by the person; it may have had an effect."
CUT_SHORT = "This call was cut short as the run ended; it may have had an effect."


async def run_to_end(live: LiveRun, *, again: bool) -> State:
    """Run until finished or paused, with one terminal status.

    `again`: show open questions once more. Raises DaikuError.
    """
    seconds = live.record.state.request.limits.max_seconds
    timeout = asyncio.timeout(seconds or None)
    live.task = asyncio.current_task()
    if live.cancelled:  # cancelled before its task started
        _end_cancelled(live)
        return live.record.state
    try:
        async with timeout:
            with live.log.services.prompts.activate():
                ports = RunPorts(live)
                # Filling in the system prompt can fail.
                live.log.record(*prompt_notices(live.log.services.prompts.take_failures()))
                if again:
                    live.log.show_open_questions()
                return await loop.run(live.record, ports)
    except Paused:
        return live.record.state
    except TimeoutError:
        if not timeout.expired():
            raise
        end(live.log, "limit", time_limit_failure(seconds))
    except asyncio.CancelledError:
        _end_cancelled(live)
    except DaikuError as error:
        end(live.log, "failed", error.failure)
    except Exception as error:  # the run boundary: one of the three places that catch all
        log.exception("run %s failed", live.run)
        end(live.log, "failed", unexpected(error))
    return live.record.state


def _end_cancelled(live: LiveRun) -> None:
    if not live.abandoned:
        end(live.log, "cancelled", None)


def end(log: RunLog, status: TerminalStatus, failure: Failure | None) -> None:
    """Record the end of a run: responses for open calls, the failure, then the terminal status."""
    state = log.record.state
    if state.finished is not None:
        return
    open_calls = [c for c in state.calls.pending if c.id in state.calls.started]
    closing: list[Event] = [cut_short(c, status) for c in open_calls]
    if failure is not None:
        closing.append(failure)
    log.record(*closing, *end_events(state, status))


def cut_short(call: ToolCall, status: TerminalStatus) -> ToolResponse:
    """Return the response of a call that was in progress when its run was ended."""
    by_person = status == "cancelled"
    return ToolResponse(
        id=call.id,
        tool=call.tool,
        ok=False,
        outcome="cancelled" if by_person else "interrupted",
        result=CANCELLED if by_person else CUT_SHORT,
    )


LONGEST_CAUSE = 500
"""Characters of an exception that an internal failure stores, at most."""


def time_limit_failure(seconds: int) -> Failure:
    return Failure(
        kind="limit",
        message=text("limits.time_is_up", seconds=seconds),
        hint=text("limits.raise", setting="max_seconds"),
    )


def unexpected(error: Exception) -> Failure:
    """Build the failure for an unhandled exception."""
    cause = f"{type(error).__name__}: {error}"[:LONGEST_CAUSE]
    return Failure(kind="internal", message=text("runs.unexpected"), hint=text("runs.see_log"), cause=cause)


class ParentLink(NamedTuple):
    """Link from a nested run to its parent.

    `elsewhere`: it used a copy of the project. `followed`: its parent has newer plans.
    """

    source: str
    run: str
    call: str
    elsewhere: bool
    followed: bool


def build_handoff_end(agent: Agent, state: State, link: ParentLink) -> HandoffEnd:
    """Build the result of a finished nested run of `agent` from its state."""
    handover, problem = _read_handover(agent, state)
    if state.failure is not None:
        problem = state.failure.message
    finished = state.finished
    return HandoffEnd.model_validate(
        {
            "from": link.source,
            "to": agent.name,
            "result": _format_return(agent, (finished.text if finished is not None else NO_TEXT) or problem),
            "run": link.run,
            "call_id": link.call,
            "status": finished.status if finished is not None else "failed",
            "handover": handover,
            "problem": problem,
            "error": state.failure,
            "deeds": NestedEvidence(commands=state.done.commands)
            if link.elsewhere
            else to_handover(state.done).model_copy(
                update={"edits": state.attempts.edits, "acted": state.attempts.acted}
            ),
            "plans": state.plans.all if state.plans.last and not link.followed else (),
            "usage": state.spending.usage,
            "rounds": state.spending.rounds + state.nested.rounds,
            "rejected": _count_rejections(state),
            "tainted": state.tainted,
            "unattended": state.unattended,
            "used_bullets": used_bullets(state),
            "reasons": finished.reasons if finished is not None else (),
            "refused": tuple(filter(is_refused, state.attempts.failed)),
        }
    )


def _count_rejections(state: State) -> int:
    own = sum(
        decision.decision in ("reject_once", "reject_always")
        for decision in state.questions.decisions.values()
    )
    return own + sum(nested_run.rejected for nested_run in state.nested.returned)


def _read_handover(agent: Agent, state: State) -> tuple[Handover | None, Text]:
    """Return the run's handover, or the reason that it is unusable."""
    handover = None if agent.stage is None else agent.stage.hand_back(state)
    return (None, handover.problem) if isinstance(handover, Unreadable) else (handover, Text(""))


def _format_return(agent: Agent, answer: Text) -> Text:
    """Return the agent's `on_handoff_return` of its answer. Raises TypeError if that is not a string."""
    result: object = agent.on_handoff_return(answer)
    if not isinstance(result, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # untyped programs
        raise TypeError(
            f"on_handoff_return of the agent {agent.name!r} gave {type(result).__name__}, not text"
        )
    return Text(result)
