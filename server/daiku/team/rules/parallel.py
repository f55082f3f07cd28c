"""Decide when coders of independent steps run in parallel, and find the result of each."""

from __future__ import annotations

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.runs import ApprovalMode, has_answer
from daiku.domain.tools import ToolCall
from daiku.domain.work.plans import Plan, Step
from daiku.run.rules.state.state import State
from daiku.team.rules.record import AnsweredCall

PARALLEL_MODES: tuple[ApprovalMode, ...] = ("edits", "sandbox", "all")
"""Approval modes that allow parallel steps; with `ask` the user is asked before each step."""
MOST = 4
TOOL = "agent/parallel"


def find_parallel_steps(
    plan: Plan, log: tuple[AnsweredCall, ...], approvals: ApprovalMode
) -> tuple[Step, ...] | None:
    """Return the ready steps for parallel coders; None if there are fewer than two, or a call was rejected before."""
    if approvals not in PARALLEL_MODES or any(t.call.tool == TOOL and not _find_requests(t) for t in log):
        return None
    started_ids = {_find_step_id(part) for t in log for part in _find_requests(t)}
    completed_ids = {s.step_id for s in plan.steps if s.status == "completed"}
    steps = [
        s
        for s in plan.steps
        if s.status == "pending" and completed_ids.issuperset(s.depends_on) and s.step_id not in started_ids
    ]
    return tuple(steps[:MOST]) if len(steps) > 1 else None


def build_requests(steps: tuple[Step, ...], request: str) -> JsonObject:
    """Build the arguments of the call that gives `steps` to parallel coders."""
    requested: list[JsonValue] = [{"agent": "coder", "request": request, "step_id": s.step_id} for s in steps]
    return {"requests": requested, "only_apart": True}


def find_early_result(state: State, log: tuple[AnsweredCall, ...], step: Step) -> AnsweredCall | None:
    """Return the coder's unused result from a parallel call that was made before the step began."""
    return _find_result(state, log, step, begun=1)


def has_early_coder(state: State, log: tuple[AnsweredCall, ...], step: Step) -> bool:
    """Return True if a parallel coder finished the step before it began."""
    entry = _find_result(state, log, step, begun=0)
    return entry is not None and entry.ok


def _find_result(
    state: State, log: tuple[AnsweredCall, ...], step: Step, *, begun: int
) -> AnsweredCall | None:
    """Return the coder's result for the step from a call after which the step was begun `begun` times."""
    for index, entry in enumerate(log):
        for number, part in enumerate(_find_requests(entry)):
            if _find_step_id(part) != step.step_id or begun != sum(
                t.step_update == (step.step_id, "in_progress") for t in log[index:]
            ):
                continue
            key = f"{entry.call.id}:{number}"
            handoff = next(
                (b for b in reversed(state.nested.returned) if b.call_id in (key, f"{key}:again")), None
            )
            if handoff is None:
                return None
            call = ToolCall(id=key, tool="agent/handoff", args={"agent": "coder", "request": step.name})
            is_ok = has_answer(handoff.status) and not handoff.problem
            return AnsweredCall(
                call, "done" if is_ok else "failed", handoff.result or handoff.problem, handoff
            )
    return None


def _find_requests(entry: AnsweredCall) -> list[JsonValue]:
    """Return the requests of an executed parallel call; none if it was rejected."""
    requests = entry.call.args.get("requests") if entry.call.tool == TOOL else None
    is_rejected = entry.outcome == "not_run"
    return requests if isinstance(requests, list) and not is_rejected else []


def _find_step_id(part: JsonValue) -> str:
    return str(part.get("step_id", "")) if isinstance(part, dict) else ""
