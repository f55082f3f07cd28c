"""One step of a plan: its checks, coder, runner, its checks again; once more while they fail, within one budget."""

from __future__ import annotations

from daiku.domain.runs import ApprovalMode
from daiku.domain.work.handovers import FailedCall
from daiku.domain.work.plans import Plan, Step
from daiku.models.rules.replies.parse import SAME
from daiku.run.rules.calls.toolnames import wire_name
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import (
    TeamCall,
    failed_check,
    failed_checks,
    hand,
    is_met,
    move,
    preliminary_checks,
    untried_checks,
)
from daiku.team.rules.parallel import early_coder_result
from daiku.team.rules.person import asked, with_words
from daiku.team.rules.proof.attempts import EDITING, is_refused
from daiku.team.rules.record import (
    AnsweredCall,
    answered_calls,
    begins,
    number,
    since,
    since_begun,
    since_work,
)
from daiku.texts.text import text


def work(state: State, plan: Plan, step: Step, approvals: ApprovalMode, *, runner: bool = True) -> TeamCall:
    """Return the next call for the step in progress; `runner` False: a step with checks gets no runner."""
    log = answered_calls(state)
    here = since_begun(log, step)
    if len(here) == len(log) and not begins(log, step):  # begun by an earlier run, or by the person
        return move(step, "in_progress", text("team.step", number=number(plan, step), name=step.name))
    if here and here[-1].call.tool == "plan/update_step":  # it was refused
        return move(step, "failed", text("team.stays_open", name=step.name, why=here[-1].text))
    aside = early_coder_result(state, log, step)
    here = here if aside is None else (aside, *here)
    if not any(t.agent == "coder" for t in here):
        return _begin(state, plan, step, approvals)
    return _attempt(state, plan, step, here, runner or not step.acceptance)


def _begin(state: State, plan: Plan, step: Step, approvals: ApprovalMode) -> TeamCall:
    """The checks before any work; then the coder, where it is not met already."""
    if (
        look := next(
            preliminary_checks(state, plan, step, since_work(answered_calls(state)), approvals), None
        )
    ) is not None:
        return look
    if is_met(state, step):
        return move(step, "completed", text("team.met_already", name=step.name))
    return hand("coder", with_words(state, asked(state, plan)), text("team.coder_begins", name=step.name))


def _attempt(
    state: State, plan: Plan, step: Step, here: tuple[AnsweredCall, ...], wants_runner: bool
) -> TeamCall:
    """Go on with the present attempt; when its checks fail, begin the next or give the step up."""
    now = since(here, "coder")
    coder, rest = now[0], now[1:]
    if wants_runner and coder.ok and not any(t.agent == "runner" for t in rest):
        return hand("runner", state.request.prompt or step.name, text("team.runner_begins", name=step.name))
    runner = next((t for t in rest if t.agent == "runner"), None)
    if (check := next(untried_checks(state, plan, step.acceptance, rest), None)) is not None:
        return check
    problems = _problems(state, step, here, coder, runner)
    if not problems:
        return move(step, "completed", text("team.step_done", name=step.name))
    return _again(state, step, problems, sum(t.agent == "coder" for t in here))


def _again(state: State, step: Step, problems: list[str], attempts: int) -> TeamCall:
    """The next repair, or the end of the step: of its repairs, or of all the attempts that it has."""
    most, budget = state.request.limits.max_repairs, state.request.limits.max_attempts
    if budget and attempts_used(answered_calls(state)) >= budget:
        return move(step, "failed", text("team.no_attempts", name=step.name, most=budget))
    if attempts > most:
        return move(step, "failed", text("team.no_repairs", name=step.name, most=most))
    told = "\n\n".join(problems)
    request = f"{with_words(state, state.request.prompt)}\n\nThis step is not done yet. Put right what fails:\n\n{told}"
    return hand("coder", request, text("team.repair", number=attempts, most=most, name=step.name))


def _problems(
    state: State, step: Step, here: tuple[AnsweredCall, ...], coder: AnsweredCall, runner: AnsweredCall | None
) -> list[str]:
    """List what is not right yet. Checks decide, unless they passed before the work began."""
    badly = [f"The coder did not finish: {coder.text}"] if not coder.ok else []
    if runner is not None and not runner.ok:
        badly.append(f"The runner did not finish: {runner.text}")
    if step.acceptance:
        failed = [each.text() for each in failed_checks(state, step.acceptance)]
        return [*badly, *failed] if failed or _passed_before(step, here) else []
    badly += [_refused_text(call) for call in _open_refusals(state, here)]
    ran = runner.back.deeds.commands if runner is not None and runner.back and runner.back.deeds else ()
    return badly or ([failed_check(ran[-1]).text()] if ran and ran[-1].exit_code else [])


def _open_refusals(state: State, here: tuple[AnsweredCall, ...]) -> list[FailedCall]:
    """Return the refused calls for the step that nothing made up for: no edit of the same file, no command that passed."""
    own = {call.subject for taken in here if taken.back is not None for call in taken.back.refused}
    refused = (call for call in state.attempts.failed if is_refused(call) and call.subject in own)
    commands = state.done.commands
    return [
        call
        for call in refused
        if call.tool in EDITING or not any(c.ended and not c.exit_code for c in commands[call.position :])
    ]


def _refused_text(call: FailedCall) -> str:
    return f"{wire_name(call.tool)} of `{call.subject}` was refused, so the step is not done."


def _passed_before(step: Step, here: tuple[AnsweredCall, ...]) -> bool:
    first = next((n for n, t in enumerate(here) if t.agent == "coder"), len(here))
    passed = {str(t.call.args.get("command")) for t in here[:first] if t.call.tool == "shell/run" and t.ok}
    return passed.issuperset(step.acceptance)


# ---- one budget of attempts


def attempts_used(log: tuple[AnsweredCall, ...]) -> int:
    """Count attempts at the current step and earlier failed ones; unreadable replies count several times."""
    carried = here = 0
    for taken in log:
        if taken.step_update is not None and taken.step_update[1] == "in_progress":
            here = 0
        elif taken.agent == "planner":
            carried, here = carried + here, 0
        elif taken.step_update is not None and taken.step_update[1] == "completed":
            here = 0
        else:
            here += _cost(taken)
    return carried + here


def _cost(taken: AnsweredCall) -> int:
    if taken.agent not in ("coder", "runner"):
        return 0
    error = taken.back.error if taken.back is not None else None
    return SAME if error is not None and error.kind == "format" else int(taken.agent == "coder")
