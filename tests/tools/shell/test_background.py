"""What a command in the background printed, as it is looked at now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from daiku.tools.shell.background import KEPT_CHARACTERS, Job


class Printing:
    """A process that prints what it is told to until it is stopped."""

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self.prints: Callable[[str], object] = str
        self._stopped = asyncio.Event()

    async def finish(self, show: Callable[[str], None], *, limit: bool) -> int:
        self.prints = show
        await self._stopped.wait()
        return 0

    async def stop(self) -> None:
        self._stopped.set()


async def test_that_something_was_lost_is_said_once() -> None:
    process: Any = Printing()

    async def ended() -> tuple[()]:
        return ()

    job = Job(process, ended)
    await asyncio.sleep(0)
    process.prints("x" * 1000)
    process.prints("y" * KEPT_CHARACTERS)
    assert job.take().startswith("[… 1000 earlier characters are gone …]\n")
    process.prints("news\n")
    assert job.take() == "news\n"
    await job.end()
