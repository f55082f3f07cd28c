"""Threads for people's synchronous functions: a bounded number, and one that never ends is let go; event loops on threads."""

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

MOST_THREADS = 32
"""Calls that run side by side; further ones wait for their turn."""
IDLE_SECONDS = 10.0
"""A thread that has had nothing to do for so long ends."""


class CalledExit(Exception):
    """The function ended its thread (`sys.exit`, or a base exception of its own) in place of returning."""


@dataclass(eq=False, slots=True)
class _Job(Generic[T]):
    """One call: what to run, and the loop and future that wait for its result."""

    work: Callable[[], T]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[T]
    running: bool = False
    given_up: bool = False

    def tell(self, result: T | None, error: BaseException | None) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
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

    Not asyncio.to_thread: its threads are shared with name lookups and file access, and the interpreter
    waits for them at its end, so that one function without an end would hold up both."""

    most: int = MOST_THREADS
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _jobs: deque[_Job[Any]] = field(default_factory=deque["_Job[Any]"])
    _busy: int = 0
    _idle: int = 0

    async def run(self, function: Callable[[], T]) -> T:
        """The function's result, under the caller's context variables. When the caller is cancelled, a call that
        has not begun never does; the thread of one that has is let go: its result is dropped and another thread
        takes its place. Raises what the function raises, CalledExit for what would end the thread."""
        loop = asyncio.get_running_loop()
        context = contextvars.copy_context()
        job = _Job(lambda: context.run(function), loop, loop.create_future())
        self._put(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            self._give_up(job)
            raise

    def _put(self, job: _Job[Any]) -> None:
        with self._changed:
            self._jobs.append(job)
            if self._idle >= len(self._jobs):
                self._changed.notify()
            elif self._busy + self._idle < self.most:
                self._busy += 1
                threading.Thread(target=self._work, name="daiku tool", daemon=True).start()

    def _give_up(self, job: _Job[Any]) -> None:
        with self._changed:
            job.given_up = True
            if not job.running:
                if job in self._jobs:
                    self._jobs.remove(job)
                return
            if self._jobs:  # its place goes to a new thread
                threading.Thread(target=self._work, name="daiku tool", daemon=True).start()
            else:
                self._busy -= 1

    def _work(self) -> None:
        """A thread's life; it is counted as busy when it starts."""
        while (job := self._next()) is not None:
            result, error = None, None
            try:
                result = job.work()
            except Exception as raised:  # noqa: BLE001  # handed to the caller, who is one of the three places
                error = RuntimeError("StopIteration") if isinstance(raised, StopIteration) else raised
            except BaseException as raised:  # noqa: BLE001  # likewise: it must not end the caller's loop
                error = CalledExit(type(raised).__name__)
            with self._changed:
                job.running = False
                if job.given_up:
                    return  # its place was given away
            job.tell(result, error)
            del job, result, error

    def _next(self) -> _Job[Any] | None:
        with self._changed:
            if not self._jobs:
                self._busy, self._idle = self._busy - 1, self._idle + 1
                found = self._changed.wait_for(lambda: bool(self._jobs), IDLE_SECONDS)
                self._idle -= 1
                if not found:
                    return None
                self._busy += 1
            job = self._jobs.popleft()
            job.running = True
            return job


TOOL_THREADS = Threads()
"""The threads of every tool that is a synchronous function, whichever run calls it."""


class LoopThread:
    """An event loop on a thread of its own, for callers that wait: they may have a loop themselves."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.stands_still = False
        """Something that runs on this loop waits, for a run on another thread: until then nothing else happens here."""
        self._thread = threading.Thread(target=self._run, name="daiku", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _HERE.thread = self
        ended = False
        while not ended:
            with suppress(
                KeyboardInterrupt, SystemExit
            ):  # of a task: whoever waits for it is told by its future
                self.loop.run_forever()
                ended = True

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`, once it is done there; interrupted, it is cancelled."""
        here: LoopThread | None = getattr(_HERE, "thread", None)
        if here is not None:
            # Before the work begins: what that waits for must not be given to this loop.
            here.stands_still = True
        future = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            if here is not None:
                here.stands_still = False

    def close(self) -> None:
        """End the thread; what is under way there ends with it."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


_HERE = threading.local()
"""`thread`: the LoopThread that this code runs on."""
