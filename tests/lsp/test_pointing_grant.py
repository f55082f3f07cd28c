"""An edit asked for at a place: changes there are made at once, every other one is asked about."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import connected

Script = Callable[..., str]
SHOP = "def price(net):\n    return net * 1.2\n\n\ndef total(rows):\n    return sum(rows)\n"
THERE = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 20}}


def edit(path: str, search: str, replace: str) -> dict[str, Any]:
    return {"tool": "files/edit", "args": {"path": path, "edits": [{"search": search, "replace": replace}]}}


async def outcome(
    workspace: Path,
    script: Script,
    *calls: dict[str, Any],
    before: list[dict[str, Any]] | None = None,
    **extra: Any,
) -> tuple[int, list[bool]]:
    """How many questions were asked (each is rejected), and what each call came to."""
    (workspace / "shop.py").write_text(SHOP)
    (workspace / "README.md").write_text("# Shop\n")
    grant = extra.pop("grant", {"uri": (workspace / "shop.py").as_uri(), "range": THERE})
    model = script(*(before or []), *({"calls": [call]} for call in calls), {"text": "ok"})
    async with connected(workspace, **extra) as server:
        client = server.client
        params = {"text": "go", "model": model, "partialResultToken": "t", "grant": grant}
        waiting = client.start("daiku/chat", params)
        answered: set[str] = set()
        while not waiting.done():
            asked = [c for c in client.chunks("t") if c["type"] == "approval_asked"]
            for one in asked:
                if one["data"]["approvalId"] not in answered:
                    answered.add(one["data"]["approvalId"])
                    answer = {"approvalId": one["data"]["approvalId"], "decision": "reject_once"}
                    await client.request("daiku/approve", {"runId": one["run"], **answer})
            await client.until(
                lambda: (
                    waiting.done()
                    or len([c for c in client.chunks("t") if c["type"] == "approval_asked"]) > len(answered)
                )
            )
        await waiting
        responses = [c["data"]["ok"] for c in client.chunks("t") if c["type"] == "tool_response"]
        return len(answered), responses


async def test_the_edit_of_the_place_is_made_at_once_again_and_again(workspace: Path, script: Script) -> None:
    asked, done = await outcome(
        workspace,
        script,
        edit("shop.py", "    return net * 1.2\n", "    rate = 1.2\n    return net * rate\n"),
        edit("shop.py", "rate = 1.2", "rate = 1.19"),
    )
    assert (asked, done) == (0, [True, True])
    assert "rate = 1.19" in (workspace / "shop.py").read_text()


@pytest.mark.parametrize(
    "call",
    [
        edit("shop.py", "sum(rows)", "sum(rows) + 1"),
        edit("README.md", "# Shop", "# Shop!"),
        {"tool": "files/write", "args": {"path": "tax.py", "content": "x = 1\n"}},
        {"tool": "files/write", "args": {"path": "shop.py", "content": "x = 1\n"}},
        {"tool": "files/delete", "args": {"path": "shop.py"}},
        {"tool": "files/move", "args": {"path": "shop.py", "to": "b.py"}},
        {"tool": "files/patch", "args": {"patch": "*** Begin Patch\n*** Update File: shop.py\n@@\n-    return net * 1.3\n+    return 2\n"
                                                  "*** Add File: evil.py\n+x\n*** End Patch"}},
        {"tool": "shell/run", "args": {"command": "touch made"}},
        {"tool": "files/write", "args": {"path": ".vscode/settings.json", "content": "{}"}},
    ],
)  # fmt: skip
async def test_everything_beside_the_place_is_asked_about(
    workspace: Path, script: Script, call: dict[str, Any]
) -> None:
    asked, done = await outcome(workspace, script, edit("shop.py", "net * 1.2", "net * 1.3"), call)
    assert (asked, done) == (1, [True, False])
    assert (workspace / "shop.py").read_text() == SHOP.replace("1.2", "1.3")
    assert (workspace / "README.md").read_text() == "# Shop\n"


async def test_a_whole_file_may_be_granted_and_nothing_else(workspace: Path, script: Script) -> None:
    grant = {"uri": (workspace / "shop.py").as_uri()}
    asked, done = await outcome(
        workspace, script, edit("shop.py", "sum(rows)", "0"), edit("README.md", "Shop", "x"), grant=grant
    )
    assert (asked, done) == (1, [True, False])


async def test_a_protected_file_is_asked_about_even_where_it_was_pointed_at(
    workspace: Path, script: Script
) -> None:
    (workspace / "AGENTS.md").write_text("Be good.\n")
    grant = {"uri": (workspace / "AGENTS.md").as_uri()}
    asked, done = await outcome(workspace, script, edit("AGENTS.md", "good", "bad"), grant=grant)
    assert (asked, done) == (1, [False])


async def test_in_a_workspace_that_is_not_trusted_it_grants_nothing(workspace: Path, script: Script) -> None:
    asked, done = await outcome(workspace, script, edit("shop.py", "net * 1.2", "net * 1.3"), trusted=False)
    assert (asked, done) == (1, [False])


async def test_a_grant_outside_the_workspace_grants_nothing(workspace: Path, script: Script) -> None:
    grant = {"uri": "file:///etc/passwd"}
    asked, done = await outcome(workspace, script, edit("shop.py", "1.2", "1.3"), grant=grant)
    assert (asked, done) == (1, [False])
