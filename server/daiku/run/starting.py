"""First events of a new or resumed run: request, brief, and environment."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeAlias

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError
from daiku.domain.events import AgentStart, CheckpointEvent, Event, Notice, RunStarted
from daiku.domain.messages import AssistantMessage
from daiku.domain.runs import ApprovalMode, Cursor, EnvironmentFact, Mode
from daiku.models.families import Model
from daiku.prompts import Prompts
from daiku.run.nested.briefing import brief_request
from daiku.run.ports.guards import PreparedRequest
from daiku.run.ports.token_guards import count_routing
from daiku.run.recalling import recall, recall_lessons
from daiku.run.request import RunRequest, with_paths
from daiku.run.rules.budget import Budget, open_budget
from daiku.run.rules.calls.findtools import CALL, needed_tools
from daiku.run.rules.outside import Editor, Workspace
from daiku.run.rules.state.environment import (
    NO_GIT,
    Surroundings,
    changed_facts,
    environment_facts,
    format_git_state,
)
from daiku.run.rules.state.state import State
from daiku.run.run_log import prompt_notices
from daiku.run.services import RunServices
from daiku.team.agent import Agent
from daiku.texts.text import text
from daiku.trace.journal import UNDER_WAY
from daiku.workspace.walk import is_large_project


async def opening_events(
    services: RunServices,
    agent: Agent,
    prepared: PreparedRequest,
    state: State,
    session: str,
    model: Model | None,
) -> tuple[Event, ...]:
    """Return the events that begin a run. A blocked request reaches no agent, model, or tool."""
    request, used = prepared.request, prepared.routing_usage
    await count_routing(services, agent, session, used)
    if not prepared.is_blocked:
        with services.prompts.activate():
            start, *more = await _start_events(services, agent, request, state, session, model)
        notices = (*prepared.guard_events, *_prompt_template_notices(services.prompts), *prepared.opening)
        return (start, *((used,) if used is not None else ()), *more, *notices)
    start = RunStarted(
        prompt=request.text,
        told=text("guardrails.blocked_request"),
        mode=request.mode,
        model=model.name if model is not None else "",
        limits=request.limits or services.config.limits,
        tainted=request.tainted,
    )
    return (start, AgentStart(), *prepared.guard_events)


def _prompt_template_notices(prompts: Prompts) -> list[Notice]:
    """Return notices about workspace templates that are broken, or ignored in an untrusted workspace."""
    notices = [*prompt_notices(prompts.find_problems())]
    if folder := prompts.find_ignored_folder():
        notices.append(Notice(level="info", text=text("prompts.untrusted", folder=folder)))
    return notices


def _may_edit(services: RunServices, agent: Agent, request: RunRequest) -> bool:
    tools = agent.allowed(services.registry.specs(), request.mode)
    return any(spec.effect == "edit" for spec in tools)


async def _start_events(
    services: RunServices, agent: Agent, request: RunRequest, state: State, session: str, model: Model | None
) -> tuple[RunStarted | AgentStart | Notice, ...]:
    """Return the events that begin the requested run, in a session at `state`.

    `model` is None if the run uses no model.
    """
    told, brief = await brief_request(services, agent, request, session)
    mode, approvals, attended, cursor = request.mode, request.approvals, request.attended, request.cursor
    environment = (
        ()
        if model is None
        else await environment_of(
            services,
            agent,
            mode,
            approvals,
            attended=attended,
            cursor=cursor,
            needed_tools=_describe_needed_tools(services, agent, request, state, model),
        )
    )
    recalled, notices = await recall(services, agent, request, session) if model is not None else ((), ())
    lessons, problems = request.lessons or (), ()
    if model is not None and agent.machine is None and request.lessons is None:
        lessons, problems = await recall_lessons(services, request.text, approvals, mode, model.context)
    started = RunStarted(
        prompt=request.text,
        told=told,
        wording=request.wording,
        mode=request.mode,
        model=model.name if model is not None else "",
        may_edit=_may_edit(services, agent, request),
        limits=request.limits or services.config.limits,
        context=with_paths(request.context, services.workspace),
        images=request.images,
        calls=request.calls,
        brief=brief,
        tainted=request.tainted,
        driven=bool(request.calls) or agent.machine is not None,
        environment=environment,
        recalled=recalled,
        lessons=lessons,
    )
    return started, AgentStart(model=started.model), *notices, *problems


def remaining_budget(state: State) -> Budget:
    """Return the remaining budget of a resumed run."""
    rounds = state.spending.rounds + state.nested.rounds
    return open_budget(state.request.asked_limits, state.spending.usage, rounds)


NAMED_OTHERS = 3
"""Number of other runs in the same folder that the notice names, at most."""


def concurrent_run_notices(services: RunServices, session: str) -> tuple[Notice, ...]:
    """Return a notice if other live runs in this folder may change the same files."""
    folder = services.workspace_key
    others = (
        services.journal.running_titles(folder, excluding=session, most=NAMED_OTHERS + 1) if folder else []
    )
    if not others:
        return ()
    names = ", ".join(f"“{title}”" for title in others[:NAMED_OTHERS])
    more = ", …" if len(others) > NAMED_OTHERS else ""
    return (Notice(level="warning", text=text("runs.another_here", names=names + more)),)


def data_loss_notices(
    services: RunServices, session: str, state: State, own: Sequence[Chunk]
) -> tuple[Notice, ...]:
    """Return notices of lost data: an incomplete reply, or checkpoints stored in another home."""
    notices: list[Notice] = []
    was_interrupted = (
        services.journal.get_session(session).status in UNDER_WAY
    )  # set by the interrupted process
    if was_interrupted and state.request.asks_model and not (state.calls.pending or state.conversation.draft):
        notices.append(Notice(level="info", text=text("runs.unwritten")))
    checkpoints = [chunk.event.checkpoint_id for chunk in own if isinstance(chunk.event, CheckpointEvent)]
    if checkpoints and not any(map(services.checkpoints.has, checkpoints)):
        notices.append(Notice(level="warning", text=text("runs.checkpoints_elsewhere")))
    return tuple(notices)


async def environment_change_notices(
    services: RunServices, agent: Agent, state: State, approvals: ApprovalMode, *, attended: bool
) -> tuple[Notice, ...]:
    """Return a notice for a resumed run's model about changes of its environment, if any."""
    recorded = state.conversation.environment
    messages = state.conversation.messages
    last = messages[-1] if messages else None
    has_answered = isinstance(last, AssistantMessage) and not last.calls
    if not recorded or not state.request.asks_model or has_answered:
        return ()
    current = await environment_of(services, agent, state.request.mode, approvals, attended=attended)
    if not changed_facts(recorded, current):
        return ()
    return (Notice(level="info", text=text("runs.surroundings_changed"), environment=current),)


def _describe_needed_tools(
    services: RunServices, agent: Agent, request: RunRequest, state: State, model: Model
) -> str:
    """Return how to call the tools that the request needs and the model is not sent."""
    toolset = agent.sent(
        services.registry.specs(), model.context, model.traits.edits, lambda: is_large_project(services.roots)
    )
    by_find = any(spec.name == CALL for spec in toolset.offered)
    return needed_tools(request.text, request.mode, toolset.deferred, state.plans.all, by_find=by_find)


# ---- the environment of a run

GIT_SECONDS = 1.0
"""Timeout of git in seconds; after that the first request is sent without the repository's state."""
NOT_USED = "a repository that cannot be used here: do not count on git"
TOO_SLOW = "state not known: git status took too long"
STATUS = (
    *("status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "--untracked-files=normal"),
    "--no-ahead-behind",
)


async def environment_of(
    services: RunServices,
    agent: Agent,
    mode: Mode,
    approvals: ApprovalMode,
    *,
    attended: bool,
    cursor: Cursor | None = None,
    needed_tools: str = "",
) -> tuple[EnvironmentFact, ...]:
    """Return the environment facts for a run.

    `needed_tools`: tools for the request that the model is not sent.
    """
    if not agent.uses_builtin_tools:
        return ()
    from daiku.tools.shell.preparing import DEFAULT_SECONDS  # when used

    editor = services.editor
    surroundings = Surroundings(
        today=datetime.now().astimezone().date(),
        system=f"{platform.system()} {platform.machine()}",
        folders=tuple(str(root) for root in services.roots),
        seconds=int(DEFAULT_SECONDS),
        git=await _describe_git(services),
        open_files=_open_files(editor, services.workspace) if editor is not None else None,
        cursor=_format_cursor(services.workspace, cursor),
        needed_tools=needed_tools,
    )
    policy = services.policy(mode, approvals, attended and approvals != "none")
    stage = agent.stage is not None
    return environment_facts(surroundings, policy, shell=_may_use(agent, "shell/run"), stage=stage)


def _open_files(editor: Editor, workspace: Workspace) -> tuple[str, ...]:
    """Return the open files of the workspace that are visible to the agent."""
    visible: list[str] = []
    for path in editor.open_files():
        with suppress(DaikuError):
            if not workspace.hidden(workspace.locate(path)):
                visible.append(path)
    return tuple(visible)


def _format_cursor(workspace: Workspace, cursor: Cursor | None) -> str:
    """Return the cursor's file and line; empty if it is in no file of the workspace."""
    if cursor is None:
        return ""
    try:
        name = workspace.relative(workspace.locate(cursor.uri))
    except DaikuError:
        return ""
    return f"{name}:{cursor.position.line + 1}"


def _may_use(agent: Agent, tool: str) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in agent.patterns)


async def _describe_git(services: RunServices) -> str:
    """Return the branch and its state, or the reason that they are unknown."""
    from daiku.workspace.repository import has_timed_out, may_be_repository  # when used

    roots = services.roots
    if not roots:
        return ""
    if not services.trusted:
        return "not looked at: the workspace is not trusted"
    if not may_be_repository(roots[0]):
        return NO_GIT
    if has_timed_out(roots[0], GIT_SECONDS):
        return TOO_SLOW
    try:
        async with asyncio.timeout(GIT_SECONDS):
            return await _LOOKUPS(("git", roots), lambda: _read_git(roots))
    except TimeoutError:
        return TOO_SLOW


async def _read_git(roots: tuple[Path, ...]) -> str:
    from daiku.tools.git.repository import open_repository  # when used
    from daiku.workspace.repository import find_git_places  # when used

    try:
        async with asyncio.timeout(GIT_SECONDS):
            git = await open_repository(roots[0], roots)
            if isinstance(git, str):
                places = await asyncio.to_thread(find_git_places, roots[0], roots)
                return NO_GIT if places is None else NOT_USED
            code, output = await git.list_names(list(STATUS))
    except (TimeoutError, OSError):
        return TOO_SLOW
    return format_git_state(output) if code == 0 else "state not known: git could not tell"


LookupKey: TypeAlias = tuple[asyncio.AbstractEventLoop, Hashable]


@dataclass(eq=False, slots=True)
class _Lookup:
    """A lookup, and the number of callers that wait for it."""

    task: asyncio.Task[str]
    askers: int = 0


@dataclass(eq=False, slots=True)
class SharedLookups:
    """Shared lookups, one at a time for each key.

    Callers during a lookup share the next one, which sees their changes.
    """

    _running: dict[LookupKey, asyncio.Task[str]] = field(default_factory=dict[LookupKey, "asyncio.Task[str]"])
    _next: dict[LookupKey, _Lookup] = field(default_factory=dict[LookupKey, _Lookup])

    async def __call__(self, subject: Hashable, lookup: Callable[[], Awaitable[str]]) -> str:
        """Return the result of a lookup that begins now or later; it is cancelled when no caller waits."""
        key = (asyncio.get_running_loop(), subject)
        shared = self._next.get(key)
        if shared is None or shared.task.done():
            shared = self._next[key] = _Lookup(asyncio.create_task(self._run_next(key, lookup)))
        shared.askers += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.askers -= 1
            if not shared.askers and not shared.task.done():
                if self._next.get(key) is shared:
                    del self._next[key]
                shared.task.cancel()
                await asyncio.wait({shared.task})  # wait until what it started has ended

    async def _run_next(self, key: LookupKey, lookup: Callable[[], Awaitable[str]]) -> str:
        if (previous := self._running.get(key)) is not None:
            await asyncio.wait({previous})
        current = asyncio.current_task()
        assert current is not None, "a lookup is a task"
        del self._next[key]
        self._running[key] = current
        try:
            return await lookup()
        finally:
            del self._running[key]


_LOOKUPS = SharedLookups()
"""Git lookups in folders that runs share."""
