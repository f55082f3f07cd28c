"""Decide the next call for one plan step: checks, coder, runner, checks again, and repairs within a budget."""

from __future__ import annotations

from pydantic import JsonValue

from daiku.domain.base import JsonObject
from daiku.domain.runs import ApprovalMode, has_answer
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import FailedCall
from daiku.domain.work.plans import Plan, Step
from daiku.models.rules.replies.parse import MAX_SAME_ERRORS
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import (
    TeamCall,
    build_check_failure,
    build_handoff,
    build_preliminary_checks,
    build_step_update,
    build_untried_checks,
    find_failed_checks,
    is_met,
)
from daiku.team.rules.proof.attempts import EDITING, is_refused
from daiku.team.rules.record import (
    AnsweredCall,
    add_user_messages,
    find_step_number,
    find_task_text,
    has_begun,
    list_answered_calls,
    select_since_begin,
    select_since_handoff,
    select_since_work,
)
from daiku.texts.text import text

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


def decide_step(
    state: State, plan: Plan, step: Step, approvals: ApprovalMode, *, runner: bool = True
) -> TeamCall:
    """Return the next call for the step in progress. `runner` False: a step with checks gets no runner."""
    log = list_answered_calls(state)
    entries = select_since_begin(log, step)
    if len(entries) == len(log) and not has_begun(log, step):  # begun by an earlier run, or by the user
        return build_step_update(
            step, "in_progress", text("team.step", number=find_step_number(plan, step), name=step.name)
        )
    if entries and entries[-1].call.tool == "plan/update_step":  # the update was rejected
        return build_step_update(
            step, "failed", text("team.stays_open", name=step.name, why=entries[-1].text)
        )
    early_result = find_early_result(state, log, step)
    entries = entries if early_result is None else (early_result, *entries)
    if not any(t.agent == "coder" for t in entries):
        return _begin_work(state, plan, step, approvals)
    return _continue_attempt(state, plan, step, entries, runner or not step.acceptance)


def _begin_work(state: State, plan: Plan, step: Step, approvals: ApprovalMode) -> TeamCall:
    """Run the checks before any work; then hand off to the coder, unless the step is already met."""
    if (
        check := next(
            build_preliminary_checks(
                state, plan, step, select_since_work(list_answered_calls(state)), approvals
            ),
            None,
        )
    ) is not None:
        return check
    if is_met(state, step):
        return build_step_update(step, "completed", text("team.met_already", name=step.name))
    return build_handoff(
        "coder",
        add_user_messages(state, find_task_text(state, plan)),
        text("team.coder_begins", name=step.name),
    )


def _continue_attempt(
    state: State, plan: Plan, step: Step, entries: tuple[AnsweredCall, ...], wants_runner: bool
) -> TeamCall:
    """Continue the current attempt; if its checks fail, start the next one or fail the step."""
    current = select_since_handoff(entries, "coder")
    coder, rest = current[0], current[1:]
    if wants_runner and coder.ok and not any(t.agent == "runner" for t in rest):
        return build_handoff(
            "runner", state.request.prompt or step.name, text("team.runner_begins", name=step.name)
        )
    runner = next((t for t in rest if t.agent == "runner"), None)
    if (check := next(build_untried_checks(state, plan, step.acceptance, rest), None)) is not None:
        return check
    problems = _list_problems(state, step, entries, coder, runner)
    if not problems:
        return build_step_update(step, "completed", text("team.step_done", name=step.name))
    return _start_repair(state, step, problems, sum(t.agent == "coder" for t in entries))


def _start_repair(state: State, step: Step, problems: list[str], attempts: int) -> TeamCall:
    """Start the next repair; fail the step if its repairs, or the attempts of the run, are used up."""
    max_repairs, budget = state.request.limits.max_repairs, state.request.limits.max_attempts
    if budget and count_attempts(list_answered_calls(state)) >= budget:
        return build_step_update(step, "failed", text("team.no_attempts", name=step.name, most=budget))
    if attempts > max_repairs:
        return build_step_update(step, "failed", text("team.no_repairs", name=step.name, most=max_repairs))
    problem_text = "\n\n".join(problems)
    request = f"{add_user_messages(state, state.request.prompt)}\n\nThis step is not done yet. Put right what fails:\n\n{problem_text}"
    return build_handoff(
        "coder", request, text("team.repair", number=attempts, most=max_repairs, name=step.name)
    )


def _list_problems(
    state: State,
    step: Step,
    entries: tuple[AnsweredCall, ...],
    coder: AnsweredCall,
    runner: AnsweredCall | None,
) -> list[str]:
    """List the remaining problems. Checks decide, unless they passed before the work began."""
    unfinished = [f"The coder did not finish: {coder.text}"] if not coder.ok else []
    if runner is not None and not runner.ok:
        unfinished.append(f"The runner did not finish: {runner.text}")
    if step.acceptance:
        failed = [failure.format() for failure in find_failed_checks(state, step.acceptance)]
        return [*unfinished, *failed] if failed or _has_passed_before(step, entries) else []
    unfinished += [_format_rejection(call) for call in _find_open_rejections(state, entries)]
    commands = (
        runner.handoff.deeds.commands
        if runner is not None and runner.handoff and runner.handoff.deeds
        else ()
    )
    return unfinished or (
        [build_check_failure(commands[-1]).format()] if commands and commands[-1].exit_code else []
    )


def _find_open_rejections(state: State, entries: tuple[AnsweredCall, ...]) -> list[FailedCall]:
    """Return the step's rejected calls without a later edit of the same file or a passed command."""
    subjects = {
        call.subject for entry in entries if entry.handoff is not None for call in entry.handoff.refused
    }
    rejected_calls = (call for call in state.attempts.failed if is_refused(call) and call.subject in subjects)
    commands = state.done.commands
    return [
        call
        for call in rejected_calls
        if call.tool in EDITING or not any(c.ended and not c.exit_code for c in commands[call.position :])
    ]


def _format_rejection(call: FailedCall) -> str:
    return f"{wire_name(call.tool)} of `{call.subject}` was refused, so the step is not done."


def _has_passed_before(step: Step, entries: tuple[AnsweredCall, ...]) -> bool:
    first = next((n for n, t in enumerate(entries) if t.agent == "coder"), len(entries))
    passed = {str(t.call.args.get("command")) for t in entries[:first] if t.call.tool == "shell/run" and t.ok}
    return passed.issuperset(step.acceptance)


# ---- the budget of attempts


def count_attempts(log: tuple[AnsweredCall, ...]) -> int:
    """Count attempts at the current step and earlier failed ones; unreadable replies count several times."""
    earlier = current = 0
    for entry in log:
        if entry.step_update is not None and entry.step_update[1] == "in_progress":
            current = 0
        elif entry.agent == "planner":
            earlier, current = earlier + current, 0
        elif entry.step_update is not None and entry.step_update[1] == "completed":
            current = 0
        else:
            current += _count_cost(entry)
    return earlier + current


def _count_cost(entry: AnsweredCall) -> int:
    if entry.agent not in ("coder", "runner"):
        return 0
    error = entry.handoff.error if entry.handoff is not None else None
    return MAX_SAME_ERRORS if error is not None and error.kind == "format" else int(entry.agent == "coder")
