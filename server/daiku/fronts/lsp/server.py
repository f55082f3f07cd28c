"""The language server: wires one client's protocol to its connection, and runs it over a transport."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from lsprotocol import types

from daiku.fronts.lsp.connection import ClientConnection
from daiku.fronts.lsp.initialize import Json, Offer
from daiku.fronts.lsp.requests.actions import code_actions, resolve_action
from daiku.fronts.lsp.requests.commands import execute
from daiku.fronts.lsp.requests.methods import METHODS, handler
from daiku.fronts.lsp.wire.pipes import OutputQueue, Sink, StreamSink, open_sink, read_fd

log = logging.getLogger(__name__)

PARENT_SECONDS = 3.0
FLUSH_SECONDS = 2.0


def serve(environ: Mapping[str, str] = os.environ) -> ClientConnection:
    """Create a server with all its methods registered, not yet connected to a transport."""
    c = ClientConnection(environ)
    protocol = c.protocol
    for method in METHODS:
        protocol.handlers[method] = handler(c, method)
    protocol.handlers[types.INITIALIZE] = c.initialize
    protocol.handlers[types.SHUTDOWN] = lambda _: shutdown(c)
    protocol.handlers[types.WORKSPACE_EXECUTE_COMMAND] = lambda params: execute(c, params)
    protocol.handlers[types.TEXT_DOCUMENT_CODE_ACTION] = lambda params: code_actions(c, params)
    protocol.handlers[types.CODE_ACTION_RESOLVE] = lambda params: resolve_action(c, params)
    protocol.listeners.update(_listeners(c))
    return c


async def shutdown(c: ClientConnection) -> str:
    """Answer `shutdown`: nothing new is taken, runs under way stay resumable."""
    await c.close()
    c.protocol.cancel_all(but=asyncio.current_task())
    return "null"


def _listeners(c: ClientConnection) -> dict[str, Callable[[Json], None]]:
    typed = c.protocol.typed_params

    def opened(params: Json) -> None:
        item = typed(types.TEXT_DOCUMENT_DID_OPEN, params).text_document
        c.documents.open(item.uri, item.version, item.text)

    def changed(params: Json) -> None:
        given = typed(types.TEXT_DOCUMENT_DID_CHANGE, params)
        c.documents.change(given.text_document.uri, given.text_document.version, given.content_changes)

    def closed(params: Json) -> None:
        c.documents.close(typed(types.TEXT_DOCUMENT_DID_CLOSE, params).text_document.uri)

    def folders(params: Json) -> None:
        event = typed(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, params).event
        c.change_folders([f.uri for f in event.added], [f.uri for f in event.removed])

    def stop(params: Json) -> None:
        token = typed(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, params).token
        if (cancel := c.cancels.get(token)) is not None:
            cancel()

    return {
        types.TEXT_DOCUMENT_DID_OPEN: opened,
        types.TEXT_DOCUMENT_DID_CHANGE: changed,
        types.TEXT_DOCUMENT_DID_CLOSE: closed,
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: folders,
        types.WORKSPACE_DID_CHANGE_CONFIGURATION: lambda params: c.background(c.change_settings(params)),
        types.WINDOW_WORK_DONE_PROGRESS_CANCEL: stop,
        types.INITIALIZED: lambda _: c.background(c.initialized()),
    }


async def run(
    c: ClientConnection,
    sink: Sink,
    read: Callable[[Callable[[bytes], None]], Any],  # a coroutine function
    early: bytes = b"",
    offer: Offer | None = None,
) -> int:
    """Serve one client until it leaves; the exit code. `offer` is set where `initialize` was answered
    already, `early` is what was read after it."""
    protocol = c.protocol
    protocol.outlet = outlet = OutputQueue(sink)
    left: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def leave(code: int) -> None:
        if not left.done():
            left.set_result(code)

    protocol.on_exit = leave
    if offer is not None:
        c.open(offer)
        protocol.mark_initialized()
    protocol.feed(early)
    reading = asyncio.ensure_future(read(protocol.feed))

    def ended(_: asyncio.Future[Any]) -> None:  # whatever `read` gives
        protocol.end()
        leave(0 if protocol.stopped else 1)

    reading.add_done_callback(ended)
    watching = asyncio.ensure_future(_watch(c, leave))
    try:
        return await left
    finally:
        watching.cancel()
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        if protocol.stopped and protocol.running:
            await asyncio.wait(protocol.running, timeout=FLUSH_SECONDS)  # `shutdown` itself gets its answer
        await c.close()
        protocol.cancel_all()
        if protocol.running:
            await asyncio.wait(protocol.running, timeout=FLUSH_SECONDS)
        await outlet.wait_drained(FLUSH_SECONDS)


async def _watch(c: ClientConnection, leave: Callable[[int], None]) -> None:
    """Leave when the editor's process is gone: its pipe may be held open by another."""
    while True:
        await asyncio.sleep(PARENT_SECONDS)
        if c.offer.process_id is not None and not _alive(c.offer.process_id):
            log.warning("the editor's process is gone")
            leave(1)
            return


def _alive(pid: int) -> bool:
    if sys.platform == "win32" or pid <= 0:
        return True  # os.kill(pid, 0) would end the process there; the pipe's end tells us
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def main(
    tcp: tuple[str, int] | None = None,
    fds: tuple[int, int] | None = None,
    early: bytes = b"",
    offer: Offer | None = None,
) -> int:
    """Serve over the file descriptors `fds` (in, out), or the first client of `tcp`; return the exit code.
    `early` and `offer` as in `run`."""
    if tcp is not None:
        return asyncio.run(_tcp(*tcp))
    return asyncio.run(_stdio(fds or (0, 1), early, offer))


async def _stdio(fds: tuple[int, int], early: bytes, offer: Offer | None) -> int:
    return await run(serve(), open_sink(fds[1]), lambda feed: read_fd(fds[0], feed), early, offer)


async def _tcp(host: str, port: int) -> int:
    """Wait for one client, serve it, end."""
    code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listener.close()

        async def read(feed: Callable[[bytes], None]) -> None:
            while data := await reader.read(256 * 1024):
                feed(data)

        code.set_result(await run(serve(), StreamSink(writer), read))

    listener = await asyncio.start_server(connected, host, port)
    shown = listener.sockets[0].getsockname()
    sys.stderr.write(f"daiku: waiting for an editor at {shown[0]}:{shown[1]}\n")
    return await code
