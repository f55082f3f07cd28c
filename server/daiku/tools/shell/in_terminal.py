"""A command in a terminal of the connected editor: the person watches it, our rules bound it all the same."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from daiku.run.rules.outside import TerminalFailed, Terminals
from daiku.tools.shell.output import TruncatedOutput
from daiku.tools.shell.process import GRACE_SECONDS, WHOLE_BYTES, end_task, with_parent

START_SECONDS = 10.0
"""How long an editor may take to start a command; then we run it ourselves."""
POLL_SECONDS = 0.02
LAUNCHER = Path(__file__).with_name("launcher.py")
PARENT = "PARENT"
UNKNOWN = 1
"""The exit code of a command of which the editor did not say how it ended."""


class TerminalCommand:
    """A command that runs in `terminal`; made by `start_in_terminal`."""

    def __init__(self, terminals: Terminals, terminal: str, pid: int, waiting: asyncio.Task[int]) -> None:
        self.output = TruncatedOutput(WHOLE_BYTES)
        self.started = time.monotonic()
        self._terminals = terminals
        self._terminal = terminal
        self._pid = pid
        self._waiting = waiting
        self._released = False

    async def finish(self, show: Callable[[str], None]) -> int:
        """Wait for its end; the exit code. Nothing is shown: the terminal shows it."""
        try:
            code = await asyncio.shield(self._waiting)
        except TerminalFailed:
            code = UNKNOWN
        await self._release()
        return code

    async def stop(self) -> None:
        """End it: by the editor, and where that does not help, ourselves. Takes about a second at most."""
        if not self._released:
            for end in (self._kill, self._terminate, self._terminate):
                if self._waiting.done():
                    break
                await end()
                await asyncio.wait({self._waiting}, timeout=GRACE_SECONDS)
            with contextlib.suppress(TerminalFailed):
                await end_task(self._waiting)
            await self._release()

    async def _kill(self) -> None:
        with contextlib.suppress(TerminalFailed, TimeoutError):
            async with asyncio.timeout(GRACE_SECONDS):
                await self._terminals.kill(self._terminal)

    async def _terminate(self) -> None:
        with contextlib.suppress(OSError):
            if not self._pid:
                return
            os.kill(self._pid, signal.SIGTERM)
            await asyncio.sleep(POLL_SECONDS)
            os.kill(self._pid, signal.SIGKILL)

    async def _release(self) -> None:
        if self._released:
            return
        self._released = True
        with contextlib.suppress(TerminalFailed, TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                self.output.add((await self._terminals.output(self._terminal)).encode())
                await self._terminals.release(self._terminal)


async def start_in_terminal(
    terminals: Terminals,
    call_id: str,
    argv: list[str],
    *,
    cwd: Path,
    env: dict[str, str],
    stdin: str | None,
    terminal: bool,
) -> TerminalCommand | None:
    """Start `argv` in a terminal of the editor; None where that cannot be: then nothing of it was run.

    The editor is given no command of a model, but our launcher: it takes the command from a file that only we can
    read, and becomes it, in its sandbox where it has one. An editor on another machine finds neither, and runs
    nothing. Raises OSError.
    """
    if sys.platform == "win32":
        return None
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="daiku-run-"))
    try:
        told = {
            "argv": with_parent(argv, PARENT),
            "parent": PARENT,
            "cwd": str(cwd),
            "env": env,
            "stdin": stdin is not None,
            "terminal": terminal and stdin is None,
        }
        if stdin is not None:
            (folder / "stdin").write_text(stdin, encoding="utf-8")
        (folder / "command.json").write_text(json.dumps(told), encoding="utf-8")
        return await _started(terminals, call_id, folder, cwd)
    finally:
        # What it reads from is open by then, and a name is not needed any more.
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _started(terminals: Terminals, call_id: str, folder: Path, cwd: Path) -> TerminalCommand | None:
    launch = [sys.executable, "-I", "-S", str(LAUNCHER), str(folder)]
    try:
        name = await terminals.create(call_id, launch, cwd)
    except TerminalFailed:
        return None
    waiting = asyncio.ensure_future(terminals.wait(name))
    try:
        runs = await _taken(folder, waiting)
    except BaseException:
        if _take_back(folder):
            await _let_go(terminals, name, waiting)
        else:
            await TerminalCommand(terminals, name, _pid(folder), waiting).stop()
        raise
    if not runs:
        await _let_go(terminals, name, waiting)
        return None
    return TerminalCommand(terminals, name, _pid(folder), waiting)


async def _taken(folder: Path, waiting: asyncio.Task[int]) -> bool:
    """Wait until the launcher has become the command; False where it never will."""
    for _ in range(2):  # once more where it has just taken the command
        until = time.monotonic() + START_SECONDS
        while not waiting.done() and not _pid(folder) and time.monotonic() < until:
            await asyncio.wait({waiting}, timeout=POLL_SECONDS)
        if _pid(folder) or waiting.done():
            break
        if _take_back(folder):
            return False
    return not _take_back(folder)


async def _let_go(terminals: Terminals, name: str, waiting: asyncio.Task[int]) -> None:
    with contextlib.suppress(TerminalFailed):
        await end_task(waiting)
    with contextlib.suppress(TerminalFailed):
        await terminals.release(name)


def _pid(folder: Path) -> int:
    """The process that the launcher is; 0 where it has not said so."""
    try:
        return int((folder / "pid").read_text("ascii") or "0")
    except (OSError, ValueError):
        return 0


def _take_back(folder: Path) -> bool:
    """Whether the command could be taken back: the launcher did not take it, and never will."""
    try:
        (folder / "command.json").rename(folder / "back.json")
    except OSError:
        return False
    return True
