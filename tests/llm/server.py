"""A model service on this machine: answers with the bytes that a test gives it and keeps what it was asked."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

HANG = "hang"
"""In a body: send nothing more until the client leaves."""
DROP = "drop"
"""In a body: close the connection, the end unsaid."""
LEAVE = "leave"
"""As the whole body: close the connection without a word when the request has come in."""


@dataclass(frozen=True)
class Answer:
    """One answer: `body` in pieces, each its own write; HANG and DROP among them, or LEAVE alone."""

    body: Sequence[bytes | str] = ()
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """One request as it came in; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def events(*values: object, done: bool = False) -> Answer:
    """Server-sent events, one write each: strings as they are, everything else as JSON."""
    blocks = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in values]
    named = [_block(block, value) for block, value in zip(blocks, values, strict=True)]
    if done:
        named.append(b"data: [DONE]\n\n")
    return Answer(named, headers={"content-type": "text/event-stream"})


def _block(data: str, value: object) -> bytes:
    kind = value.get("type") if isinstance(value, dict) else None
    name = f"event: {kind}\n" if isinstance(kind, str) else ""
    return f"{name}data: {data}\n\n".encode()


def document(value: object, status: int = 200, **headers: str) -> Answer:
    """One JSON document; a header's `_` stands for `-`."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer([json.dumps(value).encode()], status, {"content-type": "application/json", **named})


class ModelServer:
    """Listens on a free port of 127.0.0.1. `answers[path]` are given one after the other, the last again
    and again; `left` is set when a client closes a connection that was still being answered."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.asked: list[Asked] = []
        self.connections = 0
        self.left = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    def answer(self, path: str, *answers: Answer) -> None:
        self.answers[path] = list(answers)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while (asked := await _read(reader)) is not None:
                self.asked.append(asked)
                if not await self._write(reader, writer, self._choose(asked)):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        finally:
            self._tasks.discard(task)
            writer.close()

    def _choose(self, asked: Asked) -> Answer:
        waiting = self.answers.get(asked.path.partition("?")[0])
        if not waiting:
            return document({"error": {"message": f"no answer for {asked.path}"}}, 404)
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    async def _write(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: Answer
    ) -> bool:
        if answer.body == [LEAVE]:
            return False
        head = {**answer.headers, "transfer-encoding": "chunked"}
        lines = [f"HTTP/1.1 {answer.status} X", *(f"{k}: {v}" for k, v in head.items()), "", ""]
        writer.write("\r\n".join(lines).encode())
        for piece in answer.body:
            if piece == DROP:
                return False
            if piece == HANG:
                await writer.drain()
                assert not await reader.read(1), "the client sent more instead of leaving"
                self.left.set()
                return False
            assert isinstance(piece, bytes)
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


async def _read(reader: asyncio.StreamReader) -> Asked | None:
    line = (await reader.readline()).decode()
    if not line:
        return None
    method, path, _ = line.split(" ", 2)
    headers: dict[str, str] = {}
    while (header := (await reader.readline()).decode().strip()) != "":
        name, _, value = header.partition(":")
        headers[name.lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(method, path, headers, body)
