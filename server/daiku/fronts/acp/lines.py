"""Line-delimited JSON-RPC over two file descriptors, with one reader and one writer thread."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, cast

READ_SIZE = 256 * 1024
"""Bytes per read."""
LONGEST = 64 * 1024 * 1024
"""Bytes of the longest message; longer ones are answered with an error and dropped."""
FLUSH_SECONDS = 1.0
"""Timeout in seconds for writing the remaining messages on close."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
Message = dict[str, Any]  # JSON-RPC; the handlers validate the content


class Lines:
    """The transport of one client (the library's `Transport`).

    Invalid messages are answered with an error and do not end the connection. After a disconnect `receive`
    returns None and `send` raises ConnectionError.
    """

    def __init__(self, inlet: int, outlet: int) -> None:
        self._inlet, self._outlet = inlet, outlet
        self._loop = asyncio.get_running_loop()
        self._arrived: asyncio.Queue[Message | None] = asyncio.Queue()
        self._leaving: SimpleQueue[tuple[bytes, asyncio.Future[None] | None] | None] = SimpleQueue()
        self._gone = False
        # Daemon threads: the client may neither send nor disconnect.
        threading.Thread(target=self._read, daemon=True, name="acp-read").start()
        self._writer = threading.Thread(target=self._write, daemon=True, name="acp-write")
        self._writer.start()

    async def receive(self) -> Message | None:
        """Return the next message, or None at the end."""
        return await self._arrived.get()

    async def send(self, message: Message) -> None:
        """Write one message and wait until it is written. Raises ConnectionError."""
        if self._gone:
            raise ConnectionError("the client is gone")
        written: asyncio.Future[None] = self._loop.create_future()
        self._leaving.put((_line(message), written))
        await written

    async def close(self) -> None:
        """Stop accepting messages and wait briefly until the queued ones are written."""
        self._gone = True
        self._leaving.put(None)
        await asyncio.to_thread(self._writer.join, FLUSH_SECONDS)

    def end(self) -> None:
        """End the input, as if the client had disconnected."""
        self._arrived.put_nowait(None)

    # ---- reader and writer threads

    def _read(self) -> None:
        pending = bytearray()
        too_long = False
        with suppress(OSError, RuntimeError):  # RuntimeError: the event loop is closed
            while data := os.read(self._inlet, READ_SIZE):
                *lines, rest = data.split(b"\n")
                for line in lines:
                    if not too_long:
                        self._arrive(bytes(pending + line))
                    pending.clear()
                    too_long = False
                if not too_long:
                    pending += rest
                if len(pending) > LONGEST:
                    pending.clear()
                    too_long = True
                    self._refuse(INVALID_REQUEST, "The message is too long")
            if pending.strip():
                self._arrive(bytes(pending))
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._arrived.put_nowait, None)

    def _arrive(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message: object = json.loads(line)
        except (ValueError, RecursionError):
            self._refuse(PARSE_ERROR, "Parse error")
            return
        if not isinstance(message, dict):
            self._refuse(INVALID_REQUEST, "Invalid request")
            return
        self._loop.call_soon_threadsafe(self._arrived.put_nowait, cast("Message", message))

    def _refuse(self, code: int, why: str) -> None:
        answer: Message = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}}
        self._leaving.put((_line(answer), None))

    def _write(self) -> None:
        while (item := self._leaving.get()) is not None:
            data, written = item
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._outlet, view) :]
            except OSError:
                self._gone = True
                error: ConnectionError | None = ConnectionError("the client is gone")
            else:
                error = None
            if written is not None:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(_settle, written, error)


def _settle(written: asyncio.Future[None], error: ConnectionError | None) -> None:
    if written.done():
        return
    if error is None:
        written.set_result(None)
    else:
        written.set_exception(error)


def _line(message: Message) -> bytes:
    # `default`: the library's errors may contain pydantic exceptions.
    return json.dumps(message, separators=(",", ":"), default=str).encode("ascii") + b"\n"
