"""The language server: connects a client's protocol to its connection, and runs it over a transport."""

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
from daiku.fronts.lsp.requests.commands import execute
from daiku.fronts.lsp.requests.context_items import code_actions, resolve_action
from daiku.fronts.lsp.requests.methods import METHODS, handler
from daiku.fronts.lsp.wire.pipes import OutputQueue, Sink, StreamSink, open_sink, read_fd

log = logging.getLogger(__name__)

PARENT_SECONDS = 3.0
"""Poll interval in seconds of the check that the editor's process is alive."""
FLUSH_SECONDS = 2.0
"""Timeout in seconds for requests and output at shutdown."""


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
    """Answer `shutdown`: new requests are rejected, active runs stay resumable."""
    await c.close()
    c.protocol.cancel_all(but=asyncio.current_task())
    return "null"


def _listeners(c: ClientConnection) -> dict[str, Callable[[Json], None]]:
    typed = c.protocol.typed_params

    def on_open(params: Json) -> None:
        item = typed(types.TEXT_DOCUMENT_DID_OPEN, params).text_document
        c.documents.open(item.uri, item.version, item.text)

    def on_change(params: Json) -> None:
        change = typed(types.TEXT_DOCUMENT_DID_CHANGE, params)
        c.documents.change(change.text_document.uri, change.text_document.version, change.content_changes)

    def on_close(params: Json) -> None:
        c.documents.close(typed(types.TEXT_DOCUMENT_DID_CLOSE, params).text_document.uri)

    def on_folders(params: Json) -> None:
        event = typed(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, params).event
        c.change_folders([f.uri for f in event.added], [f.uri for f in event.removed])

    def on_cancel_progress(params: Json) -> None:
        token = typed(types.WINDOW_WORK_DONE_PROGRESS_CANCEL, params).token
        if (cancel := c.cancels.get(token)) is not None:
            cancel()

    return {
        types.TEXT_DOCUMENT_DID_OPEN: on_open,
        types.TEXT_DOCUMENT_DID_CHANGE: on_change,
        types.TEXT_DOCUMENT_DID_CLOSE: on_close,
        types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: on_folders,
        types.WORKSPACE_DID_CHANGE_CONFIGURATION: lambda params: c.background(c.change_settings(params)),
        types.WINDOW_WORK_DONE_PROGRESS_CANCEL: on_cancel_progress,
        types.INITIALIZED: lambda _: c.background(c.initialized()),
    }


async def run(
    c: ClientConnection,
    sink: Sink,
    read: Callable[[Callable[[bytes], None]], Any],  # a coroutine function
    early: bytes = b"",
    offer: Offer | None = None,
) -> int:
    """Serve one client until it disconnects, and return the exit code.

    `offer` is set if `initialize` was already answered; `early` contains the bytes read after it.
    """
    protocol = c.protocol
    protocol.outlet = outlet = OutputQueue(sink)
    exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def exit_with(code: int) -> None:
        if not exit_code.done():
            exit_code.set_result(code)

    protocol.on_exit = exit_with
    if offer is not None:
        c.open(offer)
        protocol.mark_initialized()
    protocol.feed(early)
    reading = asyncio.ensure_future(read(protocol.feed))

    def on_end(_: asyncio.Future[Any]) -> None:  # the result type of `read`
        protocol.end()
        exit_with(0 if protocol.stopped else 1)

    reading.add_done_callback(on_end)
    watching = asyncio.ensure_future(_watch(c, exit_with))
    try:
        return await exit_code
    finally:
        watching.cancel()
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        if protocol.stopped and protocol.running:
            await asyncio.wait(protocol.running, timeout=FLUSH_SECONDS)  # includes the response to `shutdown`
        await c.close()
        protocol.cancel_all()
        if protocol.running:
            await asyncio.wait(protocol.running, timeout=FLUSH_SECONDS)
        await outlet.wait_drained(FLUSH_SECONDS)


async def _watch(c: ClientConnection, exit_with: Callable[[int], None]) -> None:
    """Exit when the editor's process has ended; another process may hold its pipe open."""
    while True:
        await asyncio.sleep(PARENT_SECONDS)
        if c.offer.process_id is not None and not _is_alive(c.offer.process_id):
            log.warning("the editor's process is gone")
            exit_with(1)
            return


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32" or pid <= 0:
        return True  # os.kill(pid, 0) would end the process there; the end of the pipe suffices
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

    `early` and `offer` as in `run`.
    """
    if tcp is not None:
        return asyncio.run(_serve_tcp(*tcp))
    return asyncio.run(_serve_stdio(fds or (0, 1), early, offer))


async def _serve_stdio(fds: tuple[int, int], early: bytes, offer: Offer | None) -> int:
    return await run(serve(), open_sink(fds[1]), lambda feed: read_fd(fds[0], feed), early, offer)


async def _serve_tcp(host: str, port: int) -> int:
    """Wait for one client and serve it."""
    code: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def on_connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listener.close()

        async def read(feed: Callable[[bytes], None]) -> None:
            while data := await reader.read(256 * 1024):
                feed(data)

        code.set_result(await run(serve(), StreamSink(writer), read))

    listener = await asyncio.start_server(on_connect, host, port)
    address = listener.sockets[0].getsockname()
    sys.stderr.write(f"daiku: waiting for an editor at {address[0]}:{address[1]}\n")
    return await code
