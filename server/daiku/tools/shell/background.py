"""Background commands: named, with the end of their output, stopped with the server."""

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

MAX_CHARACTERS = 200_000
"""Characters of new output that are stored of a command."""
END_SECONDS = 2.0
"""Seconds to wait for a command's last output after it was killed."""
OnEnd = Callable[[], Awaitable[tuple[QuarantinedFile, ...]]]
"""Called when a command has ended: it quarantines and reports changed protected files."""

_STARTED: ContextVar[list[BackgroundJob] | None] = ContextVar(
    "background commands of this task", default=None
)


@contextlib.asynccontextmanager
async def stop_jobs_at_exit() -> AsyncGenerator[list[BackgroundJob]]:
    """Stop the background commands that the block or its tasks start, when the block ends. Yields them."""
    started: list[BackgroundJob] = []
    token = _STARTED.set(started)
    try:
        yield started
    finally:
        _STARTED.reset(token)
        for job in started:
            await job.end()


class BackgroundJob:
    """A background command and its output since the last read."""

    def __init__(self, command: str, process: Process, on_end: OnEnd) -> None:
        self.command = command
        self.process = process
        self.aside: tuple[QuarantinedFile, ...] = ()
        self.lost = False
        self._on_end = on_end
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
            self.aside = await asyncio.shield(self._on_end())
            self._news.set()

    def _add(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        while self._size > MAX_CHARACTERS and len(self._pieces) > 1:
            old = len(self._pieces.popleft())
            self._size -= old
            self._dropped += old
        self._news.set()

    async def wait_for_output(self, seconds: float) -> None:
        """Wait for new output or the end, at most `seconds`."""
        if seconds and not self._pieces and self.process.exit_code is None:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._news.wait()

    def take(self) -> str:
        """Return the new output and clear it. `lost` is then true if some was dropped."""
        text = "".join(self._pieces)
        note = f"[… {self._dropped} earlier characters are gone …]\n" if self._dropped else ""
        self.lost = bool(self._dropped)
        self._pieces.clear()
        self._size = self._dropped = 0
        return note + text

    async def end(self) -> None:
        """Stop the command. Its last output can still be taken."""
        await self.process.stop()
        await asyncio.wait({self._task}, timeout=END_SECONDS)
        await end_task(self._task)


class Jobs:
    """The background commands of this server, by session and name."""

    def __init__(self, aside: Path | None = None) -> None:
        self.aside = aside
        self._jobs: dict[tuple[str, str], BackgroundJob] = {}

    def add(self, session: str, command: str, process: Process, on_end: OnEnd) -> str:
        """Follow `process` and return its new name. `on_end` is called at its end."""
        words = re.findall(r"[A-Za-z0-9]+", command)[:2]
        base = "-".join(words).lower() or "command"
        name, number = base, 1
        while (session, name) in self._jobs:
            number += 1
            name = f"{base}-{number}"
        self._jobs[session, name] = BackgroundJob(command, process, on_end)
        return name

    def get(self, session: str, name: str) -> BackgroundJob | None:
        """Return the command of that name in the session, also after its end."""
        return self._jobs.get((session, name))

    def names(self, session: str) -> tuple[str, ...]:
        """Return the names of a session's commands, the oldest first."""
        return tuple(name for owner, name in self._jobs if owner == session)
