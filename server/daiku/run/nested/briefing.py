"""Build the brief of a stage: its request, the plan, relevant parts of the session's past, and project files."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure, UsageError
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
from daiku.run.recalling import recall_lessons
from daiku.run.request import RunRequest
from daiku.run.rules.outside import Workspace
from daiku.run.rules.state.conversation import describe_words, person_words, recorded_words
from daiku.run.run_log import RunLog
from daiku.run.services import RunServices
from daiku.team.agent import Agent
from daiku.team.rules.plans.transitions import find_step
from daiku.team.rules.proof.evidence import Evidence, after_call, after_checkpoint, after_edit
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import text
from daiku.tools.rules.web.research import gather
from daiku.workspace.walk import files


def brief_from(past: Iterable[Chunk], request: str, plan_id: str = "", step_id: str = "") -> Brief:
    """Return the brief for one stage: plan, step, findings, and changes. Raises UsageError (not_found)."""
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
    """Return the text that the agent reads as its request, and its brief."""
    if request.brief is None and agent.machine is not None:
        from daiku.run.documents import AGENT as DOCUMENT  # when used
        from daiku.run.documents import brief_of_context  # when used

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
    from daiku.team.rules.proof.gate import next_open  # when used

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
        shown = brief.model_copy(update={"code": named, "files": await project_files(workspace)})
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


# ---- project files in a stage's prompt

CODE_LIMIT = 40_000
"""Characters of files that a stage is shown."""
FILE_LIMIT = 16_000
"""A longer file is named, and read by the stage itself where it needs it."""
MOST_NAMED = 12
"""Files of the work's own words that are shown."""
MOST_LISTED = 120
MAP_TOKENS = 1000
See = Callable[[Path, str], None]
"""Hears that a model was shown the whole text of a file."""
_PATH = lazy(r"[\w.@+-]+(?:/[\w.@+-]+)*\.\w+|[\w.@+-]+(?:/[\w.@+-]+)+|Makefile|Dockerfile")


@dataclass(frozen=True, slots=True)
class FileToShow:
    """A file to be shown. `guessed`: a word that looks like a path, which may be none."""

    path: str
    deleted: bool = False
    guessed: bool = False


def changed_files(edits: EditsMade | None) -> tuple[FileToShow, ...]:
    """Return the changed files as places to show."""
    stats = edits.files if edits is not None else ()
    return tuple(FileToShow(stat.path, deleted=stat.kind == "delete") for stat in stats)


def places_of(brief: Brief) -> tuple[FileToShow, ...]:
    """Return the files of a stage's work: changed ones, then those that its request, step or plan seem to name."""
    plan = brief.plan
    step = find_step(plan, brief.step_id) if plan is not None and brief.step_id else None
    steps = (step,) if step is not None else plan.steps if plan is not None else ()
    said = [brief.request]
    for each in steps:
        said += [each.name, each.description, *each.acceptance]
    known = changed_files(brief.edits)
    named = dict.fromkeys(path.removeprefix("./") for text in said for path in _PATH.findall(text))
    for place in known:
        named.pop(place.path, None)
    return (*known, *(FileToShow(path, guessed=True) for path in named))


async def shown_files(places: Iterable[FileToShow], workspace: Workspace, see: See) -> str:
    """Render the files as far as there is room, and name the others. `see` is called for each complete file."""
    from daiku.edits.rules.fileblocks import render_file_blocks  # when used

    shown: list[tuple[str, str]] = []
    others: list[str] = []
    room, guesses = CODE_LIMIT, 0
    for place in places:
        path = place.path
        if place.deleted:
            others.append(f"`{path}` was deleted.")
            continue
        if place.guessed:
            if guesses >= MOST_NAMED or not await _may_be_shown(path, workspace):
                continue
            guesses += 1
        try:
            text = (await workspace.read(path)).text
        except DaikuError as error:
            others.append(f"`{path}`: {error.failure.message}")
            continue
        if len(text) > min(FILE_LIMIT, room):
            others.append(f"`{path}` has {len(text)} characters: files__read shows it.")
            continue
        room -= len(text)
        shown.append((path, text))
        see(workspace.locate(path), text)
    return "\n\n".join(part for part in (render_file_blocks(shown), "\n".join(others)) if part)


async def _may_be_shown(path: str, workspace: Workspace) -> bool:
    """Return True if a word names a file that may be shown unasked: neither secret nor hidden."""
    from daiku.guard.rules.protected.paths import holds_secrets  # when used

    try:
        real = workspace.locate(path)
        there = real.is_file() and await workspace.exists(path)
    except (DaikuError, OSError, ValueError):
        return False
    if not there or real.suffix == ".ipynb" or workspace.hidden(real) or workspace.ignored(real):
        return False
    return not holds_secrets(path) and not holds_secrets(workspace.relative(real))


async def project_files(workspace: Workspace) -> str:
    """Return the names of the project's files and what the most used ones define, both bounded."""
    from daiku.tools.files.mapping import repository_map  # when used

    names = [workspace.relative(path) for path in islice(files(workspace.roots), MOST_LISTED + 1)]
    if not names:
        return ""
    more = "\n[… more; files__list shows them …]" if len(names) > MOST_LISTED else ""
    drawn = await repository_map(workspace, (), MAP_TOKENS)
    listed = "\n".join(names[:MOST_LISTED]) + more
    return f"{listed}\n\nWhat they define:\n{drawn}" if drawn else listed
