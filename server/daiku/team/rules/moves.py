"""State machine of the team that executes a plan: computes its next move from the run's state."""

from __future__ import annotations

from typing import NamedTuple

from daiku.domain.errors import Failure
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolCall
from daiku.domain.work.handovers import (
    Brief,
    CommandOutcome,
    CommandsRun,
    EditsMade,
    Findings,
    PlanMade,
    ReportMade,
)
from daiku.domain.work.plans import Plan, Step
from daiku.run.rules.state.context import user_messages
from daiku.run.rules.state.machine import EndRun, MakeCall, Move
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import (
    CHECKING,
    OUTPUT_SHARE,
    TeamCall,
    build_handoff,
    build_preliminary_checks,
    build_question,
    build_step_update,
    build_untried_checks,
    find_failed_checks,
    is_met,
)
from daiku.team.rules.proof.placeholders import select_new_leftovers
from daiku.team.rules.record import (
    OFFERED,
    STOP,
    AnsweredCall,
    add_user_messages,
    describe_answers,
    find_choice,
    find_open_question,
    find_step_number,
    find_task_text,
    format_rejection,
    has_begun,
    is_rejected,
    list_answered_calls,
    select_since_begin,
    select_since_handoff,
    select_since_work,
)
from daiku.team.rules.report import build_closing_words, build_final_report
from daiku.team.rules.steps import (
    TOOL,
    build_requests,
    count_attempts,
    decide_step,
    find_parallel_steps,
    has_early_coder,
)
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, text

STAGE_FAILURES = (
    "format",
    "limit",
    "tool",
    "guardrail",
    "handoff_depth",
    "context_overflow",
    "content_filter",
)
"""Kinds of a stage's failures that another attempt may avoid."""


class Stop(NamedTuple):
    """The team's decision to end; `why` is the reason if the plan is not done."""

    why: Text = Text("")


def next_move(state: State, approvals: ApprovalMode, model_failure: Failure | None = None) -> Move:
    """Return the team's next call, closing text, or Failure. `model_failure`: why no model can be asked.

    With approvals `ask` the user is asked before each further step (R4.43).
    """
    match (
        _decide(state, approvals)
        if model_failure is None
        else _without_model(state, approvals, model_failure)
    ):
        case TeamCall(tool, args, words, asks):
            return MakeCall(ToolCall(tool=tool, args=args), words, asks)
        case Stop(why):
            return EndRun(build_closing_words(state, find_team_plan(state), why))
        case Failure() as failure:
            return failure


def find_team_plan(state: State) -> Plan | None:
    """Return the team's plan in its current state: the brief's, else its planner's; None if there is none."""
    briefed = state.request.brief.plan if state.request.brief is not None else None
    planned = [b.handover.plan for b in state.nested.returned if isinstance(b.handover, PlanMade)]
    original = briefed or (planned[0] if planned else None)
    return next((p for p in state.plans.all if original is not None and p.plan_id == original.plan_id), None)


def build_team_report(state: State) -> ReportMade:
    """Return the team's handover to another agent that called it."""
    return ReportMade(report=build_final_report(state, find_team_plan(state)))


def build_brief(state: State, agent: str, request: str) -> Brief:
    """Build a stage's brief: the plan, its step, and the results of earlier stages (R0.102)."""
    plan = find_team_plan(state)
    step = _find_current_step(plan) if plan is not None else None
    evidence, log = state.done, list_answered_calls(state)
    handovers = (t.handoff.handover for t in reversed(log) if t.handoff is not None)
    notes = next((handover.notes for handover in handovers if isinstance(handover, EditsMade)), "")
    findings = [b.handover for b in state.nested.returned if isinstance(b.handover, Findings)]
    needs_findings = agent in ("coder", "reporter")  # the others do not use them
    commands = _select_commands(state, None if agent == "reporter" else step, log)
    return Brief(
        request=request,
        plan=plan,
        step_id=step.step_id if step is not None else "",
        findings=findings[-1] if findings and needs_findings else None,
        edits=EditsMade(files=evidence.files, checkpoints=evidence.checkpoints, notes=notes)
        if evidence.files
        else None,
        commands=CommandsRun(commands=commands) if commands else None,
        proofs=evidence.proofs,
        said=(*reversed(describe_answers(state)), *user_messages(state)),
    )


def _select_commands(
    state: State, step: Step | None, log: tuple[AnsweredCall, ...]
) -> tuple[CommandOutcome, ...]:
    """Return the commands of the team and its stages since a coder began `step`; all without a step."""
    commands = state.done.commands
    if step is not None:
        entries = select_since_begin(log, step)
        first = next((n for n, t in enumerate(entries) if t.agent == "coder"), len(entries))
        entries = entries[first:]
        nested_ids = {
            c.call_id for t in entries if t.handoff and t.handoff.deeds for c in t.handoff.deeds.commands
        }
        call_ids = nested_ids | {t.call.id for t in entries}
        commands = tuple(c for c in commands if c.call_id in call_ids)
    return tuple(c.model_copy(update={"output": truncate_middle(c.output, OUTPUT_SHARE)}) for c in commands)


# ---- the next move


def _decide(state: State, approvals: ApprovalMode) -> TeamCall | Stop | Failure:
    log, plan = list_answered_calls(state), find_team_plan(state)
    if (failure := _find_general_failure(log)) is not None:
        return failure
    if why := _find_stop_reason(state, log, plan):
        return Stop(why)
    if plan is None:
        if any(t.agent == "planner" for t in log):
            return Failure(kind="format", message=text("team.no_plan", why=log[-1].text))
        return build_handoff("planner", state.request.prompt, text("team.planner_begins"))
    if state.request.mode != "act":
        return Stop(text("team.only_a_plan", mode=state.request.mode))
    if plan.status == "draft":
        return TeamCall("plan/approve", {"plan_id": plan.plan_id}, text("team.approve_plan"))
    if not any(t.agent == "researcher" for t in log):
        return build_handoff("researcher", find_task_text(state, plan), text("team.researcher_begins"))
    if (question := find_open_question(state, log)) is not None:
        return TeamCall("user/ask", {"question": question}, text("team.researcher_asks"))
    step = _find_current_step(plan)
    if step is not None:
        return decide_step(state, plan, step, approvals)
    if (single_step := _find_requested_step(state, plan)) is not None:
        is_done = single_step.status == "completed" or (
            single_step.status == "failed" and has_begun(log, single_step)
        )
        return Stop() if is_done else _build_begin(plan, single_step)
    if _can_replan(state, plan, log):
        return _build_replan(state, plan, log)
    if (parallel_steps := find_parallel_steps(plan, log, approvals)) is not None:
        return _start_parallel(state, plan, parallel_steps, approvals)
    if ready_steps := _find_ready_steps(plan):
        return _begin_step(plan, ready_steps[0], log, approvals)
    return _verify_plan(state, plan, log)


def _start_parallel(state: State, plan: Plan, steps: tuple[Step, ...], approvals: ApprovalMode) -> TeamCall:
    """Start coders for `steps` in parallel, after their preliminary checks; a step that is met needs no coder."""
    entries = select_since_work(list_answered_calls(state))
    for step in steps:
        if (check := next(build_preliminary_checks(state, plan, step, entries, approvals), None)) is not None:
            return check
    met = next((step for step in steps if is_met(state, step)), None)
    if met is not None:
        return _build_begin(plan, met)
    request = add_user_messages(state, find_task_text(state, plan))
    return TeamCall(TOOL, build_requests(steps, request), text("team.coders_at_once"))


def _find_stop_reason(state: State, log: tuple[AnsweredCall, ...], plan: Plan | None) -> Text:
    """Return why the user stopped the team; empty if they did not."""
    if not log:
        return Text("")
    last = log[-1]
    if last.call.tool == "plan/approve" and not last.ok:
        approval = state.questions.approvals.get(last.call.id)
        decision = state.questions.decisions.get(approval.approval_id) if approval is not None else None
        reason = (
            last.text
            if decision is None or decision.unattended
            else format_rejection(decision.feedback or "")
        )
        return text("team.not_approved", why=reason)
    if last.call.tool == "user/ask" and find_choice(state, last) == OFFERED.index(STOP):
        completed, total = plan.progress() if plan is not None else (0, 0)
        return text("team.stopped_here", done=completed, total=total)
    if is_rejected(state, last):
        return (
            text("team.no_approval")
            if state.unattended
            else text("team.rejected", what=_format_call(last.call))
        )
    return Text("")


def _find_general_failure(log: tuple[AnsweredCall, ...]) -> Failure | None:
    """Return the failure of a stage that could not ask its model: no other stage can, so the run ends."""
    error = log[-1].handoff.error if log and log[-1].handoff is not None else None
    return error if error is not None and error.kind not in STAGE_FAILURES else None


def _format_call(call: ToolCall) -> str:
    subject = call.args.get("command") or call.args.get("agent") or ""
    return f"`{subject}`" if subject else call.tool


def _begin_step(plan: Plan, step: Step, log: tuple[AnsweredCall, ...], approvals: ApprovalMode) -> TeamCall:
    last = log[-1]
    before = next((s for s in plan.steps if s.step_id == last.call.args.get("step_id")), None)
    if approvals == "ask" and last.call.tool == "plan/update_step" and before is not None:
        key = "team.next_after_done" if before.status == "completed" else "team.next_after_failed"
        question = text(key, name=before.name, number=find_step_number(plan, step), next=step.name)
        return build_question(question, *OFFERED)
    return _build_begin(plan, step)


def _without_model(
    state: State, approvals: ApprovalMode, model_failure: Failure
) -> TeamCall | Stop | Failure:
    """Return a move that needs no model (begin, check, or complete a coded step), else the Failure."""
    log, plan = list_answered_calls(state), find_team_plan(state)
    if plan is None:
        return model_failure
    if not isinstance(next_call := _decide(state, approvals), TeamCall):
        return next_call
    step = _find_current_step(plan)
    if step is not None:
        step_call = decide_step(state, plan, step, approvals, runner=False)
        if step_call.tool in CHECKING or step_call.args.get("status") == "completed":
            return step_call
    elif (
        coded_step := next((s for s in _find_ready_steps(plan) if has_early_coder(state, log, s)), None)
    ) is not None:
        return _build_begin(plan, coded_step)
    return model_failure


# ---- re-planning after a failed step


def _can_replan(state: State, plan: Plan, log: tuple[AnsweredCall, ...]) -> bool:
    """Return True if a step failed and neither re-plans nor attempts are used up."""
    failed = any(step.status == "failed" for step in plan.steps)
    max_attempts = state.request.limits.max_attempts
    return (
        failed
        and _count_replans(state, log) < state.request.limits.max_replans
        and (not max_attempts or count_attempts(log) < max_attempts)
    )


def _count_replans(state: State, log: tuple[AnsweredCall, ...]) -> int:
    first = 0 if state.request.brief is not None and state.request.brief.plan is not None else 1
    return sum(t.agent == "planner" for t in log) - first


def _build_replan(state: State, plan: Plan, log: tuple[AnsweredCall, ...]) -> TeamCall:
    failed = next(s for s in plan.steps if s.status == "failed")
    why = next((t.text for t in reversed(log) if t.agent == "coder"), "")
    problems = (
        "\n\n".join(failure.format() for failure in find_failed_checks(state, failed.acceptance)) or why
    )
    user_checks = [check for step in plan.steps if step.status != "completed" for check in step.own_checks]
    note = (
        f"\n\nThe person added these checks; they stay: {', '.join(f'`{c}`' for c in user_checks)}."
        if user_checks
        else ""
    )
    request = (
        f"{add_user_messages(state, find_task_text(state, plan))}\n\nStep “{failed.name}” failed. Plan what is left anew, by another "
        f"way; what is completed is kept. A check that is left out is told to the person.{note}\n\n{problems}"
    )
    return build_handoff("planner", request, text("team.planner_again", name=failed.name))


# ---- the end: final verification, then the report


def _verify_plan(state: State, plan: Plan, log: tuple[AnsweredCall, ...]) -> TeamCall | Stop:
    """Rerun outdated checks, send remaining problems to the coder, then hand off to the reporter."""
    updates = [i for i, t in enumerate(log) if t.call.tool == "plan/update_step"]
    entries = log[updates[-1] + 1 :] if updates else log
    if any(t.agent == "reporter" for t in entries):
        return Stop()
    checks = tuple(dict.fromkeys(c for s in plan.steps if s.status == "completed" for c in s.acceptance))
    rounds = sum(t.agent == "coder" for t in entries)
    current_round = select_since_handoff(entries, "coder") if rounds else entries
    if rounds and current_round[0].ok and not any(t.agent == "runner" for t in current_round):
        return build_handoff("runner", state.request.prompt, text("team.runner_again"))
    if (check := next(build_untried_checks(state, plan, checks, current_round), None)) is not None:
        return check
    problems = [
        *(failure.format() for failure in find_failed_checks(state, checks)),
        *_format_leftovers(state),
    ]
    may_continue = not rounds or (
        current_round[0].handoff is not None
        and current_round[0].handoff.deeds is not None
        and current_round[0].handoff.deeds.files
    )
    max_rounds = state.request.limits.max_verifications
    if problems and may_continue and rounds < max_rounds and state.done.files:
        problem_text = "\n\n".join(problems)
        request = f"{state.request.prompt}\n\nThe work is not finished yet. Put right what is left:\n\n{problem_text}"
        return build_handoff("coder", request, text("team.left_to_do", number=rounds + 1, most=max_rounds))
    return build_handoff("reporter", state.request.prompt or plan.goal, text("team.reporter_begins"))


def _format_leftovers(state: State) -> list[str]:
    return [
        f"{left.path} has an unfinished line: `{left.text}`"
        for left in select_new_leftovers(state.done.leftovers)
    ]


# ---- helpers


def _find_ready_steps(plan: Plan) -> tuple[Step, ...]:
    completed_ids = {s.step_id for s in plan.steps if s.status == "completed"}
    return tuple(s for s in plan.steps if s.status == "pending" and completed_ids.issuperset(s.depends_on))


def _build_begin(plan: Plan, step: Step) -> TeamCall:
    return build_step_update(
        step, "in_progress", text("team.step", number=find_step_number(plan, step), name=step.name)
    )


def _find_requested_step(state: State, plan: Plan) -> Step | None:
    """Return the step that was requested alone; None if there is none."""
    requested = state.request.brief.step_id if state.request.brief is not None else ""
    return next((s for s in plan.steps if s.step_id == requested), None)


def _find_current_step(plan: Plan) -> Step | None:
    return next((s for s in plan.steps if s.status == "in_progress"), None)
