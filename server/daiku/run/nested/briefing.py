"""Briefs of stages: request, plan, relevant session history, and project files."""

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
from daiku.run.rules.state.context import format_user_messages, recorded_user_messages, user_messages
from daiku.run.run_log import RunLog
from daiku.run.services import RunServices
from daiku.team.agent import Agent
from daiku.team.rules.plans.transitions import find_step
from daiku.team.rules.proof.evidence import Evidence, record_call, record_checkpoint, record_edit
from daiku.texts.rules.patterns import lazy
from daiku.texts.text import text
from daiku.tools.rules.web.research import fold_research
from daiku.workspace.walk import walk_files


def brief_from(chunks: Iterable[Chunk], request: str, plan_id: str = "", step_id: str = "") -> Brief:
    """Return the brief for one stage: plan, step, findings, and changes. Raises UsageError (not_found)."""
    chunks = tuple(chunks)
    plans: dict[str, Plan] = {}
    calls: dict[str, ToolCallEvent] = {}
    research, evidence = Research(), Evidence()
    for chunk in chunks:
        research = fold_research(research, chunk.event)
        match chunk.event:
            case PlanEvent(plan=plan):
                plans.pop(plan.plan_id, None)
                plans[plan.plan_id] = plan
            case Edit():
                evidence = record_edit(evidence, chunk.event)
            case CheckpointEvent():
                evidence = record_checkpoint(evidence, chunk.event)
            case ToolCallEvent():
                calls[chunk.event.id] = chunk.event
            case ToolResponse(id=key) if key in calls:
                evidence = record_call(evidence, calls.pop(key), chunk.event)
            case RunStarted(brief=Brief(findings=Findings() as findings)):
                research = _merge_findings(research, findings)
            case _:
                pass
    plan, step = _find_plan_and_step(list(plans.values()), plan_id, step_id)
    return Brief(
        request=request,
        plan=plan,
        step_id=step,
        findings=Findings(**dict(research)) if research.results else None,
        edits=EditsMade(files=evidence.files, checkpoints=evidence.checkpoints) if evidence.files else None,
        proofs=evidence.proofs,
        said=recorded_user_messages(chunks),
    )


BRIEFED = ("researcher", "coder", "runner", "reporter")
"""Stages that receive their session's history, regardless of how they are started."""


async def brief_request(
    services: RunServices, agent: Agent, request: RunRequest, session: str
) -> tuple[str, Brief | None]:
    """Return the prompt text of the request, and the brief."""
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
    on_shown = partial(services.seen.note, session)
    return await write_request(agent, brief or Brief(request=request.text), services.workspace, on_shown)


def make_brief(log: RunLog, agent: Agent, request: str) -> Brief:
    """Return the brief for a nested run of `agent`."""
    from daiku.team.rules.proof.gate import find_open_plan  # when used

    state = log.record.state
    if log.agent.machine is not None:
        return log.agent.machine.brief(state, agent.name, request)
    plan = find_open_plan(state.plans.all) if agent.machine is not None else None
    return Brief(request=request, plan=plan, said=user_messages(state))


async def add_lessons(
    services: RunServices, brief: Brief, approvals: ApprovalMode, mode: Mode, window: int
) -> tuple[Brief, tuple[Notice, ...]]:
    """Return the brief with lessons for its request, and notices if the playbooks cannot be read."""
    lessons, problems = await recall_lessons(services, brief.request, approvals, mode, window)
    return brief.model_copy(update={"lessons": lessons}) if lessons else brief, problems


async def write_request(
    agent: Agent, brief: Brief, workspace: Workspace, on_shown: OnShown
) -> tuple[str, Brief]:
    """Return the prompt for `agent` built from a brief, and the brief with changed files if it shows them."""
    stage = agent.stage
    if stage is None or (render := stage.request) is None:
        return brief.request, brief
    if stage.shows == "named":
        code = await render_files(referenced_files(brief), workspace, on_shown)
        with_files = brief.model_copy(update={"code": code, "files": await list_project(workspace)})
        return _add_user_messages(render(with_files), brief), brief
    if stage.shows == "changed" and not brief.code and brief.edits is not None:
        code = await render_files(changed_files(brief.edits), workspace, on_shown)
        brief = brief.model_copy(update={"code": code})
    return _add_user_messages(render(brief), brief), brief


def _add_user_messages(request: str, brief: Brief) -> str:
    """Return the request with the user's earlier messages that it does not contain."""
    earlier_messages = format_user_messages(brief.said, request)
    return f"{request}\n\n{earlier_messages}" if earlier_messages else request


def _find_plan_and_step(plans: list[Plan], plan_id: str, step_id: str) -> tuple[Plan | None, str]:
    """Return the plan and the full step id. Raises UsageError (not_found)."""
    if not (plan_id or step_id):
        return (plans[-1] if plans else None), ""
    candidates = [p for p in reversed(plans) if not plan_id or p.plan_id == plan_id]
    for plan in candidates:
        if not step_id:
            return plan, ""
        if (step := find_step(plan, step_id)) is not None:
            return plan, step.step_id
    is_step_missing = candidates or not plan_id
    message = (
        text("runs.step_not_here", step=repr(step_id))
        if is_step_missing
        else text("runs.plan_not_here", plan=repr(plan_id))
    )
    raise UsageError(Failure(kind="not_found", message=message))


def _merge_findings(research: Research, findings: Findings) -> Research:
    urls = {finding.url for finding in research.results}
    new_findings = tuple(finding for finding in findings.results if finding.url not in urls)
    return research.model_copy(update={"results": (*research.results, *new_findings)})


# ---- project files in a stage's prompt

CODE_LIMIT = 40_000
"""Characters of all files in a stage's prompt, at most."""
FILE_LIMIT = 16_000
"""Characters of one file in a stage's prompt, at most; a longer file is only named."""
MOST_NAMED = 12
"""Number of shown files that the work's texts seem to name, at most."""
MOST_LISTED = 120
"""Number of file names in a project listing, at most."""
MAP_TOKENS = 1000
"""Tokens of the repository map, at most."""
OnShown = Callable[[Path, str], None]
"""Called with the path and text of each file that is shown completely."""
_PATH = lazy(r"[\w.@+-]+(?:/[\w.@+-]+)*\.\w+|[\w.@+-]+(?:/[\w.@+-]+)+|Makefile|Dockerfile")


@dataclass(frozen=True, slots=True)
class FileReference:
    """File for a stage's prompt. `guessed`: a word that looks like a path."""

    path: str
    deleted: bool = False
    guessed: bool = False


def changed_files(edits: EditsMade | None) -> tuple[FileReference, ...]:
    """Return references to the changed files."""
    stats = edits.files if edits is not None else ()
    return tuple(FileReference(stat.path, deleted=stat.kind == "delete") for stat in stats)


def referenced_files(brief: Brief) -> tuple[FileReference, ...]:
    """Return references to changed files, then to files that the request, step, or plan seem to name."""
    plan = brief.plan
    step = find_step(plan, brief.step_id) if plan is not None and brief.step_id else None
    steps = (step,) if step is not None else plan.steps if plan is not None else ()
    texts = [brief.request]
    for each in steps:
        texts += [each.name, each.description, *each.acceptance]
    changed = changed_files(brief.edits)
    guesses = dict.fromkeys(path.removeprefix("./") for text in texts for path in _PATH.findall(text))
    for place in changed:
        guesses.pop(place.path, None)
    return (*changed, *(FileReference(path, guessed=True) for path in guesses))


async def render_files(places: Iterable[FileReference], workspace: Workspace, on_shown: OnShown) -> str:
    """Render the files within the limits, and name the others. `on_shown` is called for each complete file."""
    from daiku.edits.rules.fileblocks import render_file_blocks  # when used

    rendered: list[tuple[str, str]] = []
    notes: list[str] = []
    room, guesses = CODE_LIMIT, 0
    for place in places:
        path = place.path
        if place.deleted:
            notes.append(f"`{path}` was deleted.")
            continue
        if place.guessed:
            if guesses >= MOST_NAMED or not await _may_show(path, workspace):
                continue
            guesses += 1
        try:
            text = (await workspace.read(path)).text
        except DaikuError as error:
            notes.append(f"`{path}`: {error.failure.message}")
            continue
        if len(text) > min(FILE_LIMIT, room):
            notes.append(f"`{path}` has {len(text)} characters: files__read shows it.")
            continue
        room -= len(text)
        rendered.append((path, text))
        on_shown(workspace.locate(path), text)
    return "\n\n".join(part for part in (render_file_blocks(rendered), "\n".join(notes)) if part)


async def _may_show(path: str, workspace: Workspace) -> bool:
    """Return True if the word names a file that may be shown without a request: not secret, not hidden."""
    from daiku.guard.rules.protected.names import holds_secrets  # when used

    try:
        real = workspace.locate(path)
        exists = real.is_file() and await workspace.exists(path)
    except (DaikuError, OSError, ValueError):
        return False
    if not exists or real.suffix == ".ipynb" or workspace.hidden(real) or workspace.ignored(real):
        return False
    return not holds_secrets(path) and not holds_secrets(workspace.relative(real))


async def list_project(workspace: Workspace) -> str:
    """Return the project's file names and what the most referenced files define; both are limited."""
    from daiku.tools.files.mapping import build_repository_map  # when used

    names = [workspace.relative(path) for path in islice(walk_files(workspace.roots), MOST_LISTED + 1)]
    if not names:
        return ""
    more = "\n[… more; files__list shows them …]" if len(names) > MOST_LISTED else ""
    map_text = await build_repository_map(workspace, (), MAP_TOKENS)
    listing = "\n".join(names[:MOST_LISTED]) + more
    return f"{listing}\n\nWhat they define:\n{map_text}" if map_text else listing
