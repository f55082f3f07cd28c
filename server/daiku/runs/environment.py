"""Looks at what holds around a run (date, system, git, editor), and at how its project stands as it begins."""

from __future__ import annotations

import asyncio
import logging
import platform
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from daiku.agents.agent import Agent
from daiku.core.ports import Editor, Workspace
from daiku.core.run.surroundings import NO_GIT, Surroundings, environment_facts, git_state
from daiku.dataclass import dataclass
from daiku.domain.errors import DaikuError
from daiku.domain.runs import ApprovalMode, Cursor, EnvironmentFact, Mode
from daiku.runs.request import RunRequest
from daiku.runs.services import RunServices
from daiku.settings.config import Config

if TYPE_CHECKING:
    from daiku.domain.trials import ProjectStart
    from daiku.trace.starts import Starts

logger = logging.getLogger(__name__)

GIT_SECONDS = 1.0
"""How long git may take to say how the project stands, before the first request goes out without it."""
START_SECONDS = 5.0
"""How long the first call of a run that may change something waits until it is known how the project stood, at most."""
NOT_USED = "a repository that cannot be used here: do not count on git"
TOO_SLOW = "state not known: git did not answer in time"
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
    from daiku.workspace.repository import may_be_repository  # when used

    roots = services.roots
    if not roots:
        return ""
    if not services.trusted:
        return "not looked at: the workspace is not trusted"
    if not may_be_repository(roots[0]):
        return NO_GIT
    try:
        async with asyncio.timeout(GIT_SECONDS):
            return await services.looks(("git", roots), lambda: _look_at_git(roots))
    except TimeoutError:
        return TOO_SLOW


async def _look_at_git(roots: tuple[Path, ...]) -> str:
    from daiku.tools.git.git import repository  # when used
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


# ---- how the project stands as a run begins


def starts_in(home: Path, config: Config, redact: Callable[[str], str], *, lasting: bool) -> Starts | None:
    """Where it is kept how projects stood as runs began, below Daiku's home: lessons are tried on that. None where nothing
    is learnt, or nothing is to be kept."""
    if not lasting or not config.playbook.enabled or config.playbook.learn == "off":
        return None
    from daiku.trace.starts import Starts  # when used

    return Starts(home / "starts", redact).swept()


@dataclass(eq=False, slots=True)
class Beginning:
    """The look at the project that goes on beside a run's first request; without `look` none is taken. `keep` keeps what
    became of it."""

    look: asyncio.Task[ProjectStart | None] | None = None
    keep: Callable[[ProjectStart], None] | None = None

    async def known(self) -> None:
        """Wait until it is known how the project stood: from now on it may change."""
        if self.look is None or self.keep is None:
            return
        await asyncio.wait({self.look}, timeout=START_SECONDS)
        keep, self.keep = self.keep, None
        if keep is not None:  # of several calls at once one was first
            await asyncio.to_thread(self._settle, keep)

    def _settle(self, keep: Callable[[ProjectStart], None]) -> None:
        from daiku.domain.trials import ProjectStart  # when used

        assert self.look is not None, "something is kept only of a look"
        found = self.look.result() if self.look.done() else ProjectStart(root="", why="slow")
        if found is not None:
            keep(found)

    async def end(self) -> None:
        """Look no further: the run has ended."""
        if self.look is not None and not self.look.done():
            self.look.cancel()
            await asyncio.wait({self.look})


def begin_with(
    services: RunServices, request: RunRequest, session: str, run: str, *, first: bool
) -> Beginning:
    """Begin to look at the project as a run begins that can be done again later by its request alone: the `first` of its
    conversation, with nothing besides its words."""
    alone = first and not (request.calls or request.images or request.context or request.brief)
    if not alone or request.mode != "act" or services.starts is None or not services.roots:
        return Beginning()
    keep = partial(services.starts.keep, session, run)
    return Beginning(asyncio.create_task(_look(services, services.starts.redact)), keep)


async def _look(services: RunServices, redact: Callable[[str], str]) -> ProjectStart | None:
    from daiku.workspace.repository import may_be_repository  # when used

    root, *more = services.roots
    if not more and not may_be_repository(root):
        from daiku.domain.trials import ProjectStart  # when used

        return ProjectStart(root=str(root), why="no_repository")
    from daiku.tools.git.standing import project_start  # when used

    try:
        return await project_start(services.roots, services.workspace, services.editor, redact)
    except Exception:  # whatever is wrong with a repository, the run goes on
        logger.exception("how the project stood was not kept")
        return None
