"""One running command: its own session, one stream of output, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol, TypeVar

from daiku.tools.shell.output import LiveOutput, TruncatedOutput

READ = 65_536
PIECE_SECONDS = 0.04
STREAMED = 200_000
"""Characters of output that are shown live; the result has both ends of all of it."""
WHOLE_BYTES = 5_000_000
"""Of each end of an output; the whole of what is shorter can be read and searched afterwards."""
GRACE_SECONDS = 0.5
S = TypeVar("S")
_REAPED = (sys.executable, "-I", "-S", str(Path(__file__).with_name("reaper.py")))


def reaper_argv(argv: list[str]) -> list[str]:
    """`argv` under a small parent that ends all of its descendants, also when this server dies."""
    return [*_REAPED, str(os.getpid()), *argv]


def with_parent(argv: list[str], parent: str) -> list[str]:
    """What `reaper_argv` made, for another parent than this server; any other argv as it is."""
    at = len(_REAPED)
    return [*_REAPED, parent, *argv[at + 1 :]] if tuple(argv[:at]) == _REAPED else argv


class Command(Protocol):
    """A started command, wherever it runs. `output` has both ends of what it printed."""

    @property
    def output(self) -> TruncatedOutput: ...

    @property
    def started(self) -> float:
        """When it was started, on the monotonic clock."""
        ...

    async def finish(self, show: Callable[[str], None]) -> int:
        """Wait for its end; the exit code."""
        ...

    async def stop(self) -> None:
        """End it and all that it started; does nothing when it has ended."""
        ...


class Process:
    """A started command. `output` has both ends of what it printed."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        close: Callable[[], None],
        reaped: bool,
    ) -> None:
        self.output = TruncatedOutput(WHOLE_BYTES)
        self.started = time.monotonic()
        self._process = process
        self._reader = reader
        self._close = close
        self._reaped = reaped

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; 128 + N when signal N ended it."""
        code = self._process.returncode
        return code if code is None or code >= 0 else 128 - code

    async def finish(self, show: Callable[[str], None], *, limit: bool = True) -> int:
        """Read to the end, calling `show` with pieces of plain text at most every 40 ms (`limit`: no more
        than is worth watching); the exit code. What it started and still holds its output is not waited for."""
        pump = asyncio.ensure_future(self._pump(show, STREAMED if limit else sys.maxsize))
        try:
            await self._process.wait()
            await asyncio.wait({pump}, timeout=1.0)
        finally:
            await end_task(pump)
            self._close()
        return self.exit_code or 0

    async def stop(self) -> None:
        """End it and all that it started; does nothing when it has ended. Takes under a second."""
        if self._process.returncode is None and self._reaped:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await self._process.wait()
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await self._process.wait()
        self._close()

    async def _pump(self, show: Callable[[str], None], limit: int) -> None:
        live = LiveOutput()
        shown = 0
        pending = ""
        at = 0.0
        ended = False
        while not ended:
            data = await self._read(None if not pending else max(0.0, at + PIECE_SECONDS - time.monotonic()))
            if data is not None:
                self.output.add(data)
                ended = not data
                if shown <= limit:
                    pending += live.feed(data, final=ended)
            due = data is None or ended or time.monotonic() >= at + PIECE_SECONDS
            if pending and due:
                shown += len(pending)
                show(
                    pending
                    if shown <= limit
                    else pending[:READ] + "\n[… more output follows; the end is in the result …]\n"
                )
                pending = ""
                at = time.monotonic()

    async def _read(self, seconds: float | None) -> bytes | None:
        """Bytes, b"" at the end, None when nothing came in time."""
        try:
            async with asyncio.timeout(seconds):
                return await self._reader.read(READ)
        except TimeoutError:
            return None


async def start(
    argv: list[str], *, cwd: Path, env: dict[str, str], stdin: str | None, terminal: bool, reaped: bool
) -> Process:
    """Start `argv` in its own session, stdout and stderr as one stream. Without `stdin` it reads the end
    of file at once; with `terminal` it believes to talk to one. Raises OSError."""
    starting = _in_terminal if terminal else _with_pipes
    return await started(starting(argv, cwd, env, stdin, reaped), Process.stop)


async def started(starting: Coroutine[Any, Any, S], stop: Callable[[S], Awaitable[None]]) -> S:
    """What `starting` starts. When the caller is cancelled meanwhile, it is stopped as soon as it is there: asyncio
    would kill the one process that it knows, and wait for what that has started, which goes on. Raises OSError."""
    task = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.shield(_stop_started(task, stop))
        raise


async def _stop_started(starting: asyncio.Future[S], stop: Callable[[S], Awaitable[None]]) -> None:
    await asyncio.wait({starting})
    if not starting.cancelled() and starting.exception() is None:
        await stop(starting.result())


async def end_task(task: asyncio.Future[Any]) -> None:
    """Cancel `task` and wait for its end. Raises what it raises; not its cancellation, but the caller's own, which
    could not be told from it by `await task`."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


async def _with_pipes(
    argv: list[str], cwd: Path, env: dict[str, str], stdin: str | None, reaped: bool
) -> Process:
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    if process.stdin is not None and stdin is not None:
        process.stdin.write(stdin.encode())
        process.stdin.close()
    return Process(process, process.stdout, _nothing, reaped)


def _nothing() -> None:
    return None


class _TerminalOutput(asyncio.StreamReaderProtocol):
    """A terminal ends with an error when its other side is gone: that is the end, behind all that was written."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None if isinstance(exc, OSError) else exc)


async def _in_terminal(
    argv: list[str], cwd: Path, env: dict[str, str], stdin: str | None, reaped: bool
) -> Process:
    ours, theirs = os.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=cwd,
            env={**env, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    os.write(ours, ((stdin or "") + "\x04").encode())
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: _TerminalOutput(reader), os.fdopen(ours, "rb", 0)
    )
    return Process(process, reader, transport.close, reaped)
