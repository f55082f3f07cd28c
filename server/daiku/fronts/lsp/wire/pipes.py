"""Pipes of the protocol: stdin without a thread, stdout that never blocks the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

READ_SIZE = 1024 * 1024
"""Bytes per read."""


class Sink(Protocol):
    """An output for bytes.

    `write` never blocks and returns the number of accepted bytes; if fewer, retry after `when_ready`.
    """

    def write(self, data: memoryview) -> int: ...

    def when_ready(self, call: Callable[[], None]) -> None: ...

    def close(self) -> None: ...


class OutputQueue:
    """Batches the output of one event loop iteration into one write, and buffers for a slow reader."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._fresh: list[bytes] = []
        self._backlog: deque[memoryview] = deque()
        self._waiting = False
        self._scheduled = False
        self._loop = asyncio.get_running_loop()
        self._empty = asyncio.Event()
        self._empty.set()
        self.closed = False

    @property
    def busy(self) -> bool:
        """True while earlier output is still buffered."""
        return bool(self._backlog)

    @property
    def pending(self) -> int:
        """Number of buffered bytes."""
        return sum(map(len, self._backlog))

    def write(self, data: bytes) -> None:
        """Queue `data` after everything written before."""
        if self.closed:
            return
        self._fresh.append(data)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write as much as the sink accepts."""
        self._scheduled = False
        if self._fresh:
            data = self._fresh[0] if len(self._fresh) == 1 else b"".join(self._fresh)
            self._fresh.clear()
            self._backlog.append(memoryview(data))
            self._empty.clear()
        if self._waiting or self.closed:
            return
        try:
            while self._backlog:
                head = self._backlog[0]
                written = self._sink.write(head)
                if written < len(head):
                    self._backlog[0] = head[written:]
                    self._waiting = True
                    self._sink.when_ready(self._resume)
                    return
                self._backlog.popleft()
        except OSError:
            self.close()
        self._empty.set()

    async def wait_drained(self, seconds: float) -> None:
        """Wait until everything queued has been written, at most `seconds`."""
        self.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._empty.wait()

    def close(self) -> None:
        """Close the sink and drop unwritten data."""
        self.closed = True
        self._backlog.clear()
        self._fresh.clear()
        self._empty.set()
        self._sink.close()

    def _resume(self) -> None:
        self._waiting = False
        self.flush()


class FdSink:
    """Sink for a pipe or socket that the event loop can watch (not on Windows)."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._loop = asyncio.get_running_loop()

    def write(self, data: memoryview) -> int:
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0

    def when_ready(self, call: Callable[[], None]) -> None:
        def on_writable() -> None:
            self._loop.remove_writer(self._fd)
            call()

        self._loop.add_writer(self._fd, on_writable)

    def close(self) -> None:
        self._loop.remove_writer(self._fd)


class ThreadSink:
    """Sink for any other file: a thread writes one piece at a time."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._ready: Callable[[], None] | None = None
        self._writing = False

    def write(self, data: memoryview) -> int:
        if self._writing:
            return 0
        self._writing = True
        threading.Thread(target=self._run, args=(bytes(data),), daemon=True).start()
        return len(data)

    def when_ready(self, call: Callable[[], None]) -> None:
        self._ready = call
        if not self._writing:
            self._finish_write()

    def close(self) -> None:
        self._ready = None

    def _run(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:
            return
        finally:
            self._loop.call_soon_threadsafe(self._finish_write)

    def _finish_write(self) -> None:
        self._writing = False
        call, self._ready = self._ready, None
        if call is not None:
            call()


class StreamSink:
    """Sink for an asyncio TCP connection."""

    LIMIT = 256 * 1024

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None

    def write(self, data: memoryview) -> int:
        if self._writer.is_closing():
            raise ConnectionError("the client went away")
        if self._writer.transport.get_write_buffer_size() > self.LIMIT:
            return 0
        self._writer.write(data)
        return len(data)

    def when_ready(self, call: Callable[[], None]) -> None:
        async def wait() -> None:
            try:
                await self._writer.drain()
            finally:
                call()

        self._task = self._loop.create_task(wait())

    def close(self) -> None:
        self._writer.close()


def open_sink(fd: int) -> Sink:
    """Return the sink that fits a file descriptor."""
    if sys.platform != "win32" and _is_watchable(fd):
        return FdSink(fd)
    return ThreadSink(fd)


async def read_fd(fd: int, feed: Callable[[bytes], None]) -> None:
    """Pass everything that arrives on `fd` to `feed`, until its end."""
    loop = asyncio.get_running_loop()
    end: asyncio.Future[None] = loop.create_future()
    if sys.platform == "win32" or not _is_watchable(fd):
        _read_in_thread(fd, feed, loop, end)
        await end
        return
    os.set_blocking(fd, False)

    def on_readable() -> None:
        try:
            data = os.read(fd, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            feed(data)
        elif not end.done():
            loop.remove_reader(fd)
            end.set_result(None)

    loop.add_reader(fd, on_readable)
    try:
        await end
    finally:
        loop.remove_reader(fd)


def _read_in_thread(
    fd: int, feed: Callable[[bytes], None], loop: asyncio.AbstractEventLoop, end: asyncio.Future[None]
) -> None:
    def finish() -> None:
        if not end.done():
            end.set_result(None)

    def run() -> None:
        try:
            while data := os.read(fd, READ_SIZE):
                loop.call_soon_threadsafe(feed, data)
        except OSError:
            pass
        finally:
            loop.call_soon_threadsafe(finish)

    threading.Thread(target=run, daemon=True, name="daiku-stdin").start()


def _is_watchable(fd: int) -> bool:
    """Return True for pipes and sockets. A terminal would stay non-blocking for the shell afterwards."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
