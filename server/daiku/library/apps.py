"""The Apps of a Runner, one per event loop; their stores are shared."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeAlias

from daiku.app import App
from daiku.dataclass import dataclass, field
from daiku.domain.errors import UsageError
from daiku.library.opening import RunnerParts, format_error, names_a_model, uses_builtin_tools
from daiku.run.runs import Runs
from daiku.team.agent import Agent
from daiku.tools.threads import LoopThread

Place: TypeAlias = tuple[asyncio.AbstractEventLoop | None, bool, bool]
"""Key of an App: its event loop, whether it has providers' keys, and whether it has built-in tools."""
CLOSED = "This Runner is closed; make another one, or use it inside its `async with`."
FORKED = "This Runner was made before the process was forked; make one in each process."
CLOSED_BY_TOOL = "A tool cannot close the Runner that it works for; close it when the run has ended."


@dataclass(slots=True)
class Apps:
    """The Apps of a Runner, one per event loop, because connections belong to the loop that opened them."""

    parts: RunnerParts
    closed: bool = False
    _apps: dict[Place, App] = field(default_factory=dict["Place", App])
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _threads: list[LoopThread] = field(default_factory=list["LoopThread"])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _process: int = field(default_factory=os.getpid)

    def check_open(self) -> None:
        """Raise RuntimeError if it is closed, or was created before this process was forked."""
        if self.closed:
            raise RuntimeError(CLOSED)
        if self._process != os.getpid():
            raise RuntimeError(FORKED)

    def app(self, agent: Agent | None) -> App:
        """Return the App of this loop. It has providers' keys if `agent` may name a model by text."""
        self.check_open()
        with_keys = agent is None or names_a_model(self.parts.model, agent, self.parts.router)
        builtin = agent is None or self.parts.router is not None or uses_builtin_tools(agent)
        key = asyncio.get_running_loop(), with_keys, builtin
        if key not in self._apps:
            self._apps[key] = self.parts.build(with_keys=with_keys, builtin=builtin)
        return self._apps[key]

    def thread(self) -> LoopThread:
        """Return an event loop thread for synchronous callers; a waiting tool never gets the loop it blocks."""
        current_loop = _running_loop()
        with self._lock:
            for thread in self._threads:
                if thread.loop is not current_loop and not thread.is_blocked:
                    return thread
            if not self._threads:
                # Synchronous programs need not call `close`.
                atexit.register(self.close)
            self._threads.append(LoopThread())
            return self._threads[-1]

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Hold a reference to a task until it is done."""
        self._tasks.add(task)
        task.add_done_callback(self._discard_task)

    def _discard_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it

    def do(self, name: str, run: str, act: Callable[[Runs], object]) -> None:
        """Call `act` on the loop where the run is active. Raises ValueError if it fails."""
        self.check_open()
        loop, app = self._find_app(run)
        try:
            if loop is None:
                act(app.runs)
            else:
                asyncio.run_coroutine_threadsafe(_call(act, app.runs), loop).result()
        except UsageError as error:
            raise ValueError(f"Runner.{name}: {format_error(error)}") from None

    def _find_app(self, run: str) -> tuple[asyncio.AbstractEventLoop | None, App]:
        """Return the App in which a run is active, with its loop if that is not the current one; else any App."""
        current_loop = _running_loop()
        for (loop, *_), app in self._apps.items():
            if app.runs.is_live(run):
                return (None if loop is current_loop else loop), app
        if not self._apps:
            self._apps[current_loop, False, True] = self.parts.build(with_keys=False, builtin=True)
        return None, next(iter(self._apps.values()))

    # -- close ----------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Cancel active runs, and close connections and files; safe to call twice."""
        current_loop, current_task = asyncio.get_running_loop(), asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current_task]
        for task in tasks:
            task.get_loop().call_soon_threadsafe(task.cancel)
        if tasks_here := [task for task in tasks if task.get_loop() is current_loop]:
            await asyncio.wait(tasks_here)
        if self.closed:
            return
        self.closed = True
        atexit.unregister(self.close)
        apps, self._apps = self._apps, {}
        for (loop, *_), app in apps.items():
            if loop is None or loop is current_loop:
                await app.aclose()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(app.aclose(), loop))
        self.parts.close()
        for thread in self._threads:
            if thread.loop is not current_loop:
                thread.close()

    def close(self) -> None:
        """Close from synchronous code.

        Raises RuntimeError in a tool on one of its loops, which would block itself.
        """
        if any(thread.loop is _running_loop() for thread in self._threads):
            raise RuntimeError(CLOSED_BY_TOOL)
        if not self.closed and self._process == os.getpid():
            thread = self.thread()
            thread.wait(self.aclose())
            thread.close()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


async def _call(act: Callable[[Runs], object], runs: Runs) -> None:
    act(runs)


def run_until_blocked(work: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine until it first waits, for example for a guardrail; then continue it as a task.

    Raises what the coroutine raises before it waits.
    """
    try:
        waits_for = work.send(None)
    except StopIteration:
        return
    task = asyncio.ensure_future(_Continuation(work, waits_for))
    _CONTINUATIONS.add(task)
    task.add_done_callback(_discard_continuation)


_CONTINUATIONS: set[asyncio.Future[object]] = set()
"""Continuations that run as tasks, referenced until they are done."""


def _discard_continuation(task: asyncio.Future[object]) -> None:
    _CONTINUATIONS.discard(task)
    if not task.cancelled():
        task.exception()  # retrieved; the run reports it


@dataclass(frozen=True, slots=True)
class _Continuation:
    """The remainder of a coroutine that was started outside a task."""

    work: Coroutine[Any, Any, object]
    waits_for: object

    def __await__(self) -> Generator[Any, Any, object]:
        yield self.waits_for
        return (yield from self.work.__await__())
