"""The state machine of the team that works a plan: its next move, from the state alone."""

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
from daiku.run.rules.state.conversation import person_words
from daiku.run.rules.state.machine import EndRun, MakeCall, Move
from daiku.run.rules.state.state import State
from daiku.team.rules.checks import (
    CHECKING,
    OUTPUT_SHARE,
    TeamCall,
    ask,
    failed_checks,
    hand,
    is_met,
    move,
    preliminary_checks,
    untried_checks,
)
from daiku.team.rules.parallel import TOOL, at_once, has_early_coder, requests
from daiku.team.rules.person import (
    OFFERED,
    STOP,
    asked,
    chosen,
    describe_answers,
    open_question,
    rejection,
    with_words,
)
from daiku.team.rules.proof.placeholders import new_leftovers
from daiku.team.rules.record import (
    AnsweredCall,
    answered_calls,
    begins,
    number,
    rejected,
    since,
    since_begun,
    since_work,
)
from daiku.team.rules.report import closing_words, final_report
from daiku.team.rules.steps import attempts_used, work
from daiku.texts.rules.truncate import truncate_middle
from daiku.texts.text import Text, text

OF_THE_STAGE = ("format", "limit", "tool", "guardrail", "handoff_depth", "context_overflow", "content_filter")
"""Failures of one stage that another attempt may not have."""


class Stop(NamedTuple):
    """The team's decision to end; `why` is the reason if that is before the plan is done."""

    why: Text = Text("")


def next_move(state: State, approvals: ApprovalMode, refused: Failure | None = None) -> Move:
    """Return the team's next call, closing words, or Failure. `refused`: why no model can be asked.

    With approvals `ask` the person is asked before each further step (R4.43)."""
    match _next(state, approvals) if refused is None else _without_model(state, approvals, refused):
        case TeamCall(tool, args, said, asks):
            return MakeCall(ToolCall(tool=tool, args=args), said, asks)
        case Stop(why):
            return EndRun(closing_words(state, plan_of(state), why))
        case Failure() as failure:
            return failure


def plan_of(state: State) -> Plan | None:
    """The plan that the team works: the one it was given, else what its planner handed over; as it is now."""
    given = state.request.brief.plan if state.request.brief is not None else None
    made = [b.handover.plan for b in state.nested.returned if isinstance(b.handover, PlanMade)]
    found = given or (made[0] if made else None)
    return next((p for p in state.plans.all if found is not None and p.plan_id == found.plan_id), None)


def team_report(state: State) -> ReportMade:
    """What a team hands over that was asked by another agent."""
    return ReportMade(report=final_report(state, plan_of(state)))


def brief_of(state: State, agent: str, request: str) -> Brief:
    """What a stage is given: the plan, its step, and what the stages before it handed over (R0.102)."""
    plan = plan_of(state)
    step = _in_progress(plan) if plan is not None else None
    done, log = state.done, answered_calls(state)
    made = (t.back.handover for t in reversed(log) if t.back is not None)
    notes = next((each.notes for each in made if isinstance(each, EditsMade)), "")
    found = [b.handover for b in state.nested.returned if isinstance(b.handover, Findings)]
    reads = agent in ("coder", "reporter")  # the others have no use for pages of text
    wanted = _commands(state, None if agent == "reporter" else step, log)
    return Brief(
        request=request,
        plan=plan,
        step_id=step.step_id if step is not None else "",
        findings=found[-1] if found and reads else None,
        edits=EditsMade(files=done.files, checkpoints=done.checkpoints, notes=notes) if done.files else None,
        commands=CommandsRun(commands=wanted) if wanted else None,
        proofs=done.proofs,
        said=(*reversed(describe_answers(state)), *person_words(state)),
    )


def _commands(state: State, step: Step | None, log: tuple[AnsweredCall, ...]) -> tuple[CommandOutcome, ...]:
    """What was run since a coder began on `step`, by the team and by its stages; everything without a step."""
    commands = state.done.commands
    if step is not None:
        here = since_begun(log, step)
        first = next((n for n, t in enumerate(here) if t.agent == "coder"), len(here))
        here = here[first:]
        inner = {c.call_id for t in here if t.back and t.back.deeds for c in t.back.deeds.commands}
        mine = inner | {t.call.id for t in here}
        commands = tuple(c for c in commands if c.call_id in mine)
    return tuple(c.model_copy(update={"output": truncate_middle(c.output, OUTPUT_SHARE)}) for c in commands)


# ---- what comes next


def _next(state: State, approvals: ApprovalMode) -> TeamCall | Stop | Failure:
    log, plan = answered_calls(state), plan_of(state)
    if (failure := _failure_for_all(log)) is not None:
        return failure
    if why := _why_stopped(state, log, plan):
        return Stop(why)
    if plan is None:
        if any(t.agent == "planner" for t in log):
            return Failure(kind="format", message=text("team.no_plan", why=log[-1].text))
        return hand("planner", state.request.prompt, text("team.planner_begins"))
    if state.request.mode != "act":
        return Stop(text("team.only_a_plan", mode=state.request.mode))
    if plan.status == "draft":
        return TeamCall("plan/approve", {"plan_id": plan.plan_id}, text("team.approve_plan"))
    if not any(t.agent == "researcher" for t in log):
        return hand("researcher", asked(state, plan), text("team.researcher_begins"))
    if (question := open_question(state, log)) is not None:
        return TeamCall("user/ask", {"question": question}, text("team.researcher_asks"))
    step = _in_progress(plan)
    if step is not None:
        return work(state, plan, step, approvals)
    if (only := _only(state, plan)) is not None:
        settled = only.status == "completed" or (only.status == "failed" and begins(log, only))
        return Stop() if settled else _begun(plan, only)
    if _may_replan(state, plan, log):
        return _replan(state, plan, log)
    if (apart := at_once(plan, log, approvals)) is not None:
        return _apart(state, plan, apart, approvals)
    if ready := _ready(plan):
        return _begin(plan, ready[0], log, approvals)
    return _verify(state, plan, log)


def _apart(state: State, plan: Plan, steps: tuple[Step, ...], approvals: ApprovalMode) -> TeamCall:
    """Coders for `steps` at once, once their checks were looked at; one that is met needs none."""
    here = since_work(answered_calls(state))
    for step in steps:
        if (look := next(preliminary_checks(state, plan, step, here, approvals), None)) is not None:
            return look
    met = next((step for step in steps if is_met(state, step)), None)
    if met is not None:
        return _begun(plan, met)
    request = with_words(state, asked(state, plan))
    return TeamCall(TOOL, requests(steps, request), text("team.coders_at_once"))


def _why_stopped(state: State, log: tuple[AnsweredCall, ...], plan: Plan | None) -> Text:
    """What the person said against going on, in words; empty where they said nothing."""
    if not log:
        return Text("")
    last = log[-1]
    if last.call.tool == "plan/approve" and not last.ok:
        shown = state.questions.approvals.get(last.call.id)
        given = state.questions.decisions.get(shown.approval_id) if shown is not None else None
        said = last.text if given is None or given.unattended else rejection(given.feedback or "")
        return text("team.not_approved", why=said)
    if last.call.tool == "user/ask" and chosen(state, last) == OFFERED.index(STOP):
        done, total = plan.progress() if plan is not None else (0, 0)
        return text("team.stopped_here", done=done, total=total)
    if rejected(state, last):
        return text("team.no_approval") if state.unattended else text("team.rejected", what=_named(last.call))
    return Text("")


def _failure_for_all(log: tuple[AnsweredCall, ...]) -> Failure | None:
    """Return the failure of a stage that could not ask its model: no other stage can, so the run ends."""
    error = log[-1].back.error if log and log[-1].back is not None else None
    return error if error is not None and error.kind not in OF_THE_STAGE else None


def _named(call: ToolCall) -> str:
    what = call.args.get("command") or call.args.get("agent") or ""
    return f"`{what}`" if what else call.tool


def _begin(plan: Plan, step: Step, log: tuple[AnsweredCall, ...], approvals: ApprovalMode) -> TeamCall:
    last = log[-1]
    before = next((s for s in plan.steps if s.step_id == last.call.args.get("step_id")), None)
    if approvals == "ask" and last.call.tool == "plan/update_step" and before is not None:
        key = "team.next_after_done" if before.status == "completed" else "team.next_after_failed"
        question = text(key, name=before.name, number=number(plan, step), next=step.name)
        return ask(question, *OFFERED)
    return _begun(plan, step)


def _without_model(state: State, approvals: ApprovalMode, refused: Failure) -> TeamCall | Stop | Failure:
    """Return the move that needs no model: begin, check, or complete a coded step; else the Failure."""
    log, plan = answered_calls(state), plan_of(state)
    if plan is None:
        return refused
    if not isinstance(move := _next(state, approvals), TeamCall):
        return move
    step = _in_progress(plan)
    if step is not None:
        do = work(state, plan, step, approvals, runner=False)
        if do.tool in CHECKING or do.args.get("status") == "completed":
            return do
    elif (coded := next((s for s in _ready(plan) if has_early_coder(state, log, s)), None)) is not None:
        return _begun(plan, coded)
    return refused


# ---- a step has failed: the rest of the plan is made anew


def _may_replan(state: State, plan: Plan, log: tuple[AnsweredCall, ...]) -> bool:
    """Whether the rest is planned anew: a step failed, and neither the plans nor its attempts are used up."""
    failed = any(step.status == "failed" for step in plan.steps)
    most = state.request.limits.max_attempts
    return (
        failed
        and _replans(state, log) < state.request.limits.max_replans
        and (not most or attempts_used(log) < most)
    )


def _replans(state: State, log: tuple[AnsweredCall, ...]) -> int:
    first = 0 if state.request.brief is not None and state.request.brief.plan is not None else 1
    return sum(t.agent == "planner" for t in log) - first


def _replan(state: State, plan: Plan, log: tuple[AnsweredCall, ...]) -> TeamCall:
    failed = next(s for s in plan.steps if s.status == "failed")
    why = next((t.text for t in reversed(log) if t.agent == "coder"), "")
    problems = "\n\n".join(each.text() for each in failed_checks(state, failed.acceptance)) or why
    own = [check for step in plan.steps if step.status != "completed" for check in step.own_checks]
    kept = f"\n\nThe person added these checks; they stay: {', '.join(f'`{c}`' for c in own)}." if own else ""
    request = (
        f"{with_words(state, asked(state, plan))}\n\nStep “{failed.name}” failed. Plan what is left anew, by another "
        f"way; what is completed is kept. A check that is left out is told to the person.{kept}\n\n{problems}"
    )
    return hand("planner", request, text("team.planner_again", name=failed.name))


# ---- the end: everything once more, then the report


def _verify(state: State, plan: Plan, log: tuple[AnsweredCall, ...]) -> TeamCall | Stop:
    """Checks that later steps made doubtful once more, unfinished places put right, then the report."""
    ends = [i for i, t in enumerate(log) if t.call.tool == "plan/update_step"]
    here = log[ends[-1] + 1 :] if ends else log
    if any(t.agent == "reporter" for t in here):
        return Stop()
    checks = tuple(dict.fromkeys(c for s in plan.steps if s.status == "completed" for c in s.acceptance))
    rounds = sum(t.agent == "coder" for t in here)
    now = since(here, "coder") if rounds else here
    if rounds and now[0].ok and not any(t.agent == "runner" for t in now):
        return hand("runner", state.request.prompt, text("team.runner_again"))
    if (check := next(untried_checks(state, plan, checks, now), None)) is not None:
        return check
    problems = [*(each.text() for each in failed_checks(state, checks)), *_placeholders(state)]
    changed = not rounds or (
        now[0].back is not None and now[0].back.deeds is not None and now[0].back.deeds.files
    )
    most = state.request.limits.max_verifications
    if problems and changed and rounds < most and state.done.files:
        told = "\n\n".join(problems)
        request = f"{state.request.prompt}\n\nThe work is not finished yet. Put right what is left:\n\n{told}"
        return hand("coder", request, text("team.left_to_do", number=rounds + 1, most=most))
    return hand("reporter", state.request.prompt or plan.goal, text("team.reporter_begins"))


def _placeholders(state: State) -> list[str]:
    return [
        f"{left.path} has an unfinished line: `{left.text}`" for left in new_leftovers(state.done.leftovers)
    ]


# ---- small parts


def _ready(plan: Plan) -> tuple[Step, ...]:
    done = {s.step_id for s in plan.steps if s.status == "completed"}
    return tuple(s for s in plan.steps if s.status == "pending" and done.issuperset(s.depends_on))


def _begun(plan: Plan, step: Step) -> TeamCall:
    return move(step, "in_progress", text("team.step", number=number(plan, step), name=step.name))


def _only(state: State, plan: Plan) -> Step | None:
    """The step that was asked for alone."""
    wanted = state.request.brief.step_id if state.request.brief is not None else ""
    return next((s for s in plan.steps if s.step_id == wanted), None)


def _in_progress(plan: Plan) -> Step | None:
    return next((s for s in plan.steps if s.status == "in_progress"), None)
