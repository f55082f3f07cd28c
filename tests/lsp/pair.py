"""A client in the same process: two in-memory pipes, no socket, no subprocess."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections.abc import Callable
from typing import Any

from daiku.fronts.lsp.wire.frames import BadFrame, Frames, frame
from daiku.fronts.lsp.wire.pipes import OutputQueue
from daiku.fronts.lsp.wire.protocol import Protocol


class Answered(Exception):
    """The server answered with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']} {error['message']} {error.get('data')}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


def retained(protocol: Protocol) -> int:
    """How much is kept for requests in either direction; 0 when nothing is under way."""
    held = (protocol._running, protocol._pending, protocol._parts)
    return sum(len(each) for each in held)


class MemorySink:
    """Takes everything at once; `stuck` makes it take nothing, as a client that does not read."""

    def __init__(self, take: Callable[[bytes], None]) -> None:
        self.take = take
        self.stuck = False
        self.closed = False
        self._ready: Callable[[], None] | None = None

    def write(self, data: memoryview) -> int:
        if self.stuck:
            return 0
        self.take(bytes(data))
        return len(data)

    def when_ready(self, call: Callable[[], None]) -> None:
        self._ready = call

    def free(self) -> None:
        self.stuck = False
        if self._ready is not None:
            self._ready()

    def close(self) -> None:
        self.closed = True


class Client:
    """Speaks to a Protocol. `on[method]` answers the server's requests; `heard` is all it said."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.sink = MemorySink(self._take)
        self.heard: list[dict[str, Any]] = []
        self.on: dict[str, Callable[[Any], Any]] = {}
        self.feed: Callable[[bytes], None] = protocol.feed
        self._frames = Frames()
        self._ids = itertools.count(1)
        self._waiting: dict[Any, asyncio.Future[Any]] = {}
        self._arrived = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    def attach(self) -> None:
        self.protocol.outlet = OutputQueue(self.sink)

    def _take(self, data: bytes) -> None:
        for body in self._frames.feed(data):
            assert not isinstance(body, BadFrame), body
            self._hear(json.loads(body))

    def _hear(self, message: dict[str, Any]) -> None:
        assert message["jsonrpc"] == "2.0"
        self.heard.append(message)
        if "method" in message and "id" in message:
            self._spawn(self._reply(message))
        elif "id" in message and (future := self._waiting.pop(message["id"], None)) is not None:
            if future.done():
                return
            if "error" in message:
                future.set_exception(Answered(message["error"]))
            else:
                future.set_result(message["result"])
        self._spawn(self._note())

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _note(self) -> None:
        async with self._arrived:
            self._arrived.notify_all()

    async def _reply(self, message: dict[str, Any]) -> None:
        answer = self.on.get(message["method"])
        base = {"jsonrpc": "2.0", "id": message["id"]}
        if answer is None:
            self.send({**base, "error": {"code": -32601, "message": "unknown"}})
            return
        try:
            result = answer(message.get("params"))
            result = await result if inspect.isawaitable(result) else result
        except Answered as error:
            self.send({**base, "error": {"code": error.code, "message": error.message, "data": error.data}})
            return
        self.send({**base, "result": result})

    def raw(self, data: bytes) -> None:
        self.feed(data)

    def send(self, message: Any) -> None:
        self.raw(frame(json.dumps(message).encode()))

    def start(self, method: str, params: Any = None, msg_id: Any = None) -> asyncio.Future[Any]:
        msg_id = next(self._ids) if msg_id is None else msg_id
        future = asyncio.get_running_loop().create_future()
        self._waiting[msg_id] = future
        self.send({"jsonrpc": "2.0", "id": msg_id, "method": method, "params": params})
        return future

    async def request(self, method: str, params: Any = None, msg_id: Any = None) -> Any:
        async with asyncio.timeout(20):
            return await self.start(method, params, msg_id)

    async def refused(self, method: str, params: Any = None) -> Answered:
        """The error that a request is answered with."""
        try:
            result = await self.request(method, params)
        except Answered as error:
            return error
        raise AssertionError(f"{method} was answered with {result}")

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def until(self, true: Callable[[], Any]) -> Any:
        """Wait until `true` is, looking whenever something arrives."""
        async with asyncio.timeout(20), self._arrived:
            await self._arrived.wait_for(true)
        return true()

    async def answer_to(self, msg_id: Any) -> dict[str, Any]:
        """The answer with this id (None: an error without one)."""
        return (await self.until(lambda: [m for m in self.heard if "method" not in m and m["id"] == msg_id]))[
            0
        ]

    def said(self, method: str) -> list[Any]:
        """The params of every notification and request of this method."""
        return [m["params"] for m in self.heard if m.get("method") == method]

    def chunks(self, token: Any) -> list[dict[str, Any]]:
        return [p["value"] for p in self.said("$/progress") if p["token"] == token and "seq" in p["value"]]
