"""Bounded threads for synchronous tool functions, and event loops in threads."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Generic, TypeVar

from daiku.dataclass import dataclass, field

T = TypeVar("T")

MAX_THREADS = 32
"""Calls that run in parallel. Further ones wait."""
IDLE_SECONDS = 10.0
"""Seconds after which an idle thread ends."""


class CalledExit(Exception):
    """The function ended its thread (`sys.exit`, or its own base exception) instead of returning."""


@dataclass(eq=False, slots=True)
class _QueuedCall(Generic[T]):
    """A call: what to run, and the loop and future that wait for its result."""

    work: Callable[[], T]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    is_running: bool = False
    is_abandoned: bool = False

    def report(self, result: T | None, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is waiting
            self.loop.call_soon_threadsafe(self._settle, result, error)

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


@dataclass(slots=True)
class Threads:
    """Runs functions in daemon threads, at most `most` at a time, for any event loop.

    The threads of asyncio.to_thread are shared with name lookups and file access, and the interpreter waits
    for them at exit, so a function that never ends would block both.
    """

    most: int = MAX_THREADS
    _condition: threading.Condition = field(default_factory=threading.Condition)
    _jobs: deque[_QueuedCall[Any]] = field(default_factory=deque["_QueuedCall[Any]"])
    _busy: int = 0
    _idle: int = 0

    async def run(self, function: Callable[[], T]) -> T:
        """Run the function with the caller's context variables and return its result.

        If the caller is cancelled, a waiting call is dropped; a running one is abandoned: its result is
        dropped, and another thread takes its place. Raises what the function raises, and CalledExit for what
        would end the thread.
        """
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        job = _QueuedCall(lambda: context.run(function), loop, loop.create_future())
        self._enqueue(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    def _enqueue(self, job: _QueuedCall[Any]) -> None:
        with self._condition:
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._condition.notify()
            elif self._busy + self._idle < self.most:
                self._busy += 1
                threading.Thread(target=self._work, name="daiku tool", daemon=True).start()

    def _abandon(self, job: _QueuedCall[Any]) -> None:
        with self._condition:
            job.is_abandoned = True
            if not job.is_running:
                if job in self._jobs:
                    self._jobs.remove(job)
                return
            if self._jobs:  # a new thread takes its place
                threading.Thread(target=self._work, name="daiku tool", daemon=True).start()
            else:
                self._busy -= 1

    def _work(self) -> None:
        """Run calls until the thread is idle for too long. It counts as busy when it starts."""
        while (job := self._take_next()) is not None:
            result, error = None, None
            try:
                result = job.work()
            except Exception as raised:  # noqa: BLE001  # passed to the caller, which handles it
                error = RuntimeError("StopIteration") if isinstance(raised, StopIteration) else raised
            except BaseException as raised:  # noqa: BLE001  # likewise; it must not end the caller's loop
                error = CalledExit(type(raised).__name__)
            with self._condition:
                job.is_running = False
                if job.is_abandoned:
                    return  # another thread took its place
            job.report(result, error)
            del job, result, error

    def _take_next(self) -> _QueuedCall[Any] | None:
        with self._condition:
            if not self._jobs:
                self._busy, self._idle = self._busy - 1, self._idle + 1
                has_job = self._condition.wait_for(lambda: bool(self._jobs), IDLE_SECONDS)
                self._idle -= 1
                if not has_job:
                    return None
                self._busy += 1
            job = self._jobs.popleft()
            job.is_running = True
            return job


TOOL_THREADS = Threads()
"""Threads of all tools that are synchronous functions, for all runs."""


class LoopThread:
    """An event loop in its own thread, for callers that block and may have a loop themselves."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.is_blocked = False
        """True while code on this loop blocks for a run in another thread: nothing else runs here."""
        self._thread = threading.Thread(target=self._run, name="daiku", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _CURRENT.thread = self
        is_stopped = False
        while not is_stopped:
            with suppress(KeyboardInterrupt, SystemExit):  # raised by a task: its future reports it
                self.loop.run_forever()
                is_stopped = True

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the loop and return its result. An interruption cancels it."""
        current: LoopThread | None = getattr(_CURRENT, "thread", None)
        if current is not None:
            # Set it before the work begins: nothing that it waits for may be scheduled on this loop.
            current.is_blocked = True
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            if current is not None:
                current.is_blocked = False

    def close(self) -> None:
        """End the thread and everything that runs in its loop."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


_CURRENT = threading.local()
"""`thread`: the LoopThread that this code runs on."""
