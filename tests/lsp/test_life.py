from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from daiku.fronts.lsp import server as server_module
from tests.lsp.conftest import connected, started

Script = Callable[..., str]


async def test_shutdown_then_exit_ends_with_0(workspace: Path) -> None:
    async with connected(workspace) as server:
        assert await server.client.request("shutdown") is None
        server.client.notify("exit")
        assert await server.exit_code() == 0


async def test_exit_without_shutdown_ends_with_1(workspace: Path) -> None:
    async with connected(workspace) as server:
        server.client.notify("exit")
        assert await server.exit_code() == 1


async def test_exit_before_initialize_ends() -> None:
    async with started() as server:
        server.client.notify("exit")
        assert await server.exit_code() == 1


@pytest.mark.parametrize("way", ["end of input", "exit", "shutdown"])
async def test_a_run_under_way_can_be_resumed_by_the_next_server(
    workspace: Path, script: Script, way: str
) -> None:
    model = script({"text": "word " * 500, "delay_ms": 20}, {"text": "The end."})
    async with connected(workspace) as server:
        client = server.client
        waiting = client.start("daiku/chat", {"text": "a", "model": model, "partialResultToken": "t"}, "run")
        waiting.add_done_callback(lambda f: f.cancelled() or f.exception())
        await client.until(lambda: any(c["type"] == "delta" for c in client.chunks("t")))
        run = client.chunks("t")[0]["run"]
        if way == "end of input":
            server.close_input()
        else:
            if way == "shutdown":
                await client.request("shutdown")
            client.notify("exit")
        await server.exit_code()
        assert not [c for c in client.chunks("t") if c["type"] == "run_finished"]
    async with connected(workspace) as server:
        (session,) = (await server.client.request("daiku/session/list"))["sessions"]
        assert session["status"] == "interrupted"
        script({"text": "The end."})
        result = await server.client.request("daiku/resume", {"runId": run, "partialResultToken": "t"})
        assert (result["runId"], result["status"]) == (run, "completed")


async def test_the_server_leaves_when_the_editors_process_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PARENT_SECONDS", 0.01)
    monkeypatch.setattr(server_module, "_is_alive", lambda pid: pid != 4242)
    async with started() as server:
        await server.client.request("initialize", {"processId": 4242, "capabilities": {}})
        assert await server.exit_code() == 1
