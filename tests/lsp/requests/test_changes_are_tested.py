"""An action that changes code may run its test and is asked to; one that explains or reviews only looks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import connected

Script = Callable[..., str]
CODE = "def one():\n    return 1\n"
THERE = {"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}}
EDIT = {
    "tool": "files/edit",
    "args": {"path": "code.py", "edits": [{"search": "return 1", "replace": "return 2 - 1"}]},
}
TEST = {"tool": "shell/run", "args": {"command": "python3 -c 'import code'"}}
CHANGING = {"daiku.fix": {}, "daiku.document": {}, "daiku.generateCode": {"instruction": "Make it simpler."}}


async def outcome(
    workspace: Path, script: Script, command: str, arguments: dict[str, Any], **more: Any
) -> tuple[dict[str, Any], list[tuple[str, bool]], str]:
    """How the command's run began, what came of its calls, and who carried it out."""
    (workspace / "code.py").write_text(CODE)
    model = script({"calls": [EDIT]}, {"calls": [TEST]}, {"text": "Changed and tested."})
    settings = {
        "llm": {"provider": "scripted", "model": model.removeprefix("scripted/")},
        "approvals": {"edit": "allow", "command": "allow"},
        "sandbox": {"mode": "off"},
    }
    async with connected(workspace, settings=settings, **more) as server:
        params = {"command": command, "arguments": [arguments], "partialResultToken": "t"}
        await server.client.request("workspace/executeCommand", params)
        chunks = server.client.chunks("t")
    calls = {c["data"]["id"]: c["data"]["tool"] for c in chunks if c["type"] == "tool_call"}
    done = [(calls[c["data"]["id"]], c["data"]["ok"]) for c in chunks if c["type"] == "tool_response"]
    return chunks[0]["data"], done, chunks[0]["agent"]


@pytest.mark.parametrize("command", CHANGING)
async def test_who_changes_the_code_at_a_place_runs_its_test(
    workspace: Path, script: Script, command: str
) -> None:
    place = {"uri": (workspace / "code.py").as_uri(), "range": THERE, **CHANGING[command]}
    begun, done, agent = await outcome(workspace, script, command, place)
    assert (agent, begun["mode"]) == ("coordinator", "act")
    assert done == [("files/edit", True), ("shell/run", True)]
    assert begun["prompt"].endswith("fix what fails. If there is no test, say so.")
    assert "run the most specific test" in begun["prompt"]
    assert (workspace / "code.py").read_text() == CODE.replace("1\n", "2 - 1\n")


async def test_new_code_without_a_place_is_still_the_coders(workspace: Path, script: Script) -> None:
    begun, done, agent = await outcome(workspace, script, "daiku.generateCode", {"instruction": "A game."})
    assert (agent, begun["prompt"]) == ("coder", "A game.")
    assert done == [("files/edit", True), ("shell/run", False)]


@pytest.mark.parametrize("command", ["daiku.explain", "daiku.review"])
async def test_who_explains_or_reviews_changes_and_runs_nothing(
    workspace: Path, script: Script, command: str
) -> None:
    place = {"uri": (workspace / "code.py").as_uri(), "range": THERE}
    begun, done, _ = await outcome(workspace, script, command, place)
    assert begun["mode"] == "ask"
    assert done == [("files/edit", False), ("shell/run", False)]
    assert "test" not in begun["prompt"]
    assert (workspace / "code.py").read_text() == CODE


async def test_where_nothing_is_trusted_no_change_is_asked_for(workspace: Path, script: Script) -> None:
    place = {"uri": (workspace / "code.py").as_uri(), "range": THERE}
    begun, done, _ = await outcome(workspace, script, "daiku.document", place, trusted=False)
    assert (begun["mode"], [ok for _, ok in done]) == ("ask", [False, False])
    assert "run the most specific test" not in begun["prompt"]
