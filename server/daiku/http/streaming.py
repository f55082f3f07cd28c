"""The answer `text/event-stream`: whatever a reader is given, until it ends or the client goes away."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import Receive, Scope, Send

from daiku.domain.runs import RunResult
from daiku.http.channels import Reader
from daiku.http.frames import COMMENT, result_frame

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
