"""The team that works a plan: what it does next, worked out from the state alone."""

from __future__ import annotations

from typing import NamedTuple

from daiku.core.aside import TOOL, at_once, coded_aside
from daiku.core.cut import cut_middle
from daiku.core.placeholders import left_behind
from daiku.core.state import State
from daiku.core.teamchecks import OUTPUT_SHARE, Do, failed_checks, told_outcome, unrun
from daiku.core.teamlog import Taken, log_of, rejected
from daiku.core.teamreport import closing_words, final_report
from daiku.domain.errors import DaikuError, Failure
from daiku.domain.handovers import (
    Brief,
    CommandOutcome,
    CommandsRun,
    EditsMade,
    Findings,
    PlanMade,
    ReportMade,
)
from daiku.domain.messages import AssistantMessage, Reply, Usage
from daiku.domain.plans import Plan, Step
from daiku.domain.runs import ApprovalMode
from daiku.domain.tools import ToolCall

GO_ON, STOP = "Go on", "Stop here"
OF_THE_STAGE = ("format", "limit", "tool", "guardrail", "handoff_depth", "context_overflow", "content_filter")
"""Failures of one stage that another attempt may not have."""


class End(NamedTuple):
    """The team's last words; `why` it stopped before the plan was done."""

    why: str = ""


def next_reply(state: State, approvals: ApprovalMode) -> Reply:
    """The team's next call, or its closing words. With approvals `ask` the person is asked before each
    further step (R4.43). Raises DaikuError where the work cannot go on at all."""
    move = _next(state, approvals)
    if isinstance(move, Do):
        call = ToolCall(tool=move.tool, args=move.args)
        return Reply(AssistantMessage(text=move.text, calls=(call,)), Usage(), "tool_calls")
    return Reply(AssistantMessage(text=closing_words(state, plan_of(state), move.why)), Usage(), "stop")


def plan_of(state: State) -> Plan | None:
    """The plan that the team works: the one it was given, else what its planner handed over; as it is now."""
    given = state.brief.plan if state.brief is not None else None
    made = [b.handover.plan for b in state.returned if isinstance(b.handover, PlanMade)]
    found = given or (made[0] if made else None)
    return next((p for p in state.plans if found is not None and p.plan_id == found.plan_id), None)


def team_report(state: State) -> ReportMade:
    """What a team hands over that was asked by another agent."""
    return ReportMade(report=final_report(state, plan_of(state)))


def brief_of(state: State, agent: str, request: str) -> Brief:
    """What a stage is given: the plan, its step, and what the stages before it handed over (R0.102)."""
    plan = plan_of(state)
    step = _in_progress(plan) if plan is not None else None
    done, log = state.done, log_of(state)
    made = (t.back.handover for t in reversed(log) if t.back is not None)
    notes = next((each.notes for each in made if isinstance(each, EditsMade)), "")
    found = [b.handover for b in state.returned if isinstance(b.handover, Findings)]
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
    )


def _commands(state: State, step: Step | None, log: tuple[Taken, ...]) -> tuple[CommandOutcome, ...]:
    """What was run since `step` was begun, by the team and by its stages; everything without a step."""
    commands = state.done.commands
    if step is not None:
        here = _since_begun(log, step)
        inner = {c.call_id for t in here if t.back and t.back.deeds for c in t.back.deeds.commands}
        mine = inner | {t.call.id for t in here}
        commands = tuple(c for c in commands if c.call_id in mine)
    return tuple(c.model_copy(update={"output": cut_middle(c.output, OUTPUT_SHARE)}) for c in commands)


# ---- what comes next


def _next(state: State, approvals: ApprovalMode) -> Do | End:
    log, plan = log_of(state), plan_of(state)
    _give_up(log)
    if why := _why_stopped(state, log, plan):
        return End(why)
    if plan is None:
        if any(t.agent == "planner" for t in log):
            raise DaikuError(Failure(kind="format", message=f"No plan could be made: {log[-1].text}"))
        return _hand("planner", state.prompt, "The planner makes a plan.")
    if state.mode != "act":
        return End(f"In {state.mode} mode a plan is made and nothing is carried out.")
    if plan.status == "draft":
        return Do("plan/approve", {"plan_id": plan.plan_id}, "Shall this plan be worked?")
    if not any(t.agent == "researcher" for t in log):
        return _hand("researcher", _asked(state, plan), "The researcher looks up what is not known.")
    step = _in_progress(plan)
    if step is not None:
        return _work(state, plan, step, log)
    if (only := _only(state, plan)) is not None:
        settled = only.status == "completed" or (only.status == "failed" and _begins(log, only))
        return End() if settled else _move(only, "in_progress", f"Step {_number(plan, only)}: {only.name}")
    if any(s.status == "failed" for s in plan.steps) and _replans(state, log) < state.limits.max_replans:
        return _replan(state, plan, log)
    if (apart := at_once(plan, log, approvals, _with_words(state, _asked(state, plan)))) is not None:
        return Do(TOOL, apart, "Steps that do not wait for one another: their coders work at once.")
    ready = _ready(plan)
    if ready is not None:
        return _begin(plan, ready, log, approvals)
    return _verify(state, plan, log)


def _why_stopped(state: State, log: tuple[Taken, ...], plan: Plan | None) -> str:
    """What the person said against going on, in words; empty where they said nothing."""
    if not log:
        return ""
    last = log[-1]
    if last.call.tool == "plan/approve" and not last.ok:
        return f"The plan was not approved. {last.text}"
    if last.call.tool == "user/ask" and last.text.strip() == _choices(state, last)[-1]:
        done, total = plan.progress() if plan is not None else (0, 0)
        return f"You stopped here: {done} of {total} steps are done."
    if rejected(state, last):
        return f"You rejected {_named(last.call)}."
    return ""


def _give_up(log: tuple[Taken, ...]) -> None:
    """Where a stage could not ask its model at all, no other stage can: the run ends with its failure,
    and the plan can be worked again later. Raises DaikuError."""
    error = log[-1].back.error if log and log[-1].back is not None else None
    if error is not None and error.kind not in OF_THE_STAGE:
        raise DaikuError(error)


def _named(call: ToolCall) -> str:
    what = call.args.get("command") or call.args.get("agent") or ""
    return f"`{what}`" if what else call.tool


def _begin(plan: Plan, step: Step, log: tuple[Taken, ...], approvals: ApprovalMode) -> Do:
    last = log[-1]
    before = next((s for s in plan.steps if s.step_id == last.call.args.get("step_id")), None)
    if approvals == "ask" and last.call.tool == "plan/update_step" and before is not None:
        how = "is done" if before.status == "completed" else "has failed"
        question = f"Step “{before.name}” {how}. Go on with step {_number(plan, step)}, “{step.name}”?"
        return Do("user/ask", {"question": question, "choices": [GO_ON, STOP]})
    return _move(step, "in_progress", f"Step {_number(plan, step)}: {step.name}")


# ---- one step: coder, runner, checks; again while they fail


def _work(state: State, plan: Plan, step: Step, log: tuple[Taken, ...]) -> Do:
    here = _since_begun(log, step)
    if len(here) == len(log) and not _begins(log, step):  # begun by an earlier run, or by the person
        return _move(step, "in_progress", f"Step {_number(plan, step)}: {step.name}")
    if here and here[-1].call.tool == "plan/update_step":  # it was refused
        return _move(step, "failed", f"Step “{step.name}” stays open: {here[-1].text}")
    aside = coded_aside(state, log, step)
    here = here if aside is None else (aside, *here)
    attempts = sum(t.agent == "coder" for t in here)
    if not attempts:
        return _hand("coder", _with_words(state, _asked(state, plan)), f"The coder works on “{step.name}”.")
    return _attempt(state, step, here, attempts)


def _attempt(state: State, step: Step, here: tuple[Taken, ...], attempts: int) -> Do:
    """Go on with the present attempt; when its checks fail, begin the next or give the step up."""
    now = _since(here, "coder")
    coder, rest = now[0], now[1:]
    if coder.ok and not any(t.agent == "runner" for t in rest):
        return _hand("runner", state.prompt or step.name, f"The runner works on “{step.name}”.")
    runner = next((t for t in rest if t.agent == "runner"), None)
    usable = coder.ok and runner is not None and runner.ok
    if usable and (check := next(unrun(state, step.acceptance, rest), None)) is not None:
        return check
    problems = _problems(state, step, coder, runner)
    if not problems:
        return _move(step, "completed", f"“{step.name}” is done.")
    told = "\n\n".join(problems)
    most = state.limits.max_repairs
    if attempts <= most:
        request = f"{_with_words(state, state.prompt)}\n\nThis step is not done yet. Put right what fails:\n\n{told}"
        return _hand("coder", request, f"Repair {attempts} of {most} of “{step.name}”.")
    return _move(step, "failed", f"“{step.name}” failed after {most} repairs.")


def _problems(state: State, step: Step, coder: Taken, runner: Taken | None) -> list[str]:
    if not coder.ok:
        return [f"The coder did not finish: {coder.text}"]
    if runner is not None and not runner.ok:
        return [f"The runner did not finish: {runner.text}"]
    if step.acceptance:
        return failed_checks(state, step.acceptance)
    ran = runner.back.deeds.commands if runner is not None and runner.back and runner.back.deeds else ()
    return [told_outcome(ran[-1])] if ran and ran[-1].exit_code else []


# ---- a step has failed: the rest of the plan is made anew


def _replans(state: State, log: tuple[Taken, ...]) -> int:
    first = 0 if state.brief is not None and state.brief.plan is not None else 1
    return sum(t.agent == "planner" for t in log) - first


def _replan(state: State, plan: Plan, log: tuple[Taken, ...]) -> Do:
    failed = next(s for s in plan.steps if s.status == "failed")
    why = next((t.text for t in reversed(log) if t.agent == "coder"), "")
    problems = "\n\n".join(failed_checks(state, failed.acceptance)) or why
    request = (
        f"{_with_words(state, _asked(state, plan))}\n\nStep “{failed.name}” failed. Plan what is left anew, "
        f"by another way; what is completed is kept.\n\n{problems}"
    )
    return _hand("planner", request, f"“{failed.name}” failed: the planner plans the rest anew.")


# ---- the end: everything once more, then the report


def _verify(state: State, plan: Plan, log: tuple[Taken, ...]) -> Do | End:
    """Checks that later steps made doubtful once more, unfinished places put right, then the report."""
    ends = [i for i, t in enumerate(log) if t.call.tool == "plan/update_step"]
    here = log[ends[-1] + 1 :] if ends else log
    if any(t.agent == "reporter" for t in here):
        return End()
    checks = tuple(dict.fromkeys(c for s in plan.steps if s.status == "completed" for c in s.acceptance))
    rounds = sum(t.agent == "coder" for t in here)
    now = _since(here, "coder") if rounds else here
    if rounds and now[0].ok and not any(t.agent == "runner" for t in now):
        return _hand("runner", state.prompt, "The runner looks at it again.")
    if (check := next(unrun(state, checks, now), None)) is not None:
        return check
    problems = [*failed_checks(state, checks), *_placeholders(state)]
    changed = not rounds or (
        now[0].back is not None and now[0].back.deeds is not None and now[0].back.deeds.files
    )
    most = state.limits.max_verifications
    if problems and changed and rounds < most and state.done.files:
        told = "\n\n".join(problems)
        request = f"{state.prompt}\n\nThe work is not finished yet. Put right what is left:\n\n{told}"
        return _hand("coder", request, f"Left to do, round {rounds + 1} of {most}.")
    return _hand("reporter", state.prompt or plan.goal, "The reporter writes the report.")


def _placeholders(state: State) -> list[str]:
    return [
        f"{left.path} has an unfinished line: `{left.text}`" for left in left_behind(state.done.leftovers)
    ]


# ---- small parts


def _hand(agent: str, request: str, text: str) -> Do:
    return Do("agent/handoff", {"agent": agent, "request": request}, text)


def _move(step: Step, status: str, text: str) -> Do:
    return Do("plan/update_step", {"step_id": step.step_id, "status": status}, text)


def _asked(state: State, plan: Plan) -> str:
    return state.prompt or plan.goal


def _with_words(state: State, request: str) -> str:
    """The request with what the person said while the team worked."""
    words = "\n".join(f"The person says: {text}" for text in _words(state))
    return f"{request}\n\n{words}" if words else request


def _words(state: State) -> list[str]:
    asked = (t for t in log_of(state) if t.call.tool == "user/ask")
    answers = [t.text for t in asked if t.text.strip() not in _choices(state, t)]
    return [*answers, *state.said]


def _choices(state: State, taken: Taken) -> tuple[str, ...]:
    """The choices that the person had, in their language."""
    asked = state.inputs.get(taken.call.id)
    return asked.choices if asked is not None else (GO_ON, STOP)


def _only(state: State, plan: Plan) -> Step | None:
    """The step that was asked for alone."""
    wanted = state.brief.step_id if state.brief is not None else ""
    return next((s for s in plan.steps if s.step_id == wanted), None)


def _in_progress(plan: Plan) -> Step | None:
    return next((s for s in plan.steps if s.status == "in_progress"), None)


def _ready(plan: Plan) -> Step | None:
    done = {s.step_id for s in plan.steps if s.status == "completed"}
    return next((s for s in plan.steps if s.status == "pending" and done.issuperset(s.depends_on)), None)


def _number(plan: Plan, step: Step) -> int:
    return plan.steps.index(step) + 1


def _begins(log: tuple[Taken, ...], step: Step) -> bool:
    return any(t.moved == (step.step_id, "in_progress") for t in log)


def _since_begun(log: tuple[Taken, ...], step: Step) -> tuple[Taken, ...]:
    """What was done since the step was begun; all where this run did not begin it."""
    begun = [i for i, t in enumerate(log) if t.moved == (step.step_id, "in_progress")]
    return log[begun[-1] + 1 :] if begun else log


def _since(log: tuple[Taken, ...], agent: str) -> tuple[Taken, ...]:
    """From the last handoff to `agent` on."""
    return log[max(i for i, t in enumerate(log) if t.agent == agent) :]
