"""A run whose chunks are read as they come, also by code that waits for each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Self

from daiku.domain.chunks import Chunk
from daiku.domain.events import ApprovalAsked, ApprovalGiven, InputAsked, InputGiven
from daiku.team.running import Result
from daiku.tools.threads import LoopThread

Listener = Callable[[Chunk], None]


class RunStream:
    """The chunks of one run, in order; `result` when it has ended (R1.3, R1.26).

    The run begins when the first chunk is asked for. Leaving the loop before its end cancels the run; so do
    the end of `async with` around the stream, and `aclose`. A run that waits for an answer is paused instead: `approve`
    or `answer` it later, also in another process, then `resume` it. `for` in place of `async for` waits for each chunk.
    """

    def __init__(
        self,
        work: Callable[[Listener], Awaitable[Result]],
        keep: Callable[[asyncio.Task[Result]], None],
        thread: Callable[[], LoopThread],
        *,
        pause: Callable[[str], None],
        closes: bool,
    ) -> None:
        self._work = work
        self._keep = keep
        self._thread = thread
        self._pause = pause
        self._closes = closes
        self._questions: dict[str, str] = {}
        """Run of each open question, by the id of the question."""
        self._chunks: asyncio.Queue[Chunk | None] = asyncio.Queue()
        self._task: asyncio.Task[Result] | None = None

    @property
    def result(self) -> Result:
        """How the run ended. Raises RuntimeError while it is under way."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            raise RuntimeError("The stream has no result yet: read it to its end first.")
        return self._task.result()

    def __iter__(self) -> Iterator[Chunk]:
        """The chunks for code that is not asynchronous; also inside a running event loop, which waits for each."""
        self._check_unread()
        thread = self._thread()
        try:
            while (chunk := thread.wait(self._next())) is not None:
                yield chunk
        finally:
            thread.wait(self.aclose())
            if self._closes:
                thread.close()

    async def _next(self) -> Chunk | None:
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            return None

    def __aiter__(self) -> AsyncIterator[Chunk]:
        self._check_unread()
        return _Reading(self)

    def _check_unread(self) -> None:
        """Raises RuntimeError if the stream was read to its end or left: it shows one run, once."""
        if self._task is not None and self._task.done() and self._chunks.empty():
            raise RuntimeError("This stream was read already. Call stream() again for another run.")

    async def __anext__(self) -> Chunk:
        """The next chunk. Raises what `Runner.run` raises."""
        if self._task is None:
            self._task = asyncio.create_task(self._to_end())
            self._keep(self._task)
        elif self._task.done() and self._chunks.empty():
            raise StopAsyncIteration
        chunk = await self._chunks.get()
        if chunk is None:
            await self._task
            raise StopAsyncIteration
        return chunk

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Leave: a run that has not ended is cancelled or paused, and has stopped when this returns."""
        if self._task is not None and not self._task.done():
            self._stop(self._task)
            await asyncio.wait({self._task})

    def leave(self) -> None:
        """Leave without waiting; from any thread."""
        if self._task is not None and not self._task.done():
            loop = self._task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._stop, self._task)

    def _stop(self, task: asyncio.Task[Result]) -> None:
        """Pause the run if it waits for an answer, else cancel it."""
        if self._questions and not task.done():
            with suppress(ValueError):  # it has ended
                self._pause(next(iter(self._questions.values())))
        else:
            task.cancel()

    def _hear(self, chunk: Chunk) -> None:
        match chunk.event:
            case ApprovalAsked(approval_id=key) | InputAsked(input_id=key):
                self._questions[key] = chunk.run
            case ApprovalGiven(approval_id=key) | InputGiven(input_id=key):
                self._questions.pop(key, None)
            case _:
                pass
        self._chunks.put_nowait(chunk)

    async def _to_end(self) -> Result:
        try:
            return await self._work(self._hear)
        finally:
            self._chunks.put_nowait(None)


class _Reading:
    """One loop over a stream: held by nobody else, it is gone when the loop is left, and the run with it."""

    def __init__(self, stream: RunStream) -> None:
        self._stream = stream

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        return await self._stream.__anext__()

    def __del__(self) -> None:
        self._stream.leave()
