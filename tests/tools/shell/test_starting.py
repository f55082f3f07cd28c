"""Cancelled in the moment in which a command starts: it is ended with all that it started, and nobody waits for it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from daiku.tools.shell.capture import run_program
from daiku.tools.shell.pipes import start_piped
from daiku.tools.shell.process import start, wrap_in_reaper
from tests.tools.shell.test_shell import Bench, bench, gone

__all__ = ["bench"]
pytestmark = pytest.mark.slow  # real commands

Cancelled = Callable[[Coroutine[Any, Any, object], Path | None], Coroutine[Any, Any, None]]
LIMIT = 20.0


@pytest.fixture
def cancelled_in_its_start(monkeypatch: pytest.MonkeyPatch) -> Cancelled:
    """Has the caller cancelled while asyncio makes the process; with a file, when the command has made that: as on
    a machine so busy that the command comes on before its parent does."""

    async def check(work: Coroutine[Any, Any, object], made: Path | None) -> None:
        task = asyncio.ensure_future(work)
        real = subprocess.Popen

        def make(*args: Any, **options: Any) -> object:
            process = real(*args, **options)
            if options.get("start_new_session"):
                until = time.monotonic() + LIMIT
                while made is not None and not made.exists() and time.monotonic() < until:
                    pass
                task.cancel()
            return process

        monkeypatch.setattr(subprocess, "Popen", make)
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(LIMIT):
                await task
        monkeypatch.setattr(subprocess, "Popen", real)

    return check


@pytest.mark.parametrize("terminal", [False, True])
async def test_a_command_that_had_begun(
    workspace: Path, cancelled_in_its_start: Cancelled, terminal: bool
) -> None:
    made, seconds = workspace / "made", f"47.114{terminal:d}"
    argv = wrap_in_reaper(["bash", "-c", f"touch made; sleep {seconds}; true"])
    starting = start(argv, cwd=workspace, env=dict(os.environ), stdin=None, terminal=terminal, reaped=True)
    await cancelled_in_its_start(starting, made)
    assert made.exists()
    assert await gone(seconds)


async def test_a_program_whose_output_is_captured(workspace: Path, cancelled_in_its_start: Cancelled) -> None:
    argv = ["bash", "-c", "touch made; sleep 47.1152; true"]
    await cancelled_in_its_start(run_program(argv, workspace, dict(os.environ), None, 0), workspace / "made")
    assert await gone("47.1152")


async def test_a_child_that_is_talked_to(workspace: Path, cancelled_in_its_start: Cancelled) -> None:
    argv = ["bash", "-c", "touch made; sleep 47.1162; true"]
    starting = start_piped(argv, cwd=workspace, env=dict(os.environ), on_stderr=lambda _: None)
    await cancelled_in_its_start(starting, workspace / "made")
    assert await gone("47.1162")


async def test_a_command_of_the_model_at_whatever_point_its_sandbox_is(
    bench: Bench, cancelled_in_its_start: Cancelled
) -> None:
    for _ in range(12):
        await cancelled_in_its_start(bench.run("sleep 47.1172; true"), None)
        assert await gone("47.1172")
    await cancelled_in_its_start(bench.run("touch made; sleep 47.1172; true"), bench.root / "made")
    assert await gone("47.1172")
