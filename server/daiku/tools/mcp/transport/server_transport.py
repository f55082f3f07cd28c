"""Open the SDK's transport for a Launch: a child process, or HTTP with headers, sign-in and size limits."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import httpx2
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client

from daiku.dataclass import dataclass, field
from daiku.texts.text import Text, text
from daiku.tools.mcp.definitions import visible
from daiku.tools.mcp.launch import Launch
from daiku.tools.mcp.transport.stdio import stdio_transport
from daiku.tools.shell.pipes import PipedChild, start_piped

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
            launch.argv(os.environ), cwd=launch.cwd, env=launch.environment(os.environ), said=self._hear
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
