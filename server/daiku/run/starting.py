"""The first events of a run, and what a run is told that goes on: its request, its brief, its environment."""

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
from daiku.run.ports.routed import Prepared
from daiku.run.ports.token_guards import count_routing
from daiku.run.recalling import recall, recall_lessons
from daiku.run.request import RunRequest, with_paths
from daiku.run.rules.budget import Budget, open_budget
from daiku.run.rules.calls.needed import needed_tools
from daiku.run.rules.calls.toolsets import CALL
from daiku.run.rules.outside import Editor, Workspace
from daiku.run.rules.state.environment import changed_facts
from daiku.run.rules.state.state import State
from daiku.run.rules.surroundings import NO_GIT, Surroundings, environment_facts, git_state
from daiku.run.run_log import prompt_notices
from daiku.run.services import RunServices
from daiku.team.agent import Agent
from daiku.texts.text import text
from daiku.trace.journal import UNDER_WAY
from daiku.workspace.walk import is_large_project


async def opening_events(
    services: RunServices, agent: Agent, prepared: Prepared, state: State, session: str, model: Model | None
) -> tuple[Event, ...]:
    """Return the events that begin a run. Of a blocked request no agent, model, or tool sees anything."""
    request, used = prepared.request, prepared.used
    await count_routing(services, agent, session, used)
    if not prepared.blocked:
        with services.prompts.active():
            start, *more = await _start_events(services, agent, request, state, session, model)
        told = (*prepared.said, *_about_prompts(services.prompts), *prepared.first)
        return (start, *((used,) if used is not None else ()), *more, *told)
    start = RunStarted(
        prompt=request.text,
        told=text("guardrails.blocked_request"),
        mode=request.mode,
        model=model.name if model is not None else "",
        limits=request.limits or services.config.limits,
        tainted=request.tainted,
    )
    return (start, AgentStart(), *prepared.said)


def _about_prompts(prompts: Prompts) -> list[Notice]:
    """What the person is told of templates of the workspace: those that cannot be used, and that none are."""
    notices = [*prompt_notices(prompts.problems())]
    if folder := prompts.ignored():
        notices.append(Notice(level="info", text=text("prompts.untrusted", folder=folder)))
    return notices


def _may_edit(services: RunServices, agent: Agent, request: RunRequest) -> bool:
    tools = agent.allowed(services.registry.specs(), request.mode)
    return any(spec.effect == "edit" for spec in tools)


async def _start_events(
    services: RunServices, agent: Agent, request: RunRequest, state: State, session: str, model: Model | None
) -> tuple[RunStarted | AgentStart | Notice, ...]:
    """Return the events that begin the requested run, in a session at `state`; `model` is None if none is asked."""
    told, brief = await brief_request(services, agent, request, session)
    mode, approvals, attended, cursor = request.mode, request.approvals, request.attended, request.cursor
    around = (
        ()
        if model is None
        else await look_around(
            services,
            agent,
            mode,
            approvals,
            attended=attended,
            cursor=cursor,
            needed_tools=_needed(services, agent, request, state, model),
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
        environment=around,
        recalled=recalled,
        lessons=lessons,
    )
    return started, AgentStart(model=started.model), *notices, *problems


def left_budget(state: State) -> Budget:
    """What a run that is gone on with may still use."""
    rounds = state.spending.rounds + state.nested.rounds
    return open_budget(state.request.asked_limits, state.spending.usage, rounds)


NAMED_OTHERS = 3
"""Other runs in the same folder that are named to the person; more are `…`."""


def others_here(services: RunServices, session: str) -> tuple[Notice, ...]:
    """Return the notice that other runs are under way in this folder, which may change the same files."""
    folder = services.workspace_key
    others = services.journal.running_titles(folder, beside=session, most=NAMED_OTHERS + 1) if folder else []
    if not others:
        return ()
    names = ", ".join(f"“{title}”" for title in others[:NAMED_OTHERS])
    more = ", …" if len(others) > NAMED_OTHERS else ""
    return (Notice(level="warning", text=text("runs.another_here", names=names + more)),)


def lost_on_the_way(
    services: RunServices, session: str, state: State, own: Sequence[Chunk]
) -> tuple[Notice, ...]:
    """Return notices of what the process before did not save: a half reply, checkpoints in another home."""
    lost: list[Notice] = []
    cut = services.journal.get_session(session).status in UNDER_WAY  # as its process left it
    if cut and state.request.asks_model and not (state.calls.pending or state.conversation.draft):
        lost.append(Notice(level="info", text=text("runs.unwritten")))
    taken = [chunk.event.checkpoint_id for chunk in own if isinstance(chunk.event, CheckpointEvent)]
    if taken and not any(map(services.checkpoints.has, taken)):
        lost.append(Notice(level="warning", text=text("runs.checkpoints_elsewhere")))
    return tuple(lost)


async def news_of_resumed(
    services: RunServices, agent: Agent, state: State, approvals: ApprovalMode, *, attended: bool
) -> tuple[Notice, ...]:
    """What the model of a run that is gone on with has to know of what changed around it, if anything."""
    known = state.conversation.environment
    messages = state.conversation.messages
    last = messages[-1] if messages else None
    answered = isinstance(last, AssistantMessage) and not last.calls
    # An answer that is there is not asked for again.
    if not known or not state.request.asks_model or answered:
        return ()
    now = await look_around(services, agent, state.request.mode, approvals, attended=attended)
    if not changed_facts(known, now):
        return ()
    return (Notice(level="info", text=text("runs.surroundings_changed"), environment=now),)


def _needed(services: RunServices, agent: Agent, request: RunRequest, state: State, model: Model) -> str:
    """How the tools are called that the request needs and the model is not sent."""
    chosen = agent.sent(
        services.registry.specs(), model.context, model.traits.edits, lambda: is_large_project(services.roots)
    )
    by_find = any(spec.name == CALL for spec in chosen.offered)
    return needed_tools(request.text, request.mode, chosen.deferred, state.plans.all, by_find=by_find)


# ---- what holds around the run

GIT_SECONDS = 1.0
"""How long git may take to say how the project stands, before the first request goes out without it."""
NOT_USED = "a repository that cannot be used here: do not count on git"
TOO_SLOW = "state not known: git status took too long"
STATUS = (
    *("status", "--porcelain=v2", "--branch", "--ignore-submodules=dirty", "--untracked-files=normal"),
    "--no-ahead-behind",
)


async def look_around(
    services: RunServices,
    agent: Agent,
    mode: Mode,
    approvals: ApprovalMode,
    *,
    attended: bool,
    cursor: Cursor | None = None,
    needed_tools: str = "",
) -> tuple[EnvironmentFact, ...]:
    """Return the environment facts for a run. `needed_tools`: tools of its request that the model is not sent."""
    if not agent.uses_builtin_tools:
        return ()
    from daiku.tools.shell.preparing import DEFAULT_SECONDS  # when used

    editor = services.editor
    found = Surroundings(
        today=datetime.now().astimezone().date(),
        system=f"{platform.system()} {platform.machine()}",
        folders=tuple(str(root) for root in services.roots),
        seconds=int(DEFAULT_SECONDS),
        git=await _git(services),
        open_files=_open_files(editor, services.workspace) if editor is not None else None,
        cursor=_place(services.workspace, cursor),
        needed_tools=needed_tools,
    )
    policy = services.policy(mode, approvals, attended and approvals != "none")
    stage = agent.stage is not None
    return environment_facts(found, policy, shell=_may(agent, "shell/run"), stage=stage)


def _open_files(editor: Editor, workspace: Workspace) -> tuple[str, ...]:
    """The open files of the workspace that are not hidden from the agent."""
    found: list[str] = []
    for path in editor.open_files():
        with suppress(DaikuError):
            if not workspace.hidden(workspace.locate(path)):
                found.append(path)
    return tuple(found)


def _place(workspace: Workspace, cursor: Cursor | None) -> str:
    """The file and the line of the cursor; empty where it is in no file of the workspace."""
    if cursor is None:
        return ""
    try:
        name = workspace.relative(workspace.locate(cursor.uri))
    except DaikuError:
        return ""
    return f"{name}:{cursor.position.line + 1}"


def _may(agent: Agent, tool: str) -> bool:
    return any(fnmatchcase(tool, pattern) for pattern in agent.patterns)


async def _git(services: RunServices) -> str:
    """The branch and its state; why they are not known where they are not."""
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
            return await _LOOKS(("git", roots), lambda: _look_at_git(roots))
    except TimeoutError:
        return TOO_SLOW


async def _look_at_git(roots: tuple[Path, ...]) -> str:
    from daiku.tools.git.repository import repository  # when used
    from daiku.workspace.repository import git_places  # when used

    try:
        async with asyncio.timeout(GIT_SECONDS):
            found = await repository(roots[0], roots)
            if isinstance(found, str):
                there = await asyncio.to_thread(git_places, roots[0], roots)
                return NO_GIT if there is None else NOT_USED
            code, listed = await found.names(list(STATUS))
    except (TimeoutError, OSError):
        return TOO_SLOW
    return git_state(listed) if code == 0 else "state not known: git could not tell"


Key: TypeAlias = tuple[asyncio.AbstractEventLoop, Hashable]


@dataclass(eq=False, slots=True)
class _Look:
    """A look, and how many wait for it."""

    task: asyncio.Task[str]
    askers: int = 0


@dataclass(eq=False, slots=True)
class Looks:
    """Shared lookups, one at a time for each key. Callers during one share the next, which sees their changes."""

    _under_way: dict[Key, asyncio.Task[str]] = field(default_factory=dict[Key, "asyncio.Task[str]"])
    _next: dict[Key, _Look] = field(default_factory=dict[Key, _Look])

    async def __call__(self, what: Hashable, look: Callable[[], Awaitable[str]]) -> str:
        """Return the result of a lookup that begins now or later; it is cancelled when nobody waits for it."""
        key = (asyncio.get_running_loop(), what)
        shared = self._next.get(key)
        if shared is None or shared.task.done():
            shared = self._next[key] = _Look(asyncio.create_task(self._look(key, look)))
        shared.askers += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.askers -= 1
            if not shared.askers and not shared.task.done():
                if self._next.get(key) is shared:
                    del self._next[key]
                shared.task.cancel()
                await asyncio.wait({shared.task})  # what it started is ended by then

    async def _look(self, key: Key, look: Callable[[], Awaitable[str]]) -> str:
        if (before := self._under_way.get(key)) is not None:
            await asyncio.wait({before})
        own = asyncio.current_task()
        assert own is not None, "a look is a task"
        del self._next[key]
        self._under_way[key] = own
        try:
            return await look()
        finally:
            del self._under_way[key]


_LOOKS = Looks()
"""Looks at git in the folders that runs share."""
