"""The Apps of a Runner, one for each event loop that it is used on; their stores are shared."""

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
from daiku.library.opening import Opening, names_a_model, said, uses_builtin_tools
from daiku.run.runs import Runs
from daiku.team.agent import Agent
from daiku.tools.threads import LoopThread

Place: TypeAlias = tuple[asyncio.AbstractEventLoop | None, bool, bool]
"""The loop on which an App works, whether it has the keys of providers, and whether the tools of Daiku itself."""
CLOSED = "This Runner is closed; make another one, or use it inside its `async with`."
FORKED = "This Runner was made before the process was forked; make one in each process."
CLOSED_BY_TOOL = "A tool cannot close the Runner that it works for; close it when the run has ended."


@dataclass(slots=True)
class Apps:
    """Connections belong to the loop that they were opened on: each loop has an App of its own."""

    opening: Opening
    closed: bool = False
    _apps: dict[Place, App] = field(default_factory=dict["Place", App])
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])
    _threads: list[LoopThread] = field(default_factory=list["LoopThread"])
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _process: int = field(default_factory=os.getpid)

    def check_open(self) -> None:
        """Raise RuntimeError if it is closed, or was made before this process was forked."""
        if self.closed:
            raise RuntimeError(CLOSED)
        if self._process != os.getpid():
            raise RuntimeError(FORKED)

    def app(self, agent: Agent | None) -> App:
        """Return the App of this loop. It has providers' keys if `agent` may name a model by text."""
        self.check_open()
        named = agent is None or names_a_model(self.opening.model, agent, self.opening.router)
        builtin = agent is None or self.opening.router is not None or uses_builtin_tools(agent)
        key = asyncio.get_running_loop(), named, builtin
        if key not in self._apps:
            self._apps[key] = self.opening.build(named=named, builtin=builtin)
        return self._apps[key]

    def thread(self) -> LoopThread:
        """Return a loop for callers that wait; a tool that waits gets another one than the loop that it blocks."""
        here = _running_loop()
        with self._lock:
            for each in self._threads:
                if each.loop is not here and not each.stands_still:
                    return each
            if not self._threads:
                # Code that waits need not close: nothing may be left open at its end, or complain.
                atexit.register(self.close)
            self._threads.append(LoopThread())
            return self._threads[-1]

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Keep a task until it is done: nobody else may hold it."""
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for it hears of it; nobody has to

    def do(self, name: str, run: str, act: Callable[[Runs], object]) -> None:
        """Call `act` on the loop where the run is active. Raises ValueError if it fails."""
        self.check_open()
        loop, app = self._of(run)
        try:
            if loop is None:
                act(app.runs)
            else:
                asyncio.run_coroutine_threadsafe(_there(act, app.runs), loop).result()
        except UsageError as wrong:
            raise ValueError(f"Runner.{name}: {said(wrong)}") from None

    def _of(self, run: str) -> tuple[asyncio.AbstractEventLoop | None, App]:
        """Return the App in which a run is active, and its loop if it is another one; else any App."""
        here = _running_loop()
        for (loop, *_), app in self._apps.items():
            if app.runs.is_live(run):
                return (None if loop is here else loop), app
        if not self._apps:
            self._apps[here, False, True] = self.opening.build(named=False, builtin=True)
        return None, next(iter(self._apps.values()))

    # -- the end --------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Cancel active runs, and close connections and files; safe to call twice."""
        here, current = asyncio.get_running_loop(), asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.get_loop().call_soon_threadsafe(task.cancel)
        if own := [task for task in tasks if task.get_loop() is here]:
            await asyncio.wait(own)
        if self.closed:
            return
        self.closed = True
        atexit.unregister(self.close)
        apps, self._apps = self._apps, {}
        for (loop, *_), app in apps.items():
            if loop is None or loop is here:
                await app.aclose()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(app.aclose(), loop))
        self.opening.close()
        for thread in self._threads:
            if thread.loop is not here:
                thread.close()

    def close(self) -> None:
        """`aclose` for synchronous code. Raises RuntimeError in a tool on one of its loops, which would block itself."""
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


async def _there(act: Callable[[Runs], object], runs: Runs) -> None:
    act(runs)


def at_once(work: Coroutine[Any, Any, object]) -> None:
    """Run a coroutine until it first waits, as for a guardrail; then it continues as a task. Raises what it raises."""
    try:
        waits_for = work.send(None)
    except StopIteration:
        return
    task = asyncio.ensure_future(_Rest(work, waits_for))
    _GOING_ON.add(task)
    task.add_done_callback(_done)


_GOING_ON: set[asyncio.Future[object]] = set()
"""What goes on by itself: nobody else holds it."""


def _done(task: asyncio.Future[object]) -> None:
    _GOING_ON.discard(task)
    if not task.cancelled():
        task.exception()  # the run tells of it


@dataclass(frozen=True, slots=True)
class _Rest:
    """The rest of a coroutine that was begun outside a task and waits for something."""

    work: Coroutine[Any, Any, object]
    waits_for: object

    def __await__(self) -> Generator[Any, Any, object]:
        yield self.waits_for
        return (yield from self.work.__await__())
