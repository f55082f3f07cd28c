"""Run coders of independent steps in parallel: when to do so, and the results of each."""

from __future__ import annotations

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.runs import ApprovalMode, has_answer
from daiku.domain.tools import ToolCall
from daiku.domain.work.plans import Plan, Step
from daiku.run.rules.state.state import State
from daiku.team.rules.record import AnsweredCall

GRANTED: tuple[ApprovalMode, ...] = ("edits", "sandbox", "all")
"""Approvals with which steps are worked at once: with `ask` the person is asked before each step."""
MOST = 4
TOOL = "agent/parallel"


def at_once(plan: Plan, log: tuple[AnsweredCall, ...], approvals: ApprovalMode) -> tuple[Step, ...] | None:
    """Return the ready steps that coders could work on at once; None if fewer than two, or refused before."""
    if approvals not in GRANTED or any(t.call.tool == TOOL and not _pieces(t) for t in log):
        return None
    given = {_step_of(piece) for t in log for piece in _pieces(t)}
    done = {s.step_id for s in plan.steps if s.status == "completed"}
    ready = [
        s
        for s in plan.steps
        if s.status == "pending" and done.issuperset(s.depends_on) and s.step_id not in given
    ]
    return tuple(ready[:MOST]) if len(ready) > 1 else None


def requests(steps: tuple[Step, ...], request: str) -> JsonObject:
    """Arguments of the call that gives `steps` to coders at once."""
    wanted: list[JsonValue] = [{"agent": "coder", "request": request, "step_id": s.step_id} for s in steps]
    return {"requests": wanted, "only_apart": True}


def early_coder_result(state: State, log: tuple[AnsweredCall, ...], step: Step) -> AnsweredCall | None:
    """Return the coder's result from the parallel call, if it was made before the step began and is unused."""
    return _piece_of(state, log, step, begun=1)


def has_early_coder(state: State, log: tuple[AnsweredCall, ...], step: Step) -> bool:
    """Whether a coder is done with the step, though it was not begun yet."""
    found = _piece_of(state, log, step, begun=0)
    return found is not None and found.ok


def _piece_of(state: State, log: tuple[AnsweredCall, ...], step: Step, *, begun: int) -> AnsweredCall | None:
    """What the coder made of the step in a call since which it was begun so many times."""
    for place, taken in enumerate(log):
        for number, piece in enumerate(_pieces(taken)):
            if _step_of(piece) != step.step_id or begun != sum(
                t.step_update == (step.step_id, "in_progress") for t in log[place:]
            ):
                continue
            key = f"{taken.call.id}:{number}"
            back = next(
                (b for b in reversed(state.nested.returned) if b.call_id in (key, f"{key}:again")), None
            )
            if back is None:
                return None
            call = ToolCall(id=key, tool="agent/handoff", args={"agent": "coder", "request": step.name})
            well = has_answer(back.status) and not back.problem
            return AnsweredCall(call, "done" if well else "failed", back.result or back.problem, back)
    return None


def _pieces(taken: AnsweredCall) -> list[JsonValue]:
    """The requests of a call that was carried out; none where it was refused."""
    requests = taken.call.args.get("requests") if taken.call.tool == TOOL else None
    refused = taken.outcome == "not_run"
    return requests if isinstance(requests, list) and not refused else []


def _step_of(piece: JsonValue) -> str:
    return str(piece.get("step_id", "")) if isinstance(piece, dict) else ""
