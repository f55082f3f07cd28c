"""Open the SDK's transport for a server, and repair invalid answers so that one bad tool does not hide the others."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Self, TypeAlias, cast

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import types
from mcp.client import Transport
from mcp.client._transport import (
    ReadStream,
    TransportStreams,  # the SDK's own name for what a transport yields
)  # the SDK's own names for what a transport yields
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter
from pydantic import JsonValue, TypeAdapter, ValidationError

from daiku.dataclass import dataclass, field
from daiku.domain.base import JsonObject
from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.mcp.definitions import remove_hidden
from daiku.tools.mcp.launch import Launch
from daiku.tools.shell.pipes import LINE_LIMIT, LineTooLong, PipedChild, start_piped

# The SDK validates a page of tools, or the result of a call, as a unit. Here each member is checked alone first:
# small mistakes are fixed, an unreadable member is reduced to its text, and the rest is unchanged.

Item: TypeAlias = "SessionMessage | Exception"
"""What a transport receives: a message, or the error that prevented reading one."""
_BLOCK: TypeAdapter[types.ContentBlock] = TypeAdapter(types.ContentBlock)


@asynccontextmanager
async def open_lenient_transport(transport: Transport) -> AsyncGenerator[TransportStreams]:
    """Open `transport`, and repair its answers before the SDK validates them."""
    async with transport as (incoming, outgoing):
        yield _RepairedStream(incoming), outgoing


class _RepairedStream:
    """A server's message stream with each message repaired."""

    def __init__(self, inner: ReadStream[Item]) -> None:
        self._inner = inner

    async def receive(self) -> Item:
        return _repair(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Item:
        return _repair(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


def _repair(item: Item) -> Item:
    if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCResponse):
        repair_result(cast(JsonObject, item.message.result))
    return item


def repair_result(result: JsonObject) -> None:
    """Repair the tools of a listing, or the content of a call's result, in place."""
    if isinstance(tools := result.get("tools"), list):
        result["tools"] = [fixed for tool in tools if (fixed := _repair_tool(tool))]
    if "content" in result or "structuredContent" in result:
        _repair_call(result)


def _repair_tool(tool: JsonValue) -> JsonObject | None:
    """Return a valid tool; None without a name, because nobody could call it."""
    if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
        log.warning("a tool without a name was left out: %.200s", json.dumps(tool, default=str))
        return None
    schema = tool.get("inputSchema")
    object_schema: JsonObject = {**(schema if isinstance(schema, dict) else {}), "type": "object"}
    # With an output schema the SDK rejects results whose structured part does not match, although the text is usable.
    members = {key: value for key, value in tool.items() if key != "outputSchema"}
    fixed: JsonObject = {**members, "inputSchema": object_schema}
    try:
        types.Tool.model_validate(fixed, by_name=False)
    except ValidationError as error:
        log.warning("the tool %.100s is reduced to its name and arguments: %.500s", name, error)
        description = tool.get("description")
        description_member: JsonObject = {"description": description} if isinstance(description, str) else {}
        return {"name": name, **description_member, "inputSchema": object_schema}
    return fixed


def _repair_call(result: JsonObject) -> None:
    content = result.get("content")
    blocks: list[JsonValue] = [] if content is None else content if isinstance(content, list) else [content]
    result["content"] = [_repair_block(block) for block in blocks]
    structured = result.get("structuredContent")
    if structured is None:
        result.pop("structuredContent", None)
    elif not isinstance(structured, dict):
        result["structuredContent"] = {"result": structured}
    if "isError" in result:
        result["isError"] = bool(result["isError"])


def _repair_block(block: JsonValue) -> JsonValue:
    """Return a valid block unchanged, and any other one as text."""
    if isinstance(block, str):
        return {"type": "text", "text": block}
    try:
        _BLOCK.validate_python(block, by_name=False)
    except ValidationError:
        text = block.get("text") if isinstance(block, dict) else None
        return {"type": "text", "text": text if isinstance(text, str) else json.dumps(block, default=str)}
    return block


log = logging.getLogger(__name__)

MAX_LINES_PER_SECOND = 1000
"""Lines per second that are read. A faster child waits on its full pipe."""
MAX_INVALID_LINES = 1000
"""Lines that are not messages after which the child is stopped."""


@asynccontextmanager
async def open_stdio_transport(
    child: PipedChild, on_end: Callable[[Text], None]
) -> AsyncGenerator[TransportStreams]:
    """Exchange messages with `child`; `on_end` gets the reason once it can no longer be reached.

    At the end of the context the child and its descendants are killed.
    """
    to_session, from_child = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_child, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = (
        asyncio.create_task(_read(child, to_session, on_end)),
        asyncio.create_task(_write(child, from_session, to_session)),
    )
    try:
        yield from_child, to_child
    finally:
        try:
            await _flush(to_child, tasks[1])
            await child.stop()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_session, from_child, to_child, from_session):
                stream.close()


async def _flush(to_child: MemoryObjectSendStream[SessionMessage], writer: asyncio.Task[None]) -> None:
    to_child.close()
    await asyncio.wait({writer}, timeout=0.3)


async def _read(
    child: PipedChild,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    on_end: Callable[[Text], None],
) -> None:
    reason = NO_TEXT
    try:
        async with to_session:
            reason = await _forward_messages(child, to_session)
            await child.wait_ended(0.5)  # its exit code explains more than "closed"
    except (anyio.ClosedResourceError, anyio.BrokenResourceError):
        pass  # the session has ended: ignore further output
    except (OSError, LineTooLong) as error:
        if isinstance(error, LineTooLong):
            reason = text("mcp.line_too_long", size=LINE_LIMIT // (1024 * 1024))
        else:
            reason = text("mcp.output_broke_off", what=str(error))
    finally:
        on_end(reason)


async def _forward_messages(
    child: PipedChild, to_session: MemoryObjectSendStream[SessionMessage | Exception]
) -> Text:
    """Forward messages until the child's output ends. Returns the reason for stopping early, or empty."""
    loop = asyncio.get_running_loop()
    window_start, lines, invalid_lines = loop.time(), 0, 0
    while line := await child.line():
        lines += 1
        if lines % 50 == 0:  # reading a full pipe never yields to other tasks
            await asyncio.sleep(0)
        if lines >= MAX_LINES_PER_SECOND:
            await asyncio.sleep(max(0.0, window_start + 1 - loop.time()))
            window_start, lines = loop.time(), 0
        message = _parse_message(line)
        if message is not None:
            await to_session.send(message)
        elif line.strip():
            invalid_lines += 1
            if invalid_lines >= MAX_INVALID_LINES:
                return text("mcp.garbage", count=MAX_INVALID_LINES)
    return NO_TEXT


def _parse_message(line: bytes) -> SessionMessage | None:
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
        # The session must end instead of waiting for an answer that cannot come.
        with contextlib.suppress(anyio.ClosedResourceError):
            to_session.close()


MAX_ANSWER_BYTES = 32 * 1024 * 1024
"""Bytes of one HTTP answer."""
MAX_EVENT_BYTES = 16 * 1024 * 1024
"""Bytes of one event of a stream."""
TIMEOUT = httpx2.Timeout(30.0, read=300.0)
MAX_LOGGED_LINES = 500
"""Lines of a child's stderr that are logged."""


@dataclass(slots=True)
class ServerTransport:
    """The transport to a server (child process or HTTP), and its failure, if any."""

    launch: Launch
    auth: httpx2.Auth | None = None
    child: PipedChild | None = None
    status: int = 0
    stderr_tail: list[str] = field(default_factory=list[str])
    _line_count: int = 0

    def describe_failure(self) -> Text:
        """Describe the exit code with the last line of stderr, or the HTTP status; empty without a failure."""
        if self.child is not None and self.child.exit_code is not None:
            code, words = self.child.exit_code, remove_hidden("".join(self.stderr_tail[-1:])[:200])
            if not words:
                return text("mcp.exit_code", code=code)
            return text("mcp.exit_code_and_words", code=code, words=words)
        if self.status in (401, 403):
            return text("mcp.wants_sign_in", status=self.status)
        return Text(f"HTTP {self.status}" if self.status >= 400 else "")

    def open(self, on_end: Callable[[Text], None]) -> AbstractAsyncContextManager[Transport]:
        """Open the SDK's transport; `on_end` gets the reason if it ends by itself."""
        return self._open_http() if self.launch.settings.url else self._open_stdio(on_end)

    @asynccontextmanager
    async def _open_stdio(self, on_end: Callable[[Text], None]) -> AsyncGenerator[Transport]:
        launch = self.launch
        self.child = await start_piped(
            launch.build_argv(os.environ),
            cwd=launch.cwd,
            env=launch.build_environment(os.environ),
            on_stderr=self._log_stderr,
        )
        try:
            yield open_stdio_transport(self.child, on_end)  # the SDK enters it
        finally:
            await self.child.stop()  # also if the SDK never entered it

    @asynccontextmanager
    async def _open_http(self) -> AsyncGenerator[Transport]:
        async with httpx2.AsyncClient(
            headers=self.launch.build_headers(os.environ),
            timeout=TIMEOUT,
            auth=self.auth,
            event_hooks={"response": [self._limit_response]},
        ) as http:
            url = self.launch.settings.url
            yield streamable_http_client(url, http_client=http, max_sse_event_size=MAX_EVENT_BYTES)

    async def _limit_response(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        kind = response.headers.get("content-type", "")
        if not kind.startswith("text/event-stream") and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _LimitedBody(response.stream)

    def _log_stderr(self, line: str) -> None:
        self.stderr_tail = [*self.stderr_tail[-4:], line] if line.strip() else self.stderr_tail
        self._line_count += 1
        if self._line_count <= MAX_LOGGED_LINES:
            logging.getLogger(f"{__name__}.{self.launch.name}").info("%s", line)
        if self._line_count == MAX_LOGGED_LINES:
            logging.getLogger(f"{__name__}.{self.launch.name}").info("(it says more, which is not logged)")


class _LimitedBody(httpx2.AsyncByteStream):
    """A response body that raises an error once it is too long."""

    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._inner:
            size += len(part)
            if size > MAX_ANSWER_BYTES:
                raise httpx2.StreamError(f"the answer has more than {MAX_ANSWER_BYTES // (1024 * 1024)} MB")
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()
