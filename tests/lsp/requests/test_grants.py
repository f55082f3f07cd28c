"""What was answered with "always" can be seen and taken back over the wire, and then it is asked again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.lsp.conftest import connected
from tests.lsp.pair import Client

Script = Callable[..., str]
MAKE = {"tool": "shell/run", "args": {"command": "touch made | cat"}}


async def played(client: Client, model: str, decision: str, token: str) -> int:
    """How often a run that makes one call asked; each question is answered with `decision`."""
    params = {"text": "go", "model": model, "partialResultToken": token}
    waiting = client.start("daiku/chat", params)

    def asked() -> list[dict[str, Any]]:
        return [c for c in client.chunks(token) if c["type"] == "approval_asked"]

    await client.until(lambda: waiting.done() or asked())
    for one in asked():
        answer = {"approvalId": one["data"]["approvalId"], "decision": decision}
        await client.request("daiku/approve", {"runId": one["run"], **answer})
    await waiting
    return len(asked())


async def test_an_answer_for_always_is_listed_in_words_and_taken_back(
    workspace: Path, script: Script
) -> None:
    model = script({"calls": [MAKE]}, {"text": "ok"})
    async with connected(workspace) as server:
        client = server.client
        assert (await client.request("daiku/grants/list", {}))["grants"] == []
        assert await played(client, model, "allow_always", "a") == 1
        listed = await client.request("daiku/grants/list", {})
        assert [(g["answer"], g["what"]) for g in listed["grants"]] == [("allow", "run `touch made | cat`")]
        assert listed["workspace"] == str(workspace)
        assert await played(client, model, "reject_once", "b") == 0
        after = await client.request("daiku/grants/revoke", {"key": listed["grants"][0]["key"]})
        assert after["grants"] == []
        assert await played(client, model, "reject_once", "c") == 1
        assert (await client.refused("daiku/grants/revoke", {"key": "command:rm"})).code == -32803


async def test_a_rejection_for_always_is_listed_too(workspace: Path, script: Script) -> None:
    model = script({"calls": [MAKE]}, {"text": "ok"})
    async with connected(workspace) as server:
        await played(server.client, model, "reject_always", "a")
        listed = await server.client.request("daiku/grants/list", {})
        assert [g["answer"] for g in listed["grants"]] == ["reject"]


async def test_with_other_operators_it_is_another_command(workspace: Path, script: Script) -> None:
    other = {"tool": "shell/run", "args": {"command": "touch made && cat"}}
    async with connected(workspace) as server:
        first = script({"calls": [MAKE]}, {"text": "ok"})
        assert await played(server.client, first, "allow_always", "a") == 1
        second = script({"calls": [other]}, {"text": "ok"}, name="second.jsonl")
        assert await played(server.client, second, "reject_once", "b") == 1
