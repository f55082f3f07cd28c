"""Commands by themselves, outside any run: the setup and the checks of a task or a trial, sandboxed and bounded in time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.config import SandboxSettings
from daiku.guard.sandbox import Bounds, sandbox_argv, sandbox_state
from daiku.tools.shell.environment import child_environment
from daiku.tools.shell.process import reaper_argv, start
from daiku.workspace.programs import find_program

TIMED_OUT, NOT_STARTED = 124, 127
SHOWN = 4000
"""Characters of output that are kept of a command."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """How a command ended; `output` holds both ends of what it printed."""

    code: int
    output: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Where:
    """The folder that commands run in and may write, and the sandbox that the settings want."""

    folder: Path
    sandbox: SandboxSettings


async def run_line(
    line: str, where: Where, seconds: float, *, network: bool = False, more: Mapping[str, str] | None = None
) -> CommandEnd:
    """Run a line of bash; 124 when it took too long. `more` are variables besides."""
    shell = find_program("bash", (where.folder,)) or "/bin/sh"
    flags = ("--noprofile", "--norc") if shell.endswith("bash") else ()
    return await run_argv([shell, *flags, "-c", line], where, seconds, network=network, more=more)


async def run_argv(
    argv: list[str],
    where: Where,
    seconds: float,
    *,
    network: bool = False,
    bare: bool = False,
    more: Mapping[str, str] | None = None,
) -> CommandEnd:
    """Run a program to its end. `bare`: outside the sandbox, for what the program itself needs (git)."""
    roots = (where.folder,)
    sandboxed = not bare and sandbox_state(where.sandbox) == "on"
    env = child_environment(os.environ, roots, network=network, named=where.sandbox.environment)
    if not sandboxed:
        env["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")  # noqa: S108  # the system's own
    env.update(more or {})
    began = time.monotonic()
    try:
        if sandboxed:
            bounds = Bounds(roots=roots, network=network)
            argv = await asyncio.to_thread(sandbox_argv, argv, bounds, where.folder)
        else:
            argv = reaper_argv(argv)
        process = await start(
            argv, cwd=where.folder, env=env, stdin=None, terminal=False, reaped=not sandboxed
        )
    except (OSError, ValueError) as error:
        return CommandEnd(NOT_STARTED, str(error), 0.0)
    try:
        async with asyncio.timeout(seconds):
            code = await process.finish(_ignore)
    except TimeoutError:
        code = TIMED_OUT
    finally:
        await asyncio.shield(process.stop())
    return CommandEnd(code, process.output.shown(SHOWN), time.monotonic() - began)


def _ignore(_piece: str) -> None:
    """Nobody watches these commands."""
