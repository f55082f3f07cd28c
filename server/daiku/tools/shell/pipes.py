"""A child that is talked to line by line over its stdin and stdout, owned with all that it starts."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

from daiku.tools.shell.process import GRACE_SECONDS, end_task, reaper_argv, started

LINE_LIMIT = 16 * 1024 * 1024
"""Bytes of one line from the child; more is taken for a flood."""
STDERR_LINE = 2000
CLOSE_SECONDS = 1.5
"""How long the child may take to end by itself once its stdin is closed."""


class LineTooLong(Exception):  # caught by the one caller that reads lines
    """The child wrote more than LINE_LIMIT bytes without a line end."""


class PipedChild:
    """A started child. `line` and `send` raise OSError where its pipe is broken."""

    def __init__(self, process: asyncio.subprocess.Process, said: Callable[[str], None]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._listening = asyncio.create_task(_listen(process.stderr, said))

    @property
    def exit_code(self) -> int | None:
        """None while it runs; 128 + N when signal N ended it."""
        code = self._process.returncode
        return code if code is None or code >= 0 else 128 - code

    async def line(self) -> bytes:
        """The next line, its end included; b"" at the end. Raises LineTooLong."""
        try:
            return await self._stdout.readuntil(b"\n")
        except asyncio.IncompleteReadError as rest:
            return bytes(rest.partial)
        except asyncio.LimitOverrunError:
            raise LineTooLong from None

    async def send(self, data: bytes) -> None:
        """Write `data` and wait until the pipe has taken it."""
        self._stdin.write(data)
        await self._stdin.drain()

    async def stop(self) -> None:
        """Close its stdin, wait a little, then end it and all that it started. Never raises; takes at
        most some three seconds."""
        with contextlib.suppress(OSError):
            self._stdin.close()
        if not await self.ended(CLOSE_SECONDS):
            with contextlib.suppress(
                ProcessLookupError
            ):  # the reaper ends the whole tree, also what left the group
                self._process.send_signal(signal.SIGTERM)
            if not await self.ended(GRACE_SECONDS):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                await self.ended(GRACE_SECONDS)
        await end_task(self._listening)
        _close_transport(self._process)

    async def ended(self, seconds: float) -> bool:
        """Wait at most `seconds` for its end; whether it has ended."""
        # Not Process.wait(): it also waits for the end of pipes that nobody may be reading any more.
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while self._process.returncode is None and loop.time() < until:  # noqa: ASYNC110  # there is no event
            await asyncio.sleep(0.01)
        return self._process.returncode is not None


def _close_transport(process: asyncio.subprocess.Process) -> None:
    """Let go of the pipes now, not at collection: something that escaped may still hold their other ends."""
    transport = getattr(process, "_transport", None)
    if transport is not None:
        with contextlib.suppress(OSError):
            transport.close()


async def _listen(stderr: asyncio.StreamReader, said: Callable[[str], None]) -> None:
    """Hand on what the child says on stderr, line by line, long lines cut."""
    rest = b""
    while data := await stderr.read(65_536):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            said(line[:STDERR_LINE].decode("utf-8", "replace").rstrip())
        rest = rest[:STDERR_LINE]
    if rest:
        said(rest.decode("utf-8", "replace").rstrip())


async def start_piped(
    argv: list[str], *, cwd: Path, env: dict[str, str], said: Callable[[str], None]
) -> PipedChild:
    """Start `argv` in a session of its own under the reaper: when this process dies, however it dies, the
    child and its descendants are ended. `said` gets each line of its stderr. Raises OSError."""
    return await started(_start(argv, cwd, env, said), PipedChild.stop)


async def _start(argv: list[str], cwd: Path, env: dict[str, str], said: Callable[[str], None]) -> PipedChild:
    process = await asyncio.create_subprocess_exec(
        *(reaper_argv(argv) if os.name == "posix" else argv),
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        limit=LINE_LIMIT,
    )
    return PipedChild(process, said)
