"""A child process that exchanges lines over stdin and stdout; it ends with its descendants."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from daiku.tools.shell.process import GRACE_SECONDS, end_task, shield_start, wrap_in_reaper

LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one line from the child. A longer line is an error."""
STDERR_LINE = 2000
"""Characters of a stderr line that are passed on."""
CLOSE_SECONDS = 1.5
"""Seconds that the child may take to end after its stdin is closed."""


class LineTooLong(Exception):  # its only caller catches it
    """The child wrote more than LINE_LIMIT bytes without a line break."""


class PipedChild:
    """A started child process. `line` and `send` raise OSError if the pipe is broken."""

    def __init__(self, process: asyncio.subprocess.Process, on_stderr: Callable[[str], None]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._listening = asyncio.create_task(_forward_stderr(process.stderr, on_stderr))

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while it runs, 128 + N after signal N."""
        code = self._process.returncode
        return code if code is None or code >= 0 else 128 - code

    async def line(self) -> bytes:
        """Read the next line with its line break; b"" at the end. Raises LineTooLong."""
        try:
            return await self._stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError as rest:
            return bytes(rest.partial)
        except asyncio.LimitOverrunError:
            raise LineTooLong from None

    async def send(self, data: bytes) -> None:
        """Write `data` and wait until the pipe accepts it."""
        self._stdin.write(data)
        await self._stdin.drain()

    async def stop(self) -> None:
        """Close stdin, wait, then kill the child and its descendants. Never raises; takes at most about 3 s."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        if not await self.wait_ended(CLOSE_SECONDS):
            # The reaper kills all descendants, also outside the group.
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            if not await self.wait_ended(GRACE_SECONDS):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                await self.wait_ended(GRACE_SECONDS)
        await end_task(self._listening)
        _close_transport(self._process)

    async def wait_ended(self, seconds: float) -> bool:
        """Wait at most `seconds` for the end. Returns True if the child has ended."""
        # Process.wait() would also wait for the pipes, which nobody may read any more.
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._process.returncode is None and loop.time() < deadline:  # noqa: ASYNC110  # there is no event
            await asyncio.sleep(0.01)
        return self._process.returncode is not None


def _close_transport(process: asyncio.subprocess.Process) -> None:
    """Close the pipes now: a process that escaped may still hold the other ends."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with contextlib.suppress(OSError):
            transport.close()


async def _forward_stderr(stderr: asyncio.StreamReader, on_stderr: Callable[[str], None]) -> None:
    """Pass each line of stderr to `on_stderr`, cut to STDERR_LINE."""
    partial_line = b""
    while data := await stderr.read(65_536):
        *lines, partial_line = (partial_line + data).split(b"\n")
        for line in lines:
            on_stderr(line[:STDERR_LINE].decode("utf-8", "replace").rstrip())
        partial_line = partial_line[:STDERR_LINE]
    if partial_line:
        on_stderr(partial_line.decode("utf-8", "replace").rstrip())


async def start_piped(
    argv: list[str], *, cwd: Path, env: dict[str, str], on_stderr: Callable[[str], None]
) -> PipedChild:
    """Start `argv` in its own session under the reaper. Raises OSError.

    The child and its descendants are killed when this process dies. `on_stderr` gets each line of stderr.
    """
    return await shield_start(_start(argv, cwd, env, on_stderr), PipedChild.stop)


async def _start(
    argv: list[str], cwd: Path, env: dict[str, str], on_stderr: Callable[[str], None]
) -> PipedChild:
    process = await asyncio.create_subprocess_exec(
        *(wrap_in_reaper(argv) if os.name == "posix" else argv),
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        limit=LINE_LIMIT,
    )
    return PipedChild(process, on_stderr)
