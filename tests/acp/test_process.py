"""`daiku acp` as a process, by the library's own client: a whole turn, and its end when the client leaves."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from acp import text_block

from tests.acp.pair import FILES, Editor
from tests.acp.turn import COMMAND, spawned
from tests.conftest import ROOT
from tests.lsp import conftest as lsp

pytestmark = pytest.mark.slow

Script = Callable[..., None]
EDIT = {"tool": "files/edit", "args": {"path": "a.py", "edits": [{"search": "old", "replace": "new"}]}}
TODO = {"tool": "todo/write", "args": {"items": [{"title": "Mend a.py", "status": "in_progress"}]}}


async def test_turn_plan_permission_difference_cancel_and_reload_over_a_real_process(
    workspace: Path, script: Script
) -> None:
    """PROTOCOL 8, by the library's own client; that it opens in the panel is shown in tests/editor/todo.test.mjs."""
    (workspace / "a.py").write_text("old\n")
    script(
        {"thinking": "Hm.", "text": "I look. ", "calls": [TODO]},
        {"calls": [EDIT]},
        {"text": "Done."},
        {"text": "word " * 500, "delay_ms": 20},
    )
    editor = Editor()
    async with asyncio.timeout(60), spawned(editor, workspace) as (agent, process):
        await agent.initialize(protocol_version=1, client_capabilities=FILES)
        made = await agent.new_session(cwd=str(workspace), mcp_servers=[])
        ended = await agent.prompt(session_id=made.session_id, prompt=[text_block("mend it")])
        assert ended.stop_reason == "end_turn"
        assert editor.of("plan")[-1].entries[0].content == "Mend a.py"
        assert [o.kind for o in editor.asked[0][1]] == [
            "allow_once",
            "allow_always",
            "reject_once",
            "reject_always",
        ]
        assert editor.wrote == [(str(workspace / "a.py"), "new\n")]
        assert editor.said.startswith("I look. Done.\n> ⚠ Not verified: open items in the to-do list: 1")
        turn = asyncio.ensure_future(agent.prompt(session_id=made.session_id, prompt=[text_block("talk")]))
        await editor.until(lambda: "word" in editor.said)
        await agent.cancel(session_id=made.session_id)
        assert (await turn).stop_reason == "cancelled"
    assert process.returncode == 0
    again = Editor()
    async with asyncio.timeout(60), spawned(again, workspace) as (agent, _):
        await agent.initialize(protocol_version=1)
        await agent.load_session(cwd=str(workspace), session_id=made.session_id, mcp_servers=[])
        assert [u.content.text for u in again.of("user_message_chunk")] == ["mend it", "talk"]
        assert again.said.startswith("I look. Done.")
        listed = await agent.list_sessions(cwd=str(workspace))
        assert [s.title for s in listed.sessions] == ["mend it"]
    async with lsp.connected(workspace) as whole:
        got = await whole.client.request("daiku/session/get", {"sessionId": made.session_id})
        assert got["session"]["title"] == "mend it"
        assert {"run_started", "plan", "edit"} & {c["type"] for c in got["chunks"]}


def started(workspace: Path) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "server")}
    pipe = subprocess.PIPE
    return subprocess.Popen(COMMAND, cwd=workspace, env=environ, stdin=pipe, stdout=pipe, stderr=pipe)


def ask(process: subprocess.Popen[bytes], method: str, params: Any) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    while "result" not in (answer := json.loads(process.stdout.readline())):
        assert "error" not in answer, answer
    return answer["result"]


@pytest.mark.parametrize("way", ["stdin", "signal"])
def test_it_ends_within_seconds_and_its_run_can_be_gone_on_with(
    workspace: Path, script: Script, way: str
) -> None:
    script({"text": "word " * 2000, "delay_ms": 20})
    with started(workspace) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ask(process, "initialize", {"protocolVersion": 1})
        session = ask(process, "session/new", {"cwd": str(workspace), "mcpServers": []})["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": "talk"}]}
        line = {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt}
        process.stdin.write(json.dumps(line).encode() + b"\n")
        process.stdin.flush()
        while b"agent_message_chunk" not in process.stdout.readline():
            pass
        began = time.monotonic()
        if way == "stdin":
            process.stdin.close()
        else:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        assert time.monotonic() - began < 5
        assert process.stderr is not None
        assert process.stderr.read() == b""
        for left in process.stdout.read().splitlines():
            assert json.loads(left)["jsonrpc"] == "2.0"
    listed = subprocess.run(
        [sys.executable, "-m", "daiku", "sessions", "list", "--json"],
        cwd=workspace, env={**os.environ, "PYTHONPATH": str(ROOT / "server")}, capture_output=True, check=True,
    )  # fmt: skip
    assert b"interrupted" in listed.stdout


def test_without_the_library_one_sentence_names_the_extra(workspace: Path) -> None:
    hidden = "import sys; sys.modules['acp'] = None; from daiku.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "acp"],
        cwd=workspace, env={**os.environ, "PYTHONPATH": str(ROOT / "server")}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert b"daiku[acp]" in done.stderr


def test_a_wrong_option_is_one_sentence(workspace: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "--port", "5"],
        cwd=workspace, env={**os.environ, "PYTHONPATH": str(ROOT / "server")}, capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)
