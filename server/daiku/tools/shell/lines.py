"""Commands outside a run: the setup and checks of a task or trial, sandboxed and with a timeout."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path

from daiku.dataclass import dataclass
from daiku.domain.config import SandboxSettings
from daiku.guard.sandbox import Bounds, sandbox_argv, sandbox_state
from daiku.tools.shell.environment import build_environment
from daiku.tools.shell.process import start, wrap_in_reaper
from daiku.workspace.programs import find_program

TIMED_OUT, NOT_STARTED = 124, 127
MAX_OUTPUT = 4000
"""Characters of a command's output that are stored."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """The result of a command. `code`: exit code; `output`: both ends of its output."""

    code: int
    output: str
    seconds: float


@dataclass(frozen=True, slots=True)
class CommandPlace:
    """The folder that commands run in and may write, and the sandbox settings."""

    folder: Path
    sandbox: SandboxSettings


async def run_line(
    line: str,
    place: CommandPlace,
    seconds: float,
    *,
    network: bool = False,
    extra_env: Mapping[str, str] | None = None,
) -> CommandEnd:
    """Run a line of bash. Exit code 124 after a timeout. `extra_env`: additional variables."""
    shell = find_program("bash", (place.folder,)) or "/bin/sh"
    flags = ("--noprofile", "--norc") if shell.endswith("bash") else ()
    return await run_argv([shell, *flags, "-c", line], place, seconds, network=network, extra_env=extra_env)


async def run_argv(
    argv: list[str],
    place: CommandPlace,
    seconds: float,
    *,
    network: bool = False,
    bare: bool = False,
    extra_env: Mapping[str, str] | None = None,
) -> CommandEnd:
    """Run a program to its end. `bare`: outside the sandbox, for programs that need it (git)."""
    roots = (place.folder,)
    sandboxed = not bare and sandbox_state(place.sandbox) == "on"
    env = build_environment(os.environ, roots, network=network, passed_names=place.sandbox.environment)
    if not sandboxed:
        env["TMPDIR"] = os.environ.get("TMPDIR", "/tmp")  # noqa: S108  # the system's own
    env.update(extra_env or {})
    start_time = time.monotonic()
    try:
        if sandboxed:
            bounds = Bounds(roots=roots, network=network)
            argv = await asyncio.to_thread(sandbox_argv, argv, bounds, place.folder)
        else:
            argv = wrap_in_reaper(argv)
        process = await start(
            argv, cwd=place.folder, env=env, stdin=None, terminal=False, reaped=not sandboxed
        )
    except (OSError, ValueError) as error:
        return CommandEnd(NOT_STARTED, str(error), 0.0)
    try:
        async with asyncio.timeout(seconds):
            code = await process.finish(_discard)
    except TimeoutError:
        code = TIMED_OUT
    finally:
        await asyncio.shield(process.stop())
    return CommandEnd(code, process.output.format_for_model(MAX_OUTPUT), time.monotonic() - start_time)


def _discard(_piece: str) -> None:
    """Ignore live output."""
