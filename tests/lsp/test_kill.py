"""The language server killed with -9 in the middle of a run: the next one goes on with it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from daiku.domain.events import EPHEMERAL
from tests.conftest import ROOT

pytestmark = pytest.mark.slow

Json = dict[str, Any]


class Server:
    """A real `daiku lsp` process and the few frames that this test needs."""

    def __init__(self, process: asyncio.subprocess.Process, root: Path) -> None:
        self.process = process
        self._root = root
        self._id = 0

    def send(self, method: str, params: Json, *, notify: bool = False) -> int:
        self._id += 1
        body: Json = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notify:
            body["id"] = self._id
        data = json.dumps(body).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        return self._id

    async def read(self) -> Json:
        assert self.process.stdout is not None
        head = await self.process.stdout.readuntil(b"\r\n\r\n")
        return json.loads(await self.process.stdout.readexactly(int(head.split(b":")[1])))

    async def answer(self, id_: int) -> Any:
        while (message := await self.read()).get("id") != id_:
            pass
        assert "error" not in message, message
        return message["result"]

    async def initialize(self, script: Path) -> None:
        settings = {
            "llm": {"model": f"scripted/{script}"},
            "approvals": {"command": "allow"},
            "sandbox": {"mode": "off"},
        }
        options = {"settings": settings, "client": {"approvals": True}}
        folder = {"uri": self._root.as_uri(), "name": "project"}
        params = {"processId": os.getpid(), "capabilities": {}, "rootUri": None, "workspaceFolders": [folder]}
        await self.answer(self.send("initialize", {**params, "initializationOptions": options}))
        self.send("initialized", {}, notify=True)


@asynccontextmanager
async def serving(folder: Path) -> AsyncGenerator[Server]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "daiku", "lsp"),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "server"), "DAIKU_HOME": str(folder / "home")},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=2**24,
    )
    try:
        async with asyncio.timeout(60):
            yield Server(process, folder / "project")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.parametrize("die_at", [1, 3, 5, 6, 9, 14, 22])
async def test_a_killed_server_loses_nothing_and_repeats_nothing(tmp_path: Path, die_at: int) -> None:
    project = tmp_path / "project"
    project.mkdir()
    script = tmp_path / "script.jsonl"
    lines: list[Json] = [
        {
            "text": f"step {i}",
            "calls": [{"tool": "shell/run", "args": {"command": f"echo {i} >> effects.txt"}}],
        }
        for i in range(6)
    ]
    script.write_text("\n".join(json.dumps(line) for line in [*lines, {"text": "All done."}]))

    async with serving(tmp_path) as server:
        await server.initialize(script)
        server.send("daiku/chat", {"text": "go", "approvals": "all", "partialResultToken": "t"})
        durable, run = 0, ""
        while durable < die_at:
            message = await server.read()
            if message.get("method") == "$/progress":
                chunk = message["params"]["value"]
                run = chunk["run"]
                durable += chunk["type"] not in EPHEMERAL
        server.process.kill()
        await server.process.wait()

    async with serving(tmp_path) as server:
        await server.initialize(script)
        (session,) = (await server.answer(server.send("daiku/session/list", {})))["sessions"]
        assert session["status"] == "interrupted"
        result = await server.answer(server.send("daiku/resume", {"runId": run, "approvals": "all"}))
        assert (result["runId"], result["status"], result["text"]) == (run, "completed", "All done.")
        got = await server.answer(server.send("daiku/session/get", {"sessionId": session["sessionId"]}))

    chunks = got["chunks"]
    interrupted = [c for c in chunks if c["type"] == "tool_response" and "interrupted" in c["data"]["result"]]
    effects = Counter((project / "effects.txt").read_text().split())
    assert max(effects.values()) == 1
    assert len(interrupted) <= 1
    assert len(effects) >= 6 - len(interrupted)
    assert [c["type"] for c in chunks].count("run_finished") == 1
