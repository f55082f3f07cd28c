"""Open the SDK's transport for a Launch: a child process, or HTTP with headers, sign-in and size limits."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client import Transport
from mcp.client._transport import TransportStreams  # the SDK's own name for what a transport yields
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from daiku.dataclass import dataclass, field
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.mcp.definitions import visible
from daiku.tools.mcp.launch import Launch
from daiku.tools.shell.pipes import LINE_LIMIT, LineTooLong, PipedChild, start_piped

log = logging.getLogger(__name__)

PER_SECOND = 1000
"""Lines a second that are read; a faster child waits on its full pipe."""
GARBAGE = 1000
"""Lines that are no messages, after which the child is given up."""


@asynccontextmanager
async def stdio_transport(
    child: PipedChild, ended: Callable[[Text], None]
) -> AsyncGenerator[TransportStreams]:
    """Talk to `child`; `ended` hears once why it can no longer be talked to. The child is stopped with
    all that it started when the context is left."""
    to_session, from_child = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_child, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = (
        asyncio.create_task(_read(child, to_session, ended)),
        asyncio.create_task(_write(child, from_session, to_session)),
    )
    try:
        yield from_child, to_child
    finally:
        try:
            await _flushed(to_child, tasks[1])
            await child.stop()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_session, from_child, to_child, from_session):
                stream.close()


async def _flushed(to_child: MemoryObjectSendStream[SessionMessage], writer: asyncio.Task[None]) -> None:
    to_child.close()
    await asyncio.wait({writer}, timeout=0.3)


async def _read(
    child: PipedChild,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    ended: Callable[[Text], None],
) -> None:
    why = NO_TEXT
    try:
        async with to_session:
            why = await _pass_on(child, to_session)
            await child.wait_ended(0.5)  # its exit code explains more than "closed"
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # the session is gone: what the child still says is nobody's business
    except (OSError, LineTooLong) as error:
        if isinstance(error, LineTooLong):
            why = text("mcp.line_too_long", size=LINE_LIMIT // (1024 * 1024))
        else:
            why = text("mcp.output_broke_off", what=str(error))
    finally:
        ended(why)


async def _pass_on(child: PipedChild, to_session: MemoryObjectSendStream[SessionMessage | Exception]) -> Text:
    """Until the child's output ends; why it was given up before, where it was."""
    loop = asyncio.get_running_loop()
    began, lines, garbage = loop.time(), 0, 0
    while line := await child.line():
        lines += 1
        if lines % 50 == 0:  # a full pipe never makes the loop wait: others must have their turn
            await asyncio.sleep(0)
        if lines >= PER_SECOND:
            await asyncio.sleep(max(0.0, began + 1 - loop.time()))
            began, lines = loop.time(), 0
        message = _parsed(line)
        if message is not None:
            await to_session.send(message)
        elif line.strip():
            garbage += 1
            if garbage >= GARBAGE:
                return text("mcp.garbage", count=GARBAGE)
    return NO_TEXT


def _parsed(line: bytes) -> SessionMessage | None:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        log.debug("not a message: %r", line[:200])
        return None


async def _write(
    child: PipedChild,
    from_session: MemoryObjectReceiveStream[SessionMessage],
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
) -> None:
    try:
        async for message in from_session:
            await child.send(
                message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            )
    except (OSError, anyio.ClosedResourceError):
        # The session must see the end instead of waiting for an answer that cannot come.
        with contextlib.suppress(anyio.ClosedResourceError):
            to_session.close()


ANSWER_LIMIT = 32 * 1024 * 1024
"""Bytes of one HTTP answer, or of one event of a stream."""
EVENT_LIMIT = 16 * 1024 * 1024
TIMEOUT = httpx2.Timeout(30.0, read=300.0)
SAID = 500
"""Lines of stderr of one child that are logged."""


@dataclass(slots=True)
class ServerTransport:
    """The transport to one server (child process or HTTP), and why it failed, if it did."""

    launch: Launch
    auth: httpx2.Auth | None = None
    child: PipedChild | None = None
    status: int = 0
    last_words: list[str] = field(default_factory=list[str])
    _said: int = 0

    def why(self) -> Text:
        """An exit code with the last words on stderr, or an HTTP status; empty where all is well."""
        if self.child is not None and self.child.exit_code is not None:
            code, words = self.child.exit_code, visible("".join(self.last_words[-1:])[:200])
            if not words:
                return text("mcp.exit_code", code=code)
            return text("mcp.exit_code_and_words", code=code, words=words)
        if self.status in (401, 403):
            return text("mcp.wants_sign_in", status=self.status)
        return Text(f"HTTP {self.status}" if self.status >= 400 else "")

    def transport(self, ended: Callable[[Text], None]) -> AbstractAsyncContextManager[Transport]:
        """The SDK's transport, opened; `ended` hears why it ended by itself."""
        return self._http() if self.launch.settings.url else self._stdio(ended)

    @asynccontextmanager
    async def _stdio(self, ended: Callable[[Text], None]) -> AsyncGenerator[Transport]:
        launch = self.launch
        self.child = await start_piped(
            launch.argv(os.environ), cwd=launch.cwd, env=launch.environment(os.environ), on_stderr=self._hear
        )
        try:
            yield stdio_transport(self.child, ended)  # entering it is the SDK's
        finally:
            await self.child.stop()  # also where the SDK never came to enter it

    @asynccontextmanager
    async def _http(self) -> AsyncGenerator[Transport]:
        async with httpx2.AsyncClient(
            headers=self.launch.headers(os.environ),
            timeout=TIMEOUT,
            auth=self.auth,
            event_hooks={"response": [self._note]},
        ) as http:
            url = self.launch.settings.url
            yield streamable_http_client(url, http_client=http, max_sse_event_size=EVENT_LIMIT)

    async def _note(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream") and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(response.stream)

    def _hear(self, line: str) -> None:
        self.last_words = [*self.last_words[-4:], line] if line.strip() else self.last_words
        self._said += 1
        if self._said <= SAID:
            logging.getLogger(f"{__name__}.{self.launch.name}").info("%s", line)
        if self._said == SAID:
            logging.getLogger(f"{__name__}.{self.launch.name}").info("(it says more, which is not logged)")


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends in an error once it is too long."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > ANSWER_LIMIT:
                raise httpx2.StreamError(f"the answer has more than {ANSWER_LIMIT // (1024 * 1024)} MB")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
