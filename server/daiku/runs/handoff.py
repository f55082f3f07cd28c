"""A nested run: another agent works on a request, and its answer comes back as the call's result."""

from __future__ import annotations

import asyncio

from daiku.agents.agent import find_agent
from daiku.core import loop
from daiku.domain.errors import DaikuError, Failure, HandoffDepthExceeded
from daiku.domain.events import HandoffEnd, HandoffStart, RunStarted
from daiku.runs.ending import end
from daiku.runs.live import LiveRun

MAX_DEPTH = 3
"""Nested handoffs that are allowed; the fourth is refused (R1.31, C1.4)."""


async def hand_over(parent: LiveRun, name: str, request: str) -> str:
    """What agent `name` answers to `request`, after `on_handoff_return` (R1.32, R1.33). Its chunks carry
    its own name and run and the parent's run as `parent`; it draws on the same budget and approvals.

    Raises HandoffDepthExceeded, UsageError (no such agent).
    """
    if parent.depth >= MAX_DEPTH:
        raise HandoffDepthExceeded(
            Failure(
                kind="handoff_depth",
                message=f"At most {MAX_DEPTH} nested handoffs are allowed.",
                hint="Do this part yourself.",
            )
        )
    agent = find_agent(name)
    state = parent.record.state
    between = {"from": parent.agent, "to": agent.name}
    parent.record(HandoffStart.model_validate({**between, "request": request}))
    child = parent.child(agent)
    child.record(RunStarted(prompt=request, mode=state.mode, model=state.model, limits=state.limits))
    parent.known[child.run] = child
    try:
        child.prepare()
        await loop.run(child.record, child)
    except asyncio.CancelledError:
        end(child, "cancelled", None)
        raise
    except DaikuError as error:
        end(child, "failed", error.failure)
    finally:
        del parent.known[child.run]
    outcome = child.result()
    answer = outcome.text or (outcome.error.message if outcome.error is not None else "")
    answer = agent.on_handoff_return(answer)
    parent.record(HandoffEnd.model_validate({**between, "result": answer}))
    return answer
