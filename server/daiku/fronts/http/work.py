"""Runs of HTTP clients, and their streams of server-sent events. A run goes on when its client is gone."""

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
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]


class EventStream:
    """An ASGI answer. `result` is there once the reader was given everything of its run; a stream without one
    stays open. `left` is called at the end, however it comes."""

    def __init__(
        self, reader: Reader, left: Callable[[], None], result: Callable[[], RunResult | None] | None = None
    ) -> None:
        self._reader = reader
        self._left = left
        self._result = result

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reader = self._reader
        gone = asyncio.ensure_future(_until_gone(receive))
        gone.add_done_callback(lambda _: reader.close())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            if scope["method"] != "HEAD":
                await self._send_all(send)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            reader.close()
            self._left()

    async def _send_all(self, send: Send) -> None:
        reader, now = self._reader, asyncio.get_running_loop().time
        sent = now()
        while not reader.closed:
            if data := reader.take():
                await _body(send, data)
                sent = now()
            elif self._result is not None and reader.complete and (result := self._result()) is not None:
                await _body(send, result_frame(result))
                return
            elif now() - sent >= COMMENT_SECONDS:
                await _body(send, COMMENT)
                sent = now()
            else:
                await reader.wait()


async def _body(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


Start = Callable[[Listener], Awaitable[RunResult]]


@dataclass(frozen=True, slots=True)
class SessionTail:
    """The journal as streams need it."""

    app: App

    def tail(self, session: str, after_seq: int, most: int) -> list[Chunk]:
        """Up to `most` durable chunks behind `after_seq`; none of a session that is gone."""
        try:
            return self.app.journal.chunks(session, after_seq, most)
        except UsageError:
            return []

    def last_seq(self, session: str) -> int:
        """The number of the last durable chunk; 0 where there is none, or the session is gone."""
        try:
            return self.app.journal.last_seq(session)
        except UsageError:
            return 0


@dataclass(slots=True)
class RunShown:
    """A run as its client's stream shows it: the chunks by `reader`, at the end `result`."""

    reader: Reader
    run_id: str = ""
    result: RunResult | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """What the server works with: one App, the streams of its sessions, the runs begun here."""

    app: App
    channels: Channels
    tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def workspace(self) -> str:
        """The name under which sessions of this folder are kept."""
        return self.app.runs.services.workspace_key

    async def begin(self, session: str, start: Start) -> RunShown:
        """Begin a run of `session`; return once it shows something or has ended. Raises DaikuError where nothing
        was begun."""
        channel = self.channels.of(session)
        channel.begin()
        shown = RunShown(Reader(channel, channel.last, channel.end, of_run=True))
        heard = asyncio.Event()
        task = asyncio.create_task(self._run(channel, shown, heard, start))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        hearing = asyncio.ensure_future(heard.wait())
        try:
            await asyncio.wait({task, hearing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hearing.cancel()
        if task.done() and (wrong := task.exception()) is not None:
            self.leave(shown.reader)
            raise wrong
        return shown

    async def _run(self, channel: Channel, shown: RunShown, heard: asyncio.Event, start: Start) -> None:
        """Raises DaikuError where the run showed nothing; after that whatever happens is its result."""

        def listen(chunk: Chunk) -> None:
            channel.publish(chunk)
            if not shown.run_id:
                shown.run_id = chunk.run
                heard.set()

        try:
            shown.result = await start(listen)
        except Exception as wrong:
            if not shown.run_id:
                raise
            shown.result = _failed(shown, wrong)
        finally:
            channel.runs -= 1
            last = channel.last if shown.result is None else shown.result.last_seq
            shown.reader.end_at(max(last, channel.last))
            self.channels.settle(channel)

    def follow(self, session: str, after_seq: int) -> Reader:
        """A reader of everything in `session` behind `after_seq`. Raises UsageError (not_found)."""
        self.app.journal.get_session(session)
        return Reader(self.channels.of(session), after_seq, -1, of_run=False)

    def leave(self, reader: Reader) -> None:
        """`reader` is read no more."""
        reader.close()
        self.channels.settle(reader.channel)


def _failed(shown: RunShown, wrong: Exception) -> RunResult:
    """A run that broke off, as its client is told; it can be resumed."""
    if isinstance(wrong, DaikuError):
        failure = wrong.failure
    else:
        log.error("run %s broke off", shown.run_id, exc_info=wrong)
        failure = Failure(kind="internal", message=text("http.internal", what=type(wrong).__name__))
    channel = shown.reader.channel
    return RunResult(
        run_id=shown.run_id, session_id=channel.session, status="failed", last_seq=channel.last, error=failure
    )
