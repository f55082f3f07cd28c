"""Commands that run in the background: named, with the end of their output, ended with the server."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path

from daiku.guard.sandbox.aside import QuarantinedFile
from daiku.tools.shell.process import Process, end_task

KEPT_CHARACTERS = 200_000
END_SECONDS = 2.0
Ended = Callable[[], Awaitable[tuple[QuarantinedFile, ...]]]
"""What is done when a command has ended: protected files that it made are put aside, and told."""

_STARTED: ContextVar[list[Job] | None] = ContextVar("background commands of this task", default=None)


@contextlib.asynccontextmanager
async def ending_with_the_block() -> AsyncGenerator[list[Job]]:
    """End the background commands that the block or its tasks start when it ends. Yields them."""
    started: list[Job] = []
    token = _STARTED.set(started)
    try:
        yield started
    finally:
        _STARTED.reset(token)
        for job in started:
            await job.end()


class Job:
    """One background command and what it printed since it was last looked at."""

    def __init__(self, command: str, process: Process, ended: Ended) -> None:
        self.command = command
        self.process = process
        self.aside: tuple[QuarantinedFile, ...] = ()
        self.lost = False
        self._ended = ended
        self._pieces: deque[str] = deque()
        self._size = 0
        self._dropped = 0
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._follow())
        if (started := _STARTED.get()) is not None:
            started.append(self)

    async def _follow(self) -> None:
        try:
            await self.process.finish(self._add, limit=False)
        finally:
            await asyncio.shield(self.process.stop())
            self.aside = await asyncio.shield(self._ended())
            self._news.set()

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        while self._size > KEPT_CHARACTERS and len(self._pieces) > 1:
            old = len(self._pieces.popleft())
            self._size -= old
            self._dropped += old
        self._news.set()

    async def news(self, seconds: float) -> None:
        """Wait until there is something new or it has ended, at most so long."""
        if seconds and not self._pieces and self.process.exit_code is None:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()

    def take(self) -> str:
        """What is new. `lost` says whether some of it was too much to be held."""
        text = "".join(self._pieces)
        note = f"[… {self._dropped} earlier characters are gone …]\n" if self._dropped else ""
        self.lost = bool(self._dropped)
        self._pieces.clear()
        self._size = self._dropped = 0
        return note + text

    async def end(self) -> None:
        """Stop it; what it printed last can still be taken."""
        await self.process.stop()
        await asyncio.wait({self._task}, timeout=END_SECONDS)
        await end_task(self._task)


class Jobs:
    """The background commands of this server, by session and name."""

    def __init__(self, aside: Path | None = None) -> None:
        self.aside = aside
        self._jobs: dict[tuple[str, str], Job] = {}

    def add(self, session: str, command: str, process: Process, ended: Ended) -> str:
        """Follow `process` from now on; the name that it is known by. `ended` is called at its end."""
        words = re.findall(r"[A-Za-z0-9]+", command)[:2]
        base = "-".join(words).lower() or "command"
        name, number = base, 1
        while (session, name) in self._jobs:
            number += 1
            name = f"{base}-{number}"
        self._jobs[session, name] = Job(command, process, ended)
        return name

    def get(self, session: str, name: str) -> Job | None:
        """The command of that name in the session, also when it has ended."""
        return self._jobs.get((session, name))

    def names(self, session: str) -> tuple[str, ...]:
        """The names of a session's commands, the oldest first."""
        return tuple(name for of, name in self._jobs if of == session)
