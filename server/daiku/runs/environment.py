"""Facts about the surroundings of a run: date, system, git, editor."""

from __future__ import annotations

import asyncio
import platform
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from pathlib import Path

from daiku.agents.agent import Agent
from daiku.core.ports import Editor, Workspace
from daiku.core.run.surroundings import NO_GIT, Surroundings, environment_facts, git_state
from daiku.domain.errors import DaikuError
from daiku.domain.runs import ApprovalMode, Cursor, EnvironmentFact, Mode
from daiku.runs.services import RunServices

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
    """What a run of `agent` is told of its environment; nothing where it has no tools. `needed_tools`: how those
    tools are called that its request needs besides what the model is sent."""
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
            return await services.looks(("git", roots), lambda: _look_at_git(roots))
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
