"""A model service for benchmarks: raw sockets, ready-made bytes, OpenAI's Chat protocol, its own process.

POST /turns/N/v1/chat/completions        text and one tool call; only text once N results are in the history
POST /deltas/N/v1/chat/completions       N text deltas, each an HTTP chunk of its own
POST /paced/N/MS/v1/chat/completions     N text deltas, MS milliseconds apart
POST /tagged/N/MS/v1/chat/completions    the same, each with the last #number# of what was asked
"""

from __future__ import annotations

import asyncio
import json
import sys
from functools import cache
from typing import Any

Json = dict[str, Any]


def event(delta: Json, finish: str | None = None, **more: object) -> bytes:
    """One Chat Completions chunk as an SSE event in an HTTP chunk."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body: Json = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "bench",
        "choices": [choice],
        **more,
    }
    return chunked(b"data: " + json.dumps(body).encode() + b"\n\n")


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


USAGE = chunked(
    b"data: "
    + json.dumps(
        {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "bench",
            "choices": [],
            "usage": {"prompt_tokens": 50, "completion_tokens": 9, "total_tokens": 59},
        }
    ).encode()
    + b"\n\n"
)
DONE = chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def function(**more: object) -> Json:
    return {"tool_calls": [{"index": 0, **more}]}


@cache
def turn(number: int) -> bytes:
    """A whole reply: a few words, then one call in pieces."""
    words = [event({"content": f"word{i} "}) for i in range(5)]
    start = event(
        function(id=f"call_{number}", type="function", function={"name": "bench__echo", "arguments": ""})
    )
    pieces = [event(function(function={"arguments": p})) for p in ('{"text"', ': "hel', 'lo"}')]
    end = event({}, "tool_calls")
    return b"".join(
        [HEAD, event({"role": "assistant", "content": ""}), *words, start, *pieces, end, USAGE, DONE]
    )


@cache
def deltas(count: int) -> tuple[bytes, ...]:
    pieces = [event({"content": f"tok{i} "}) for i in range(count)]
    return (HEAD, *pieces, event({}, "stop"), USAGE + DONE)


@cache
def tagged(count: int) -> tuple[bytes, ...]:
    pieces = [event({"content": f"000000.{i} "}) for i in range(count)]
    return (HEAD, *pieces, event({}, "stop"), USAGE + DONE)


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    count = 0
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
            body = await reader.readexactly(int(fields.get(b"content-length", b"0")))
            path = head.split(b" ", 2)[1].decode().split("/")
            count += 1
            if path[1] == "turns":
                over = body.count(b'"tool_call_id"') >= int(path[2])
                writer.write(b"".join(deltas(5)) if over else turn(count))
            elif path[1] == "deltas":
                writer.write(b"".join(deltas(int(path[2]))))
            elif path[1] == "tagged":
                tag = body[: body.rindex(b"#")].rsplit(b"#", 1)[1]
                pieces = tuple(p.replace(b"000000", tag.rjust(6, b"0")) for p in tagged(int(path[2])))
                await paced(writer, pieces, int(path[3]) / 1000)
            else:
                await paced(writer, deltas(int(path[2])), int(path[3]) / 1000)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def paced(writer: asyncio.StreamWriter, pieces: tuple[bytes, ...], spacing: float) -> None:
    """Each piece at its own time: a late one does not make those after it late."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    for piece in pieces:
        writer.write(piece)
        due += spacing
        await asyncio.sleep(due - loop.time())


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, limit=2**24, backlog=512)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
