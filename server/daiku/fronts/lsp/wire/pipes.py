"""The protocol's own pipes: stdin without a thread, stdout that never makes the loop wait."""

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


class Sink(Protocol):
    """Where bytes go. `write` returns how many it took, without waiting; fewer means: `call` me back later."""

    def write(self, data: memoryview) -> int: ...

    def when_ready(self, call: Callable[[], None]) -> None: ...

    def close(self) -> None: ...


class OutputQueue:
    """Collects what one turn of the loop says into one write; keeps what the reader cannot take yet."""

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
        """True while the reader has not taken what was said before."""
        return bool(self._backlog)

    @property
    def pending(self) -> int:
        """Bytes that the reader has not taken."""
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
        """Give the sink what there is."""
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
                taken = self._sink.write(head)
                if taken < len(head):
                    self._backlog[0] = head[taken:]
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
        """Close the sink and drop what is not written yet."""
        self.closed = True
        self._backlog.clear()
        self._fresh.clear()
        self._empty.set()
        self._sink.close()

    def _resume(self) -> None:
        self._waiting = False
        self.flush()


class FdSink:
    """A pipe or socket that the loop can watch (not on Windows)."""

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
        def ready() -> None:
            self._loop.remove_writer(self._fd)
            call()

        self._loop.add_writer(self._fd, ready)

    def close(self) -> None:
        self._loop.remove_writer(self._fd)


class ThreadSink:
    """Any other file: a thread writes, one piece at a time."""

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
            self._done()

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
            self._loop.call_soon_threadsafe(self._done)

    def _done(self) -> None:
        self._writing = False
        call, self._ready = self._ready, None
        if call is not None:
            call()


class StreamSink:
    """A TCP connection of asyncio."""

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
    """The fitting sink for a file descriptor."""
    if sys.platform != "win32" and _watchable(fd):
        return FdSink(fd)
    return ThreadSink(fd)


async def read_fd(fd: int, feed: Callable[[bytes], None]) -> None:
    """Hand everything that arrives on `fd` to `feed`, until its end."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    if sys.platform == "win32" or not _watchable(fd):
        _read_in_thread(fd, feed, loop, ended)
        await ended
        return
    os.set_blocking(fd, False)

    def ready() -> None:
        try:
            data = os.read(fd, READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            feed(data)
        elif not ended.done():
            loop.remove_reader(fd)
            ended.set_result(None)

    loop.add_reader(fd, ready)
    try:
        await ended
    finally:
        loop.remove_reader(fd)


def _read_in_thread(
    fd: int, feed: Callable[[bytes], None], loop: asyncio.AbstractEventLoop, ended: asyncio.Future[None]
) -> None:
    def finish() -> None:
        if not ended.done():
            ended.set_result(None)

    def run() -> None:
        try:
            while data := os.read(fd, READ_SIZE):
                loop.call_soon_threadsafe(feed, data)
        except OSError:
            pass
        finally:
            loop.call_soon_threadsafe(finish)

    threading.Thread(target=run, daemon=True, name="daiku-stdin").start()


def _watchable(fd: int) -> bool:
    """Pipes and sockets; a terminal would stay non-blocking for the shell after us."""
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
