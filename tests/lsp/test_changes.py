"""Reviewing over the wire: what was changed, decided on hunk by hunk, brought back, after restarts too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from daiku import api
from tests.lsp.conftest import Whole, connected

Script = Callable[..., str]

BEFORE = "".join(f"line {i}\n" for i in range(1, 21))


def edit_of(path: str, *edits: tuple[str, str]) -> dict[str, Any]:
    found = [{"search": a, "replace": b} for a, b in edits]
    return {"calls": [{"tool": "files/edit", "args": {"path": path, "edits": found}}]}


def call(tool: str, **args: Any) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": args}]}


async def worked(server: Whole, model: str, session: str | None = None) -> str:
    """The session of a run that did what the script says."""
    params: dict[str, Any] = {"text": "go", "model": model, "approvals": "all"}
    result = await server.client.request("daiku/chat", params | ({"sessionId": session} if session else {}))
    assert result["status"] == "completed", result
    return result["sessionId"]


async def changes(server: Whole, session: str) -> list[dict[str, Any]]:
    result = await server.client.request("daiku/changes/list", {"sessionId": session})
    api.ChangesResult.model_validate(result)
    return result["files"]


async def decide(server: Whole, session: str, decision: str, **params: Any) -> dict[str, Any]:
    return await server.client.request(
        "daiku/changes/decide", {"sessionId": session, "decision": decision, **params}
    )


TWO = edit_of("a.txt", ("line 3\n", "LINE 3\nmore\n"), ("line 15\n", ""))


async def test_changes_are_listed_by_hunk_and_rejected_one_by_one(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        session = await worked(server, script(TWO, {"text": "done"}))
        (file,) = await changes(server, session)
        assert (file["path"], file["kind"], file["added"], file["removed"]) == ("a.txt", "edit", 2, 2)
        first, second = file["hunks"]
        assert first["text"] == "-line 3\n+LINE 3\n+more\n"
        assert [first[k] for k in ("oldStart", "oldLines", "newStart", "newLines")] == [3, 1, 3, 2]
        assert [second[k] for k in ("oldStart", "oldLines", "newStart", "newLines")] == [15, 1, 15, 0]
        original = await server.client.request(
            "daiku/changes/original", {"sessionId": session, "path": "a.txt"}
        )
        assert original == {"text": BEFORE}
        left = await decide(server, session, "reject", path="a.txt", hunkIds=[first["hunkId"]])
        assert (workspace / "a.txt").read_text() == BEFORE.replace("line 15\n", "")
        assert [h["hunkId"] for f in left["files"] for h in f["hunks"]] == [second["hunkId"]]
        done = await decide(server, session, "accept", hunkIds=[second["hunkId"]])
        assert done["files"] == []
        assert (workspace / "a.txt").read_text() == BEFORE.replace("line 15\n", "")


async def test_a_decision_survives_a_restart_and_is_on_record(workspace: Path, script: Script) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        session = await worked(server, script(TWO, {"text": "done"}))
        (file,) = await changes(server, session)
        await decide(server, session, "accept", path="a.txt", hunkIds=[file["hunks"][0]["hunkId"]])
    async with connected(workspace) as server:
        (left,) = await changes(server, session)
        assert [h["hunkId"] for h in left["hunks"]] == [file["hunks"][1]["hunkId"]]
        chunks = (await server.client.request("daiku/session/get", {"sessionId": session}))["chunks"]
        (review,) = [c for c in chunks if c["type"] == "review"]
        assert review["data"]["decision"] == "accept"
        assert (review["data"]["path"], review["data"]["hunks"]) == ("a.txt", 1)
        await decide(server, session, "reject")
        assert (workspace / "a.txt").read_text() == BEFORE.replace("line 3\n", "LINE 3\nmore\n")


async def test_typing_in_the_same_lines_makes_the_hunk_stale_and_shows_what_is_there(
    workspace: Path, script: Script
) -> None:
    (workspace / "a.txt").write_text(BEFORE)
    async with connected(workspace) as server:
        session = await worked(server, script(TWO, {"text": "done"}))
        (file,) = await changes(server, session)
        text = (workspace / "a.txt").read_text().replace("more\n", "my own\n").replace("line 9\n", "nine\n")
        (workspace / "a.txt").write_text(text)
        error = await server.client.refused(
            "daiku/changes/decide",
            {"sessionId": session, "decision": "reject", "hunkIds": [file["hunks"][0]["hunkId"]]},
        )
        assert error.data["kind"] == "stale"
        assert "+my own" in error.data["hint"]
        assert (workspace / "a.txt").read_text() == text
        left = await decide(server, session, "reject")
        assert (workspace / "a.txt").read_text() == text.replace("line 14\n", "line 14\nline 15\n")
        (touched,) = left["files"][0]["hunks"]
        assert touched["touched"]
        assert "+my own\n" in touched["text"]
        original = await server.client.request(
            "daiku/changes/original", {"sessionId": session, "path": "a.txt"}
        )
        assert original["text"] == BEFORE.replace("line 9\n", "nine\n")
