"""Decide the next call for one plan step: checks, coder, runner, checks again, and repairs within a budget."""

from __future__ import annotations

from daiku.domain.runs import ApprovalMode
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
from daiku.team.rules.parallel import find_early_result
from daiku.team.rules.person import add_user_messages, find_task_text
from daiku.team.rules.proof.attempts import EDITING, is_refused
from daiku.team.rules.record import (
    AnsweredCall,
    find_step_number,
    has_begun,
    list_answered_calls,
    select_since_begin,
    select_since_handoff,
    select_since_work,
)
from daiku.texts.text import text


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
