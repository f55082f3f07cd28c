"""A whole server with the real App, and a client, in one process."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from daiku.fronts.lsp.server import run, serve
from tests.lsp.pair import Client


def write_script(folder: Path, *lines: dict[str, Any], name: str = "script.jsonl") -> str:
    """A script for the scripted provider; the model's name."""
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"scripted/{name}"


class Whole:
    """A server that runs; `client` speaks to it."""

    def __init__(self, client: Client, ended: asyncio.Task[int], close: Callable[[], None]) -> None:
        self.client = client
        self.ended = ended
        self.close_input = close

    async def exit_code(self) -> int:
        async with asyncio.timeout(20):
            return await self.ended


@asynccontextmanager
async def started(environ: dict[str, str] | None = None) -> AsyncGenerator[Whole]:
    """A server before `initialize`."""
    c = serve(environ if environ is not None else os.environ)
    client = Client(c.protocol)
    feed: asyncio.Future[Callable[[bytes], None]] = asyncio.get_running_loop().create_future()
    closed = asyncio.Event()

    async def read(take: Callable[[bytes], None]) -> None:
        feed.set_result(take)
        await closed.wait()

    ended = asyncio.ensure_future(run(c, client.sink, read))
    client.feed = await feed
    whole = Whole(client, ended, closed.set)
    try:
        yield whole
    finally:
        closed.set()
        await whole.exit_code()


@asynccontextmanager
async def connected(workspace: Path, **params: Any) -> AsyncGenerator[Whole]:
    """A server after `initialize`; `capabilities` and `client` are the client's."""
    async with started() as whole:
        options: dict[str, Any] = {"client": params.get("client", {"approvals": True})}
        options["settings"] = params.get("settings", {"llm": {"provider": "scripted"}})
        if "trusted" in params:
            options["trusted"] = params["trusted"]
        await whole.client.request(
            "initialize",
            {
                "processId": None,
                "workspaceFolders": [{"uri": workspace.as_uri(), "name": "w"}],
                "capabilities": params.get("capabilities", {}),
                "initializationOptions": options,
            },
        )
        whole.client.notify("initialized", {})
        yield whole


@pytest.fixture
def script(workspace: Path) -> Callable[..., str]:
    return lambda *lines, name="script.jsonl": write_script(workspace, *lines, name=name)
