"""Build the brief of a stage: its request, the plan, and relevant parts of the session's past."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from daiku.agents.agent import Agent
from daiku.core.plans.transitions import find_step
from daiku.core.ports import Workspace
from daiku.core.proof.evidence import Evidence, after_call, after_checkpoint, after_edit
from daiku.core.state.conversation import describe_words, person_words, recorded_words
from daiku.core.web.research import gather
from daiku.domain.chunks import Chunk
from daiku.domain.errors import Failure, UsageError
from daiku.domain.events import (
    CheckpointEvent,
    Edit,
    Notice,
    PlanEvent,
    RunStarted,
    ToolCallEvent,
    ToolResponse,
)
from daiku.domain.runs import ApprovalMode, Mode
from daiku.domain.work.handovers import Brief, EditsMade, Findings
from daiku.domain.work.plans import Plan
from daiku.domain.work.research import Research
from daiku.runs.nested.projectfiles import See, changed_files, places_of, project_files, shown_files
from daiku.runs.recalling import recall_lessons
from daiku.runs.request import RunRequest
from daiku.runs.run_log import RunLog
from daiku.runs.services import RunServices
from daiku.texts.text import text


def brief_from(past: Iterable[Chunk], request: str, plan_id: str = "", step_id: str = "") -> Brief:
    """The brief for a single stage in a session: its plan and step (the newest plan that has it), what was
    found out and changed there so far. Raises UsageError (not_found)."""
    past = tuple(past)
    plans: dict[str, Plan] = {}
    calls: dict[str, ToolCallEvent] = {}
    research, done = Research(), Evidence()
    for chunk in past:
        research = gather(research, chunk.event)
        match chunk.event:
            case PlanEvent(plan=plan):
                plans.pop(plan.plan_id, None)
                plans[plan.plan_id] = plan
            case Edit():
                done = after_edit(done, chunk.event)
            case CheckpointEvent():
                done = after_checkpoint(done, chunk.event)
            case ToolCallEvent():
                calls[chunk.event.id] = chunk.event
            case ToolResponse(id=key) if key in calls:
                done = after_call(done, calls.pop(key), chunk.event)
            case RunStarted(brief=Brief(findings=Findings() as found)):
                research = _together(research, found)
            case _:
                pass
    plan, step = _place(list(plans.values()), plan_id, step_id)
    return Brief(
        request=request,
        plan=plan,
        step_id=step,
        findings=Findings(**dict(research)) if research.results else None,
        edits=EditsMade(files=done.files, checkpoints=done.checkpoints) if done.files else None,
        proofs=done.proofs,
        said=recorded_words(past),
    )


BRIEFED = ("researcher", "coder", "runner", "reporter")
"""Stages that are told what their session knows, whatever door they are asked by."""


async def brief_request(
    services: RunServices, agent: Agent, request: RunRequest, session: str
) -> tuple[str, Brief | None]:
    """Return the text that the agent reads as its request, and its brief.
    Those of `request` itself if it brings its calls or the agent reads no brief."""
    if request.brief is None and agent.machine is not None:
        from daiku.runs.documents import AGENT as DOCUMENT  # when used
        from daiku.runs.documents import brief_of_context  # when used

        if agent.name == DOCUMENT:
            return request.told, await brief_of_context(services.workspace, request, trusted=services.trusted)
    if request.calls or not agent.reads_brief:
        return request.told, request.brief
    brief = request.brief
    if brief is None and request.session and agent.name in BRIEFED:
        brief = brief_from(services.journal.chunks(request.session), request.text)
    see = partial(services.seen.note, session)
    return await write_request(agent, brief or Brief(request=request.text), services.workspace, see)


def make_brief(log: RunLog, agent: Agent, request: str) -> Brief:
    """What a nested run of `agent` is given by the run around it."""
    from daiku.core.proof.gate import next_open  # when used

    state = log.record.state
    if log.agent.machine is not None:
        return log.agent.machine.brief(state, agent.name, request)
    plan = next_open(state.plans.all) if agent.machine is not None else None
    return Brief(request=request, plan=plan, said=person_words(state))


async def with_lessons(
    services: RunServices, brief: Brief, approvals: ApprovalMode, mode: Mode, window: int
) -> tuple[Brief, tuple[Notice, ...]]:
    """The brief with what the playbooks say of its own request, and what the person is told where they cannot be asked."""
    lessons, problems = await recall_lessons(services, brief.request, approvals, mode, window)
    return brief.model_copy(update={"lessons": lessons}) if lessons else brief, problems


async def write_request(agent: Agent, brief: Brief, workspace: Workspace, see: See) -> tuple[str, Brief]:
    """Return the prompt for `agent` built from a brief, and the brief, maybe with changed files added."""
    stage = agent.stage
    if stage is None or (make := stage.request) is None:
        return brief.request, brief
    if stage.shows == "named":
        named = await shown_files(places_of(brief), workspace, see)
        files = await project_files(workspace)
        shown = brief.model_copy(update={"code": named, "files": files})
        return _with_words(make(shown), brief), brief
    if stage.shows == "changed" and not brief.code and brief.edits is not None:
        code = await shown_files(changed_files(brief.edits), workspace, see)
        brief = brief.model_copy(update={"code": code})
    return _with_words(make(brief), brief), brief


def _with_words(request: str, brief: Brief) -> str:
    """The request with the person's own words of the session that it does not hold already."""
    words = describe_words(brief.said, request)
    return f"{request}\n\n{words}" if words else request


def _place(plans: list[Plan], plan_id: str, step_id: str) -> tuple[Plan | None, str]:
    """The plan and the step's own id. Raises UsageError (not_found)."""
    if not (plan_id or step_id):
        return (plans[-1] if plans else None), ""
    named = [p for p in reversed(plans) if not plan_id or p.plan_id == plan_id]
    for plan in named:
        if not step_id:
            return plan, ""
        if (step := find_step(plan, step_id)) is not None:
            return plan, step.step_id
    no_step = named or not plan_id
    missing = (
        text("runs.step_not_here", step=repr(step_id))
        if no_step
        else text("runs.plan_not_here", plan=repr(plan_id))
    )
    raise UsageError(Failure(kind="not_found", message=missing))


def _together(research: Research, found: Findings) -> Research:
    known = {finding.url for finding in research.results}
    news = tuple(finding for finding in found.results if finding.url not in known)
    return research.model_copy(update={"results": (*research.results, *news)})
