"""Run a command in a terminal of the connected editor, under Daiku's sandbox."""

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
from daiku.tools.shell.process import GRACE_SECONDS, MAX_END_BYTES, TruncatedOutput, end_task, replace_parent

START_SECONDS = 10.0
"""Seconds that an editor may take to start a command. After that, the server runs it."""
POLL_SECONDS = 0.02
"""Seconds between two checks of the launcher."""
LAUNCHER = Path(__file__).with_name("launcher.py")
PARENT = "PARENT"
"""Placeholder in the argv for the process id of the launcher's parent."""
UNKNOWN_EXIT = 1
"""Exit code of a command whose exit code the editor did not report."""


class TerminalCommand:
    """A command that runs in `terminal`; created by `start_in_terminal`."""

    def __init__(self, terminals: Terminals, terminal: str, pid: int, waiting: asyncio.Task[int]) -> None:
        self.output = TruncatedOutput(MAX_END_BYTES)
        self.started = time.monotonic()
        self._terminals = terminals
        self._terminal = terminal
        self._pid = pid
        self._waiting = waiting
        self._released = False

    async def finish(self, show: Callable[[str], None]) -> int:
        """Wait for the end and return the exit code. The terminal shows the output, so `show` is not called."""
        try:
            code = await asyncio.shield(self._waiting)
        except TerminalFailed:
            code = UNKNOWN_EXIT
        await self._release()
        return code

    async def stop(self) -> None:
        """Kill the command by the editor, or by signal if that fails. Takes at most about 1 s."""
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
    """Start `argv` in a terminal of the editor; None if that is impossible, then nothing was run.

    The editor runs only our launcher, not a model's command. The launcher reads the command from a private
    file and becomes it, in its sandbox if it has one. An editor on another machine finds neither file, and
    runs nothing. Raises OSError.
    """
    if sys.platform == "win32":
        return None
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="daiku-run-"))
    try:
        command = {
            "argv": replace_parent(argv, PARENT),
            "parent": PARENT,
            "cwd": str(cwd),
            "env": env,
            "stdin": stdin is not None,
            "terminal": terminal and stdin is None,
        }
        if stdin is not None:
            (folder / "stdin").write_text(stdin, encoding="utf-8")
        (folder / "command.json").write_text(json.dumps(command), encoding="utf-8")
        return await _launch(terminals, call_id, folder, cwd)
    finally:
        # The launcher has opened its files by now, so their names are not needed.
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


async def _launch(terminals: Terminals, call_id: str, folder: Path, cwd: Path) -> TerminalCommand | None:
    launch = [sys.executable, "-I", "-S", str(LAUNCHER), str(folder)]
    try:
        name = await terminals.create(call_id, launch, cwd)
    except TerminalFailed:
        return None
    waiting = asyncio.ensure_future(terminals.wait(name))
    try:
        is_running = await _wait_for_launch(folder, waiting)
    except BaseException:
        if _withdraw(folder):
            await _release_terminal(terminals, name, waiting)
        else:
            await TerminalCommand(terminals, name, _read_pid(folder), waiting).stop()
        raise
    if not is_running:
        await _release_terminal(terminals, name, waiting)
        return None
    return TerminalCommand(terminals, name, _read_pid(folder), waiting)


async def _wait_for_launch(folder: Path, waiting: asyncio.Task[int]) -> bool:
    """Wait until the launcher has become the command. Returns False if it never will."""
    for _ in range(2):  # again if it has just claimed the command
        deadline = time.monotonic() + START_SECONDS
        while not waiting.done() and not _read_pid(folder) and time.monotonic() < deadline:
            await asyncio.wait({waiting}, timeout=POLL_SECONDS)
        if _read_pid(folder) or waiting.done():
            break
        if _withdraw(folder):
            return False
    return not _withdraw(folder)


async def _release_terminal(terminals: Terminals, name: str, waiting: asyncio.Task[int]) -> None:
    with contextlib.suppress(TerminalFailed):
        await end_task(waiting)
    with contextlib.suppress(TerminalFailed):
        await terminals.release(name)


def _read_pid(folder: Path) -> int:
    """Return the process id of the launcher; 0 if it has not written it."""
    try:
        return int((folder / "pid").read_text("ascii") or "0")
    except (OSError, ValueError):
        return 0


def _withdraw(folder: Path) -> bool:
    """Withdraw the command. Returns False if the launcher has claimed it already."""
    try:
        (folder / "command.json").rename(folder / "back.json")
    except OSError:
        return False
    return True
