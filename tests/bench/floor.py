"""The floor: the same work done by hand on bare httpx2, and nothing else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

Json = dict[str, Any]


async def turns(client: httpx2.AsyncClient, base: str, count: int) -> int:
    """Turns with a streamed tool call until the model has had enough; the number of calls."""
    history: list[Json] = [{"role": "user", "content": "go"}]
    calls = 0
    while True:
        body = json.dumps({"model": "bench", "stream": True, "messages": history}).encode()
        text, arguments, call = "", "", ""
        async for event in stream(client, f"{base}/turns/{count}/v1/chat/completions", body):
            for choice in event["choices"]:
                delta = choice["delta"]
                text += delta.get("content") or ""
                for piece in delta.get("tool_calls") or ():
                    call = piece.get("id") or call
                    arguments += piece["function"].get("arguments") or ""
        if not call:
            return calls
        calls += 1
        said = {"id": call, "type": "function", "function": {"name": "bench__echo", "arguments": arguments}}
        history.append({"role": "assistant", "content": text, "tool_calls": [said]})
        history.append({"role": "tool", "tool_call_id": call, "content": json.loads(arguments)["text"]})


async def deltas(client: httpx2.AsyncClient, base: str, count: int) -> int:
    """The characters of a reply of `count` deltas."""
    total = 0
    url = f"{base}/deltas/{count}/v1/chat/completions"
    async for event in stream(client, url, b'{"model":"bench","stream":true,"messages":[]}'):
        for choice in event["choices"]:
            total += len(choice["delta"].get("content") or "")
    return total


async def stream(client: httpx2.AsyncClient, url: str, body: bytes) -> AsyncIterator[Json]:
    """The parsed events of one streamed answer."""
    headers = {"content-type": "application/json"}
    async with client.stream("POST", url, content=body, headers=headers, timeout=60) as response:
        rest = b""
        async for data in response.aiter_bytes():
            *events, rest = (rest + data).split(b"\n\n")
            for event in events:
                if event != b"data: [DONE]":
                    yield json.loads(event[6:])
