"""Clients that we did not write: VS Code's JSON-RPC library, pytest-lsp, Neovim, bare sockets."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from pytest_lsp import LanguageClient

from daiku.fronts.lsp.wire.frames import Frames, frame
from tests.conftest import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.editor]

COMMAND = [sys.executable, "-m", "daiku", "lsp"]
HERE = Path(__file__).parent
TIMEOUT = 40


@pytest.fixture
def environ(workspace: Path) -> dict[str, str]:
    """The environment of a server process, with scripts in its workspace."""
    edit = {
        "tool": "files/edit",
        "args": {"path": "open.txt", "edits": [{"search": "second", "replace": "2nd"}]},
    }
    lines = [
        {"text": "I look.", "calls": [{"tool": "files/read", "args": {"path": "open.txt"}}, edit]},
        {"text": "Done."},
    ]
    (workspace / "script.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    fix = {
        "tool": "files/edit",
        "args": {"path": "open.txt", "edits": [{"search": "2nd", "replace": "third"}]},
    }
    (workspace / "fix.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in ({"calls": [fix]}, {"text": "Fixed."}))
    )
    (workspace / "slow.jsonl").write_text(json.dumps({"text": "word " * 2000, "delay_ms": 20}) + "\n")
    (workspace / "open.txt").write_text("saved\nsecond\n")
    return {**os.environ, "PYTHONPATH": str(ROOT / "server"), "DAIKU_TEST_WORKSPACE": str(workspace)}


def types_of(chunks: list[dict[str, Any]]) -> list[str]:
    return [c["type"] for c in chunks if c["type"] not in ("delta", "usage")]


# `npm test` installs Node.js and the library; pytest alone may run without them.
@pytest.mark.skipif(
    not shutil.which("node") or not (ROOT / "node_modules" / "vscode-jsonrpc").is_dir(),
    reason="no Node.js, or the build tools are not installed",
)
def test_the_json_rpc_library_of_vs_code_gets_its_run(environ: dict[str, str], workspace: Path) -> None:
    script = {"text": "Hello."}
    (workspace / "script.jsonl").write_text(json.dumps(script) + "\n")
    done = subprocess.run(
        ["node", str(HERE / "node" / "client.mjs"), *COMMAND],
        env=environ, capture_output=True, text=True, timeout=TIMEOUT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["early"]["code"] == -32002
    assert seen["hello"]["capabilities"]["experimental"]["daiku"]["protocol"] == 1
    assert (seen["result"]["status"], seen["result"]["text"]) == ("completed", "Hello.")
    assert [c["seq"] for c in seen["chunks"]] == list(range(1, len(seen["chunks"]) + 1))
    assert (seen["chunks"][0]["type"], seen["chunks"][-1]["type"]) == ("run_started", "run_finished")
    assert seen["cancelled"] == -32800
    assert seen["wrong"]["code"] == -32602
    assert len(seen["wrong"]["data"]) == 2
    assert seen["unknown"]["code"] == -32601
    assert seen["code"] == 0


# `npm test` installs Neovim; pytest alone may run without it.
@pytest.mark.skipif(not shutil.which("nvim"), reason="no Neovim")
def test_neovim_gets_its_run_and_approves_by_message_box(
    environ: dict[str, str], workspace: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    environ |= {"DAIKU_TEST_COMMAND": json.dumps(COMMAND), "DAIKU_TEST_REPORT": str(report)}
    done = subprocess.run(
        ["nvim", "--headless", "--clean", "-n", "-c", f"luafile {HERE / 'nvim' / 'client.lua'}"],
        env=environ, capture_output=True, text=True, timeout=TIMEOUT, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert report.exists(), done.stderr
    seen = json.loads(report.read_text())
    assert seen["experimental"]["protocol"] == 1
    assert seen["chat"]["result"]["status"] == "completed"
    assert seen["chat"]["result"]["text"] == "Done."
    answers = [c["data"] for c in seen["chunks"] if c["type"] == "tool_response"]
    assert "typed, not saved 😀" in answers[0]["result"]
    assert [a["ok"] for a in answers] == [True, True, True]
    assert seen["actions"][0]["title"] == "Fix with Daiku: 2nd is no word"
    assert {a["kind"] for a in seen["actions"]} == {"quickfix", "refactor.rewrite", "source"}
    assert seen["resolved"]["command"]["command"] == "daiku.fix"
    assert seen["fixed"]["result"]["text"] == "Fixed."
    begun = [c["data"] for c in seen["chunks"] if c["type"] == "run_started"][-1]
    assert [i["kind"] for i in begun["context"]] == ["selection", "text", "diagnostics"]
    assert seen["lines"] == ["typed, not saved 😀", "third"]
    assert "Fixed." in seen["messages"]
    assert (workspace / "open.txt").read_text() == "saved\nsecond\n"
    assert seen["asked"]
    assert seen["progress"][0] == "begin"
    assert seen["progress"][-1] == "end"
    assert seen["command"]["result"]["status"] in ("completed", "failed")
    assert seen["wrong"]["err"]["code"] == -32602


async def test_a_client_of_pytest_lsp_gets_its_run(environ: dict[str, str], workspace: Path) -> None:
    client = LanguageClient()
    chunks: list[Any] = []
    client.feature("$/progress")(lambda params: chunks.append(params.value))
    await client.start_io(*COMMAND, env=environ)
    try:
        params = types.InitializeParams(
            capabilities=types.ClientCapabilities(),
            workspace_folders=[types.WorkspaceFolder(uri=workspace.as_uri(), name="w")],
            initialization_options={
                "settings": {"llm": {"provider": "scripted"}},
                "client": {"approvals": True},
            },
        )
        async with asyncio.timeout(TIMEOUT):
            hello = await client.initialize_session(params)
        assert hello.server_info is not None
        assert hello.server_info.name == "daiku"
        chat = {"text": "Hi", "model": "scripted/script.jsonl", "partialResultToken": "t", "approvals": "all"}
        async with asyncio.timeout(TIMEOUT):
            result: Any = await client.protocol.send_request_async("daiku/chat", chat)
        assert result.status == "completed"
        assert types_of(chunks)[0] == "run_started"
        assert types_of(chunks)[-1] == "run_finished"
    finally:
        async with asyncio.timeout(TIMEOUT):
            await client.shutdown_session()


def talk(environ: dict[str, str], data: bytes) -> tuple[list[Any], bytes, int]:
    """All that a server says to `data`, its stderr and its exit code."""
    done = subprocess.run(COMMAND, input=data, env=environ, capture_output=True, timeout=TIMEOUT, check=False)
    return (
        [json.loads(b) for b in Frames().feed(done.stdout) if isinstance(b, bytes)],
        done.stderr,
        done.returncode,
    )


def message(**fields: Any) -> bytes:
    return frame(json.dumps({"jsonrpc": "2.0", **fields}).encode())


def test_a_process_answers_everything_and_says_nothing_else_on_stdout(environ: dict[str, str]) -> None:
    data = b"".join(
        [
            b"garbage\r\n\r\n",
            message(id=1, method="daiku/tools"),
            frame(b"{"),
            message(id=2, method="initialize", params={"capabilities": {}}),
            message(method="initialized", params={}),
            message(id=3, method="daiku/tools"),
            message(id=4, method="daiku/chat", params=[1]),
            message(id=5, method="shutdown"),
            message(method="exit"),
        ]
    )
    said, stderr, code = talk(environ, data)
    answers = {m["id"]: m for m in said if "method" not in m}
    assert answers[1]["error"]["code"] == -32002
    assert answers[2]["result"]["serverInfo"]["name"] == "daiku"
    assert answers[3]["result"]["tools"]
    assert answers[4]["error"]["code"] == -32602
    assert answers[5]["result"] is None
    assert [m["error"]["code"] for m in said if "method" not in m and m["id"] is None] == [-32700, -32700]
    assert code == 0
    assert not stderr


def test_a_process_ends_with_1_when_the_editor_goes_without_a_word(environ: dict[str, str]) -> None:
    _, stderr, code = talk(environ, message(id=1, method="initialize", params={"capabilities": {}}))
    assert (code, stderr) == (1, b"")


async def test_a_process_serves_over_tcp(environ: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        "--tcp",
        "127.0.0.1:0",
        env=environ,
        stderr=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    async with asyncio.timeout(TIMEOUT):
        line = (await process.stderr.readline()).decode()
        reader, writer = await asyncio.open_connection("127.0.0.1", int(line.rpartition(":")[2]))
        writer.write(message(id=1, method="initialize", params={"capabilities": {}}))
        assert b'"serverInfo"' in await reader.readuntil(b'"version":"0.1.0"}}')
        writer.write(message(id=2, method="shutdown") + message(method="exit"))
        assert b'"id":2' in await reader.read()
        writer.close()
        assert await process.wait() == 0


def test_a_wrong_option_is_told(environ: dict[str, str]) -> None:
    for wrong in (["--tcp"], ["--tcp", "nonsense"], ["--tcp", "host:99999"], ["--what"]):
        done = subprocess.run(
            [*COMMAND, *wrong], env=environ, capture_output=True, timeout=TIMEOUT, check=False
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"--tcp HOST:PORT" in done.stderr
