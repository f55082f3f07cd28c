"""A server on a port of this machine, in this process, and its event streams read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from daiku.app import App
from daiku.fronts.http.server import listen, serve_http, url_of
from tests.runs.playing import make_app

TOKEN = "a-token-of-the-tests"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sent:
    """One event of a stream, its lines as they were; a comment has nothing but `comment`."""

    type: str = ""
    id: str = ""
    data: str = ""
    comment: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def seq(self) -> int:
        return int(self.id)


def read_event(block: str) -> Sent:
    """The event of one block of lines, read as the standard says and strictly."""
    found: dict[str, str] = {}
    for line in block.split("\n"):
        name, colon, value = line.partition(":")
        assert colon, line
        assert name not in found, block
        found[name or "comment"] = value.removeprefix(" ")
    names = {"event": "type"}
    return Sent(**{names.get(name, name): value for name, value in found.items()})


async def events_of(response: httpx2.Response) -> AsyncIterator[Sent]:
    """The events of a stream, comments too."""
    assert response.status_code == 200, await response.aread()
    assert response.headers["content-type"] == "text/event-stream"
    rest = ""
    async for text in response.aiter_text():
        *blocks, rest = (rest + text).split("\n\n")
        for block in blocks:
            yield read_event(block)
    assert not rest, "half an event"


@dataclass(slots=True)
class Served:
    """A server that runs, and a client of it that knows the token."""

    app: App
    url: str
    client: httpx2.AsyncClient
    folder: Path
    stop: asyncio.Event = field(default_factory=asyncio.Event)

    async def session(self) -> str:
        return (await self.client.post("/v1/sessions", json={})).json()["sessionId"]

    async def post(self, path: str, **body: Any) -> httpx2.Response:
        return await self.client.post(path, json=body)

    async def run(self, session: str, text: str = "go", **body: Any) -> list[Sent]:
        """All events of a run, to its end."""
        path = f"/v1/sessions/{session}/runs"
        async with self.client.stream("POST", path, json={"text": text, **body}) as response:
            return [sent async for sent in events_of(response)]

    @asynccontextmanager
    async def running(
        self, session: str, text: str = "go", **body: Any
    ) -> AsyncGenerator[AsyncIterator[Sent]]:
        path = f"/v1/sessions/{session}/runs"
        async with self.client.stream("POST", path, json={"text": text, **body}) as response:
            yield events_of(response)

    @asynccontextmanager
    async def following(self, session: str, after: int | None = None) -> AsyncGenerator[AsyncIterator[Sent]]:
        headers = {} if after is None else {"last-event-id": str(after)}
        path = f"/v1/sessions/{session}/events"
        async with self.client.stream("GET", path, headers=headers) as response:
            yield events_of(response)


async def until(events: AsyncIterator[Sent], type_: str) -> list[Sent]:
    """The events up to the first of `type_`, with it."""
    seen = list[Sent]()
    async with asyncio.timeout(20):
        async for sent in events:
            seen.append(sent)
            if sent.type == type_:
                return seen
    raise AssertionError(f"no {type_} among {[s.type for s in seen]}")


@asynccontextmanager
async def served(
    folder: Path, *lines: Json, names: tuple[str, ...] = (), **how: Any
) -> AsyncGenerator[Served]:
    """A server whose model plays `lines`."""
    (folder / "project").mkdir(exist_ok=True)
    (folder / "home" / "traces").mkdir(parents=True, exist_ok=True)
    app = make_app(folder, *lines, **how)
    listening = listen("127.0.0.1", 0)
    ready, stop = asyncio.Event(), asyncio.Event()
    serving = asyncio.create_task(serve_http(app, listening, TOKEN, names, ready.set, stop))
    try:
        await ready.wait()
        url = url_of(listening)
        headers = {"authorization": f"Bearer {TOKEN}"}
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=30, limits=limits) as client:
            yield Served(app, url, client, folder, stop)
    finally:
        stop.set()
        await serving
        await app.aclose()
