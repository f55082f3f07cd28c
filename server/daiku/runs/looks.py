"""One look at what changes, shared by all runs that ask for it at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeAlias

from daiku.dataclass import dataclass, field

Key: TypeAlias = tuple[asyncio.AbstractEventLoop, Hashable]


@dataclass(eq=False, slots=True)
class _Look:
    """A look, and how many wait for it."""

    task: asyncio.Task[str]
    askers: int = 0


@dataclass(eq=False, slots=True)
class Looks:
    """Of each thing one look at a time. Who asks while one is under way shares the next with all who ask meanwhile:
    the one under way may have begun before the change that they have to see."""

    _under_way: dict[Key, asyncio.Task[str]] = field(default_factory=dict[Key, "asyncio.Task[str]"])
    _next: dict[Key, _Look] = field(default_factory=dict[Key, _Look])

    async def __call__(self, what: Hashable, look: Callable[[], Awaitable[str]]) -> str:
        """What a look finds that begins now or later. `look` must not raise; it is cancelled when nobody waits for
        it any more."""
        key = (asyncio.get_running_loop(), what)
        shared = self._next.get(key)
        if shared is None or shared.task.done():
            shared = self._next[key] = _Look(asyncio.create_task(self._look(key, look)))
        shared.askers += 1
        try:
            return await asyncio.shield(shared.task)
        finally:
            shared.askers -= 1
            if not shared.askers and not shared.task.done():
                if self._next.get(key) is shared:
                    del self._next[key]
                shared.task.cancel()
                await asyncio.wait({shared.task})  # what it started is ended by then

    async def _look(self, key: Key, look: Callable[[], Awaitable[str]]) -> str:
        if (before := self._under_way.get(key)) is not None:
            await asyncio.wait({before})
        own = asyncio.current_task()
        assert own is not None, "a look is a task"
        del self._next[key]
        self._under_way[key] = own
        try:
            return await look()
        finally:
            del self._under_way[key]
