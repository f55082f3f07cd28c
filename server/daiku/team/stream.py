"""A run whose chunks are streamed to asynchronous or synchronous code."""

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
    """The chunks of one run, in order, and then its `result` (R1.3, R1.26).

    The run starts when the first chunk is requested. Leaving the loop early cancels the run, as do the end of
    `async with` around the stream and `aclose`. A run that waits for an answer is paused instead: `approve` or `answer`
    it later, also in another process, then `resume` it. `for` instead of `async for` blocks until each chunk arrives.
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
        """Run id of each open question, by question id."""
        self._chunks: asyncio.Queue[Chunk | None] = asyncio.Queue()
        self._task: asyncio.Task[Result] | None = None

    @property
    def result(self) -> Result:
        """The result of the run. Raises RuntimeError while it is running."""
        if self._task is None or not self._task.done() or self._task.cancelled():
            raise RuntimeError("The stream has no result yet: read it to its end first.")
        return self._task.result()

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks to synchronous code; also inside a running event loop, which it blocks."""
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
        return _ChunkIterator(self)

    def _check_unread(self) -> None:
        """Raise RuntimeError if the stream was read to its end or left: it can be read once."""
        if self._task is not None and self._task.done() and self._chunks.empty():
            raise RuntimeError("This stream was read already. Call stream() again for another run.")

    async def __anext__(self) -> Chunk:
        """Return the next chunk. Raises as `Runner.run`."""
        if self._task is None:
            self._task = asyncio.create_task(self._run_to_end())
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
        """Cancel or pause a run that has not ended, and wait until it has stopped."""
        if self._task is not None and not self._task.done():
            self._stop(self._task)
            await asyncio.wait({self._task})

    def leave(self) -> None:
        """Cancel or pause the run without waiting. Thread-safe."""
        if self._task is not None and not self._task.done():
            loop = self._task.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._stop, self._task)

    def _stop(self, task: asyncio.Task[Result]) -> None:
        """Pause the run if it waits for an answer, else cancel it."""
        if self._questions and not task.done():
            with suppress(ValueError):  # the run has ended
                self._pause(next(iter(self._questions.values())))
        else:
            task.cancel()

    def _receive(self, chunk: Chunk) -> None:
        match chunk.event:
            case ApprovalAsked(approval_id=key) | InputAsked(input_id=key):
                self._questions[key] = chunk.run
            case ApprovalGiven(approval_id=key) | InputGiven(input_id=key):
                self._questions.pop(key, None)
            case _:
                pass
        self._chunks.put_nowait(chunk)

    async def _run_to_end(self) -> Result:
        try:
            return await self._work(self._receive)
        finally:
            self._chunks.put_nowait(None)


class _ChunkIterator:
    """Iterator of one loop over a stream; collected when the loop is left, which stops the run."""

    def __init__(self, stream: RunStream) -> None:
        self._stream = stream

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Chunk:
        return await self._stream.__anext__()

    def __del__(self) -> None:
        self._stream.leave()
