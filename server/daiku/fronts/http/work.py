"""Runs of HTTP clients and their event streams. A run continues if its client disconnects."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from starlette.types import Receive, Scope, Send

from daiku.dataclass import dataclass, field
from daiku.domain.chunks import Chunk
from daiku.domain.errors import DaikuError, Failure, UsageError
from daiku.domain.runs import RunResult
from daiku.fronts.http.channels import COMMENT, Channel, Channels, Reader, result_frame
from daiku.library.fronts import App, Listener
from daiku.texts.text import text

log = logging.getLogger(__name__)

COMMENT_SECONDS = 15.0
"""Interval in seconds of keep-alive comments."""
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


class EventStream:
    """An ASGI response with server-sent events.

    `result` is available once the reader has received everything of its run; a stream without it stays open.
    `on_close` is always called at the end.
    """

    def __init__(
        self,
        reader: Reader,
        on_close: Callable[[], None],
        result: Callable[[], RunResult | None] | None = None,
    ) -> None:
        self._reader = reader
        self._on_close = on_close
        self._result = result

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader = self._reader
        disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
        disconnected.add_done_callback(lambda _: reader.close())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            if scope["method"] != "HEAD":
                await self._send_all(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            disconnected.cancel()
            reader.close()
            self._on_close()

    async def _send_all(self, send: Send) -> None:
        reader, now = self._reader, asyncio.get_running_loop().time
        sent = now()
        while not reader.closed:
            if data := reader.take():
                await _send_body(send, data)
                sent = now()
            elif self._result is not None and reader.complete and (result := self._result()) is not None:
                await _send_body(send, result_frame(result))
                return
            elif now() - sent >= COMMENT_SECONDS:
                await _send_body(send, COMMENT)
                sent = now()
            else:
                await reader.wait()


async def _send_body(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


Start = Callable[[Listener], Awaitable[RunResult]]


@dataclass(frozen=True, slots=True)
class SessionTail:
    """The journal as streams read it."""

    app: App

    def tail(self, session: str, after_seq: int, most: int) -> list[Chunk]:
        """Return up to `most` durable chunks after `after_seq`; empty for a deleted session."""
        try:
            return self.app.journal.chunks(session, after_seq, most)
        except UsageError:
            return []

    def last_seq(self, session: str) -> int:
        """Return the number of the last durable chunk; 0 if there is none or the session was deleted."""
        try:
            return self.app.journal.last_seq(session)
        except UsageError:
            return 0


@dataclass(slots=True)
class StreamedRun:
    """A run with the reader of its client's stream, and its result at the end."""

    reader: Reader
    run_id: str = ""
    result: RunResult | None = None


@dataclass(frozen=True, slots=True)
class HttpRuns:
    """State of the server: one App, the streams of its sessions, and the runs that it started."""

    app: App
    channels: Channels
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def workspace(self) -> str:
        """Key of this folder's sessions."""
        return self.app.runs.services.workspace_key

    async def start(self, session: str, start: Start) -> StreamedRun:
        """Start a run of `session`; return after its first chunk, or when it has ended.

        Raises DaikuError if it could not start.
        """
        channel = self.channels.open(session)
        channel.start_run()
        stream = StreamedRun(Reader(channel, channel.last, channel.end, of_run=True))
        has_chunk = asyncio.Event()
        task = asyncio.create_task(self._run(channel, stream, has_chunk, start))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        first_chunk = asyncio.ensure_future(has_chunk.wait())
        try:
            await asyncio.wait({task, first_chunk}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            first_chunk.cancel()
        if task.done() and (error := task.exception()) is not None:
            self.leave(stream.reader)
            raise error
        return stream

    async def _run(
        self, channel: Channel, stream: StreamedRun, has_chunk: asyncio.Event, start: Start
    ) -> None:
        """Run to the end. Raises DaikuError if there was no chunk; later errors become the result."""

        def listen(chunk: Chunk) -> None:
            channel.publish(chunk)
            if not stream.run_id:
                stream.run_id = chunk.run
                has_chunk.set()

        try:
            stream.result = await start(listen)
        except Exception as error:
            if not stream.run_id:
                raise
            stream.result = _failed_result(stream, error)
        finally:
            channel.runs -= 1
            last = channel.last if stream.result is None else stream.result.last_seq
            stream.reader.end_at(max(last, channel.last))
            self.channels.release(channel)

    def follow(self, session: str, after_seq: int) -> Reader:
        """Return a reader of everything in `session` after `after_seq`. Raises UsageError (not_found)."""
        self.app.journal.get_session(session)
        return Reader(self.channels.open(session), after_seq, -1, of_run=False)

    def leave(self, reader: Reader) -> None:
        """Close `reader` and release its channel."""
        reader.close()
        self.channels.release(reader.channel)


def _failed_result(stream: StreamedRun, error: Exception) -> RunResult:
    """Return the result of a run that was interrupted by an error; it can be resumed."""
    if isinstance(error, DaikuError):
        failure = error.failure
    else:
        log.error("run %s broke off", stream.run_id, exc_info=error)
        failure = Failure(kind="internal", message=text("http.internal", what=type(error).__name__))
    channel = stream.reader.channel
    return RunResult(
        run_id=stream.run_id,
        session_id=channel.session,
        status="failed",
        last_seq=channel.last,
        error=failure,
    )
