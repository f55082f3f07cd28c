"""The stdio transport: JSON-RPC lines to and from an owned child, bounded in size and in speed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams  # the SDK's own name for what a transport yields
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

from daiku.texts.text import NO_TEXT, Text, text
from daiku.tools.shell.pipes import LINE_LIMIT, LineTooLong, PipedChild

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
            await child.ended(0.5)  # its exit code says more than "closed", to whoever waits for an answer
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
